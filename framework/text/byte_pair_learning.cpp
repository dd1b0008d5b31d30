#include "framework/text/byte_pair_learning.h"

#include <algorithm>
#include <deque>
#include <map>
#include <queue>
#include <tuple>
#include <utility>
#include <vector>

#include "framework/core/error.h"
#include "framework/text/utf8.h"
#include "framework/text/vocabulary.h"

namespace gs {
namespace {

constexpr int64_t kMinimumCount = 2;

using Pair = std::pair<int32_t, int32_t>;  // ids of two symbols

struct Word {
  std::vector<int32_t> symbols;
  int64_t count;
};

// The words of a text as symbols, and how often each pair of neighbours occurs.
class PairCounts {
 public:
  explicit PairCounts(const TokenCounts& words) {
    for (const auto& [word, count] : words.tokens()) add(word, count);
    for (size_t i = 0; i < words_.size(); ++i) count_pairs(i, words_[i].count);
    for (const auto& [pair, uses] : uses_) offer(pair, uses.count);
  }

  // Takes the most frequent pair, of equals that of the greatest spelling; false at the end.
  bool take_best(Pair& best) {
    while (!queue_.empty()) {
      const Candidate candidate = queue_.top();
      queue_.pop();
      const int64_t now = uses_.at(candidate.pair).count;
      best = candidate.pair;
      if (candidate.count == now) return now >= kMinimumCount;
      // A count that rose was offered again when it did.
      if (now < candidate.count) offer(candidate.pair, now);
    }
    return false;
  }

  void merge(const Pair& pair) {
    const int32_t merged = id_of(spelling(pair.first) + spelling(pair.second));
    std::vector<size_t> places = std::move(uses_.at(pair).words);
    std::sort(places.begin(), places.end());
    places.erase(std::unique(places.begin(), places.end()), places.end());
    for (const size_t place : places) merge_in(place, pair, merged);
  }

  const std::string& spelling(int32_t symbol) const {
    return symbols_[static_cast<size_t>(symbol)];
  }

 private:
  struct Uses {
    int64_t count = 0;
    std::vector<size_t> words = {};  // those that hold it, and some that once did
  };
  struct Candidate {
    int64_t count;
    Pair pair;
    const std::string *left, *right;

    bool operator<(const Candidate& other) const {
      return std::tie(count, *left, *right) < std::tie(other.count, *other.left, *other.right);
    }
  };

  int32_t id_of(const std::string& symbol) {
    const auto [place, is_new] = ids_.emplace(symbol, static_cast<int32_t>(symbols_.size()));
    if (is_new) symbols_.push_back(symbol);
    return place->second;
  }

  void add(const std::string& word, int64_t count) {
    std::vector<int32_t> symbols;
    const std::vector<std::string_view> characters = split_characters(word);
    for (size_t i = 0; i < characters.size(); ++i) {
      const bool ends = i + 1 == characters.size();
      symbols.push_back(id_of(std::string(characters[i]) + (ends ? "</w>" : "")));
    }
    words_.push_back({std::move(symbols), count});
  }

  // Adds `change` to the pairs of a word.
  void count_pairs(size_t word, int64_t change) {
    const std::vector<int32_t>& symbols = words_[word].symbols;
    for (size_t i = 0; i + 1 < symbols.size(); ++i) {
      Uses& uses = uses_[{symbols[i], symbols[i + 1]}];
      uses.count += change;
      if (change > 0) uses.words.push_back(word);
    }
  }

  void offer(const Pair& pair, int64_t count) {
    if (count >= kMinimumCount)
      queue_.push({count, pair, &spelling(pair.first), &spelling(pair.second)});
  }

  void merge_in(size_t place, const Pair& pair, int32_t merged) {
    count_pairs(place, -words_[place].count);
    std::vector<int32_t>& symbols = words_[place].symbols;
    size_t kept = 0;
    for (size_t i = 0; i < symbols.size(); ++i, ++kept) {
      const bool fits =
          symbols[i] == pair.first && i + 1 < symbols.size() && symbols[i + 1] == pair.second;
      symbols[kept] = fits ? merged : symbols[i];
      i += fits;
    }
    symbols.resize(kept);
    count_pairs(place, words_[place].count);
    for (size_t i = 0; i + 1 < symbols.size(); ++i) {
      const Pair next{symbols[i], symbols[i + 1]};
      offer(next, uses_.at(next).count);
    }
  }

  std::deque<std::string> symbols_;  // by id; candidates point to them
  TokenMap<int32_t> ids_;
  std::vector<Word> words_;
  std::map<Pair, Uses> uses_;
  std::priority_queue<Candidate> queue_;
};

}  // namespace

BytePairs learn_byte_pairs(std::span<const std::string> lines, int64_t merges) {
  check(merges >= 1, "learn_byte_pairs: the merges must be 1 or more, got {}", merges);
  TokenCounts words(TokenUnit::kWord);
  words.add_lines(lines);
  PairCounts counts(words);
  std::string codes = "#version: 0.2\n";
  int64_t learned = 0;
  for (Pair best; learned < merges && counts.take_best(best); ++learned) {
    codes += counts.spelling(best.first) + ' ' + counts.spelling(best.second) + '\n';
    counts.merge(best);
  }
  check(learned > 0,
        "learn_byte_pairs: no pair of symbols occurs twice in the {} lines; give more text",
        lines.size());
  return BytePairs::parse(codes, "learned merges");
}

}  // namespace gs
