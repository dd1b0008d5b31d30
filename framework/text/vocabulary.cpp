#include "framework/text/vocabulary.h"

#include <algorithm>
#include <array>
#include <limits>

#include "framework/core/error.h"
#include "framework/text/utf8.h"

namespace gs {
namespace {

constexpr std::array<std::string_view, kControlIds> kControlNames{"<pad>", "<s>", "</s>", "<unk>"};

// Calls body(token) for each token of the line.
template <typename Body>
void for_each_token(const char* operation, TokenUnit unit, std::string_view line,
                    const Body& body) {
  check_utf8(operation, line);
  if (unit == TokenUnit::kCharacter) {
    for (const std::string_view character : split_characters(line)) body(character);
  } else {
    const std::string normalized = normalize_spaces(line);
    for (const std::string_view word : split_words(normalized)) body(word);
  }
}

}  // namespace

void TokenCounts::add(std::string_view line) {
  for_each_token("count_tokens", unit_, line, [this](std::string_view token) {
    const auto found = tokens_.find(token);
    if (found == tokens_.end())
      tokens_.emplace(token, 1);
    else
      ++found->second;
  });
  ++lines_;
}

void TokenCounts::add_lines(std::span<const std::string> lines) {
  for (const std::string& line : lines) add(line);
}

int64_t TokenCounts::of(std::string_view token) const {
  const auto found = tokens_.find(token);
  return found == tokens_.end() ? 0 : found->second;
}

Vocabulary::Vocabulary(TokenUnit unit, std::vector<std::string> tokens)
    : unit_(unit), tokens_(std::move(tokens)) {
  check(tokens_.size() <= std::numeric_limits<int32_t>::max() - kControlIds,
        "vocabulary: at most 2^31 - 5 tokens fit, got {}; raise minimum_count", tokens_.size());
  int32_t id = kControlIds;
  for (const std::string& token : tokens_) {
    check(ids_.emplace(token, id++).second, "vocabulary: token '{}' stands in it twice", token);
  }
}

Vocabulary::Vocabulary(const TokenCounts& counts, VocabularyConfig config)
    : Vocabulary(counts.unit(), [&] {
        check(config.minimum_count >= 1, "vocabulary: minimum_count must be 1 or more, got {}",
              config.minimum_count);
        check(config.maximum_size == 0 || config.maximum_size > kControlIds,
              "vocabulary: maximum_size must be 0 (no limit) or at least {}, got {}",
              kControlIds + 1, config.maximum_size);
        std::vector<std::pair<std::string_view, int64_t>> kept;
        for (const auto& [token, count] : counts.tokens())
          if (count >= config.minimum_count) kept.emplace_back(token, count);
        check(
            !kept.empty(),
            "vocabulary: no token is left, got {} lines with {} distinct tokens and minimum_count "
            "{}; give more text or a lower minimum_count",
            counts.lines(), counts.tokens().size(), config.minimum_count);
        std::sort(kept.begin(), kept.end(), [](const auto& a, const auto& b) {
          return a.second != b.second ? a.second > b.second : a.first < b.first;
        });
        if (config.maximum_size > 0)
          kept.resize(
              std::min(kept.size(), static_cast<size_t>(config.maximum_size - kControlIds)));
        std::vector<std::string> tokens;
        tokens.reserve(kept.size());
        for (const auto& [token, count] : kept) tokens.emplace_back(token);
        return tokens;
      }()) {}

std::string_view Vocabulary::token(int32_t id) const {
  check(id >= 0 && id < size(), "vocabulary: id {} is outside 0..{}", id, size() - 1);
  if (id < kControlIds) return kControlNames[static_cast<size_t>(id)];
  return tokens_[static_cast<size_t>(id - kControlIds)];
}

int32_t Vocabulary::id(std::string_view token) const {
  const auto found = ids_.find(token);
  return found == ids_.end() ? kUnknownId : found->second;
}

std::vector<int32_t> Vocabulary::encode(std::string_view line) const {
  std::vector<int32_t> ids;
  for_each_token("encode", unit_, line, [&](std::string_view token) { ids.push_back(id(token)); });
  return ids;
}

Sequences Vocabulary::encode_lines(std::span<const std::string> lines) const {
  Sequences sequences;
  for (const std::string& line : lines) sequences.append(encode(line));
  return sequences;
}

std::string Vocabulary::decode(std::span<const int32_t> ids) const {
  std::string line;
  for (const int32_t id : ids) {
    const std::string_view written = token(id);  // checks the id
    if (id < kControlIds && id != kUnknownId) continue;
    if (unit_ == TokenUnit::kWord && !line.empty()) line += ' ';
    line += written;
  }
  return line;
}

bool Vocabulary::operator==(const Vocabulary& other) const {
  return unit_ == other.unit_ && tokens_ == other.tokens_;
}

}  // namespace gs
