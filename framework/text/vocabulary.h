#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "framework/text/sequences.h"
#include "framework/text/token_map.h"

namespace gs {

// The control ids that every vocabulary has. They have no spelling: a literal "</s>" in a text is a
// word like any other. Their names <pad>, <s>, </s>, <unk> are for display alone.
constexpr int32_t kPaddingId = 0, kBeginId = 1, kEndId = 2, kUnknownId = 3;
constexpr int32_t kControlIds = 4;

// What one token is: a word by split_words, after normalize_spaces; or one code point, spaces and
// line ends included, the line taken as it stands.
enum class TokenUnit { kWord, kCharacter };

// How often each token occurs in the lines added so far. Lines that are not UTF-8 are refused.
class TokenCounts {
 public:
  explicit TokenCounts(TokenUnit unit) : unit_(unit) {}

  void add(std::string_view line);
  void add_lines(std::span<const std::string> lines);

  TokenUnit unit() const { return unit_; }
  int64_t lines() const { return lines_; }
  int64_t of(std::string_view token) const;
  const TokenMap<int64_t>& tokens() const { return tokens_; }

 private:
  TokenUnit unit_;
  int64_t lines_ = 0;
  TokenMap<int64_t> tokens_;
};

struct VocabularyConfig {
  int64_t minimum_count = 1;  // rarer tokens become unknown
  int64_t maximum_size = 0;   // control ids included; 0 is no limit
};

// Tokens and their ids 4, 5, ...
class Vocabulary {
 public:
  static constexpr std::string_view kStoredMark = "GSVOCAB\n";

  // The most frequent tokens first, equal counts in the order of their bytes. No token at all is
  // an error.
  explicit Vocabulary(const TokenCounts& counts, VocabularyConfig config = {});
  // From what to_bytes gave; damaged or foreign bytes are refused.
  static Vocabulary from_bytes(std::string_view bytes);

  TokenUnit unit() const { return unit_; }
  int64_t size() const { return kControlIds + static_cast<int64_t>(tokens_.size()); }
  // The token of an id in 0..size() - 1; a control id gives its name.
  std::string_view token(int32_t id) const;
  // The id of a token, never a control id but kUnknownId for what is not in the vocabulary.
  int32_t id(std::string_view token) const;

  // Without begin and end marks. A line that is not UTF-8 is refused with the byte's offset.
  std::vector<int32_t> encode(std::string_view line) const;
  Sequences encode_lines(std::span<const std::string> lines) const;
  // Padding, begin and end marks write nothing, unknown tokens write "<unk>". Where all tokens are
  // known decode(encode(line)) is normalize_spaces(line) for words, the line itself for characters.
  std::string decode(std::span<const int32_t> ids) const;

  // All of it, for a checkpoint: a version, the unit, the tokens, a checksum.
  std::string to_bytes() const;

  bool operator==(const Vocabulary& other) const;

 private:
  Vocabulary(TokenUnit unit, std::vector<std::string> tokens);

  TokenUnit unit_;
  std::vector<std::string> tokens_;  // of id 4, 5, ...
  TokenMap<int32_t> ids_;
};

}  // namespace gs
