#include "datasets/toy_corpus.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <set>
#include <sstream>
#include <unordered_map>

#include "datasets/text_hash.h"
#include "datasets/toy_held_out.h"
#include "tests/support/support.h"

namespace gs {
namespace {

using testing::Contains;
using testing::ElementsAre;
using testing::Not;

std::vector<std::string> words_of(const std::string& text) {
  std::istringstream stream(text);
  return {std::istream_iterator<std::string>(stream), {}};
}

bool has_tag(const ToyPair& pair, std::string_view tag) {
  return std::find(pair.tags.begin(), pair.tags.end(), tag) != pair.tags.end();
}

std::vector<std::string_view> splits_of(int64_t level) {
  std::vector<std::string_view> splits;
  for (const std::string_view split : ToyCorpus::splits())
    if (ToyCorpus::has(level, split)) splits.push_back(split);
  return splits;
}

std::vector<ToyPair> drawn(int64_t level, std::string_view split, int64_t count) {
  return toy_pairs(1, level, split, split == "long" ? std::min<int64_t>(count, 20) : count);
}

// Every word of text, link and tag of the first 10,000 pairs: any change of the generator shows.
TEST(ToyCorpus, IsTheSameEverywhere) {
  std::string all;
  for (const ToyPair& pair : toy_pairs(1, 3, "train", 10000)) {
    all += pair.source + '\t' + pair.target;
    for (const auto& [from, to] : pair.alignment)
      all += ' ' + std::to_string(from) + '-' + std::to_string(to);
    for (const std::string& tag : pair.tags) all += ' ' + tag;
    all += '\n';
  }
  EXPECT_EQ(hash_text(all), 14493832589600682053u);
}

TEST(ToyCorpus, RepeatsItselfForTheSameSeedOnly) {
  for (const std::string_view split : splits_of(3)) {
    const auto pairs = drawn(3, split, 50);
    EXPECT_EQ(drawn(3, split, 50), pairs);
    // A shorter corpus is the beginning of a longer one.
    const auto fewer = toy_pairs(1, 3, split, 10);
    EXPECT_TRUE(std::equal(fewer.begin(), fewer.end(), pairs.begin()));
    EXPECT_NE(toy_pairs(2, 3, split, 10), fewer);
  }
  EXPECT_NE(toy_pairs(1, 1, "train", 10), toy_pairs(1, 2, "train", 10));
  EXPECT_TRUE(toy_pairs(1, 2, "train", 0).empty());
}

// Translation is a function over all levels, splits and seeds, and the pairs of a stream differ.
TEST(ToyCorpus, TranslatesEachSentenceInOneWay) {
  std::unordered_map<std::string, std::string> translations;
  for (int64_t level = 1; level <= 3; ++level)
    for (const std::string_view split : splits_of(level)) {
      std::set<std::string> sources;
      const auto pairs = drawn(level, split, split == "train" ? 20000 : 1000);
      for (const ToyPair& pair : pairs) {
        EXPECT_TRUE(sources.insert(pair.source).second) << pair.source;
        const auto [entry, is_new] = translations.emplace(pair.source, pair.target);
        EXPECT_TRUE(is_new || entry->second == pair.target)
            << pair.source << " | " << pair.target << " | " << entry->second;
      }
    }
}

TEST(ToyCorpus, TrainingSharesNoSentenceWithAnotherSplitOfAnySeed) {
  for (int64_t level = 1; level <= 3; ++level) {
    std::set<std::string> training;
    for (const ToyPair& pair : toy_pairs(1, level, "train", 20000)) training.insert(pair.source);
    for (const std::string_view split : splits_of(level)) {
      if (split == "train") continue;
      for (const uint64_t seed : {1, 2})
        for (const ToyPair& pair : toy_pairs(seed, level, split, split == "long" ? 20 : 1000))
          EXPECT_EQ(training.count(pair.source), 0u) << split << ": " << pair.source;
    }
  }
}

TEST(ToyCorpus, AlignsEveryContentWordWithinBothSentences) {
  for (const std::string_view split : splits_of(3))
    for (const ToyPair& pair : drawn(3, split, 1000)) {
      const auto source = words_of(pair.source), target = words_of(pair.target);
      std::set<std::pair<int, int>> by_target;
      std::vector<bool> linked(target.size());
      for (const auto& [from, to] : pair.alignment) {
        ASSERT_TRUE(from >= 0 && from < static_cast<int>(source.size())) << pair.source;
        ASSERT_TRUE(to >= 0 && to < static_cast<int>(target.size())) << pair.target;
        linked[static_cast<size_t>(to)] = true;
        // In order, none twice.
        EXPECT_TRUE(by_target.empty() || *by_target.rbegin() < std::pair(to, from)) << pair.source;
        by_target.emplace(to, from);
      }
      for (size_t j = 0; j < target.size(); ++j)
        EXPECT_TRUE(linked[j] || target[j] == ",") << pair.target << ", word " << j;
      EXPECT_EQ(pair.alignment.back(), std::pair(static_cast<int>(source.size()) - 1,
                                                 static_cast<int>(target.size()) - 1));
    }
}

TEST(ToyCorpus, SpellsSentencesCleanly) {
  for (const ToyPair& pair : toy_pairs(3, 3, "train", 5000))
    for (const std::string& text : {pair.source, pair.target}) {
      std::string joined;
      for (const std::string& word : words_of(text)) joined += (joined.empty() ? "" : " ") + word;
      EXPECT_EQ(joined, text);
      EXPECT_TRUE(text.ends_with(" .") || text.ends_with(" ?")) << text;
      EXPECT_EQ(text.find(", ,"), std::string::npos) << text;
      EXPECT_EQ(text.find(", ."), std::string::npos) << text;
      EXPECT_FALSE(text.starts_with(",")) << text;
    }
}

TEST(ToyCorpus, LevelsAddConstructions) {
  std::array<std::set<std::string>, 4> tags;
  for (int64_t level = 1; level <= 3; ++level)
    for (const ToyPair& pair : toy_pairs(1, level, "train", 5000))
      tags[static_cast<size_t>(level)].insert(pair.tags.begin(), pair.tags.end());
  EXPECT_THAT(tags[1], ElementsAre("copula", "dative", "inversion", "kein", "main", "modal",
                                   "negation", "past", "place", "question", "separable"));
  EXPECT_THAT(tags[2], ElementsAre("anaphor", "copula", "dative", "ditransitive", "fronted",
                                   "inversion", "kein", "main", "modal", "negation", "past",
                                   "place", "question", "reported", "separable", "subordinate"));
  tags[2].insert("relative");
  EXPECT_EQ(tags[3], tags[2]);
}

TEST(ToyCorpus, TagsSayWhatTheSentenceShows) {
  const std::set<std::string> conjunctions{"because", "although", "if"};
  for (const ToyPair& pair : toy_pairs(1, 3, "train", 10000)) {
    const auto source = words_of(pair.source), target = words_of(pair.target);
    const std::string& kind = pair.tags.front();
    const auto holds = [&](const std::vector<std::string>& words, std::string_view start) {
      return std::any_of(words.begin(), words.end(),
                         [&](const std::string& word) { return word.starts_with(start); });
    };
    EXPECT_EQ(kind == "question", source.back() == "?") << pair.source;
    EXPECT_EQ(kind == "fronted", conjunctions.count(source.front()) == 1) << pair.source;
    EXPECT_EQ(kind == "reported", holds(target, "dass")) << pair.target;
    EXPECT_EQ(has_tag(pair, "negation"), holds(source, "not")) << pair.source;
    EXPECT_EQ(has_tag(pair, "kein"), holds(target, "kein")) << pair.target;
    EXPECT_TRUE(!has_tag(pair, "relative") || kind == "main") << pair.source;
  }
}

// Where a negated sentence would be open to two readings, it is never made.
TEST(ToyCorpus, NegatesOnlyWhatIsClear) {
  int negated = 0;
  for (const ToyPair& pair : toy_pairs(1, 1, "train", 20000)) {
    if (!has_tag(pair, "negation")) continue;
    ++negated;
    const auto words = words_of(pair.source);
    EXPECT_THAT(words, Not(Contains("must"))) << pair.source;
    EXPECT_THAT(words, Not(Contains("in"))) << pair.source;
    EXPECT_THAT(words, Not(Contains("every"))) << pair.source;
    const auto object = std::find(words.begin(), words.end(), "not");
    EXPECT_EQ(std::count(object, words.end(), "two") + std::count(object, words.end(), "many"), 0)
        << pair.source;
  }
  EXPECT_GT(negated, 1000);
}

TEST(ToyCorpus, LongSentencesAreLongerThanAnyInTraining) {
  for (const std::string_view split : {"train", "iid", "pair", "role"})
    for (const ToyPair& pair : toy_pairs(1, 3, split, 1000))
      EXPECT_LE(words_of(pair.source).size(), 24u) << pair.source;
  for (const ToyPair& pair : toy_pairs(1, 2, "long", 20))
    EXPECT_GT(words_of(pair.source).size(), 24u) << pair.source;
}

TEST(ToyCorpus, NestedSentencesReportAReport) {
  for (const ToyPair& pair : toy_pairs(1, 2, "nested", 300)) {
    const auto target = words_of(pair.target);
    EXPECT_EQ(std::count(target.begin(), target.end(), "dass"), 2) << pair.target;
    EXPECT_EQ(pair.tags.front(), "nested");
  }
  for (const ToyPair& pair : toy_pairs(1, 2, "train", 20000)) {
    const auto target = words_of(pair.target);
    EXPECT_LE(std::count(target.begin(), target.end(), "dass"), 1) << pair.target;
  }
}

// A word-level model can only produce forms that it has seen often enough.
TEST(ToyCorpus, EveryFormOfTheOtherSplitsIsCommonInTraining) {
  std::unordered_map<std::string, int> source_counts, target_counts;
  for (const ToyPair& pair : toy_pairs(1, 2, "train", 60000)) {
    for (const std::string& word : words_of(pair.source)) ++source_counts[word];
    for (const std::string& word : words_of(pair.target)) ++target_counts[word];
  }
  EXPECT_GT(source_counts.size(), 250u);
  EXPECT_GT(target_counts.size(), 450u);
  for (const std::string_view split : {"iid", "pair", "role", "nested", "long"})
    for (const ToyPair& pair : toy_pairs(1, 2, split, split == "long" ? 20 : 2000)) {
      for (const std::string& word : words_of(pair.source))
        EXPECT_GE(source_counts[word], 20) << word;
      for (const std::string& word : words_of(pair.target))
        EXPECT_GE(target_counts[word], 20) << word;
    }
}

TEST(ToyCorpus, RefusesBadArguments) {
  for (const int64_t level : {int64_t{0}, int64_t{4}, int64_t{-1}})
    EXPECT_EQ(
        test::error_of([&] { ToyCorpus(1, level, "train"); }),
        "toy corpus: there is no such level, got " + std::to_string(level) + "; use 1, 2 or 3");
  for (const std::string split : {"", "Train", "test", "train "})
    EXPECT_EQ(test::error_of([&] { toy_pairs(1, 2, split, 1); }),
              "toy corpus: there is no such split, got \"" + split +
                  "\"; use one of train, iid, pair, role, nested, long");
  for (const std::string split : {"nested", "long"})
    EXPECT_EQ(test::error_of([&] { toy_pairs(1, 1, split, 1); }),
              "toy corpus: the split \"" + split +
                  "\" needs sentences of several clauses, got level 1; use level 2 or 3");
  EXPECT_EQ(test::error_of([] { toy_pairs(1, 2, "train", -1); }),
            "toy corpus: the number of pairs is negative, got -1; use 0 or more");
}

}  // namespace
}  // namespace gs
