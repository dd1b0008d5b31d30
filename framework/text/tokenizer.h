#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "framework/text/byte_pair_vocabulary.h"
#include "framework/text/sentence_piece.h"
#include "framework/text/vocabulary.h"

namespace gs {

// What turns a line of text into token ids and back, of any kind: words or characters of a
// vocabulary, byte pairs, or SentencePiece. The control ids kPaddingId to kUnknownId are the same
// for all.
class Tokenizer {
 public:
  using Kind = std::variant<Vocabulary, BytePairVocabulary, SentencePiece>;

  Tokenizer(Vocabulary words) : kind_(std::move(words)) {}            // NOLINT
  Tokenizer(BytePairVocabulary pieces) : kind_(std::move(pieces)) {}  // NOLINT
  Tokenizer(SentencePiece pieces) : kind_(std::move(pieces)) {}       // NOLINT
  // From what to_bytes gave; damaged or foreign bytes are refused.
  static Tokenizer from_bytes(std::string_view bytes);

  const Kind& kind() const { return kind_; }
  std::string unit() const;  // "word", "character", "byte-pair" or "sentencepiece"
  int64_t size() const;
  // The token of an id in 0..size() - 1, as it is shown; a control id gives its name.
  std::string_view token(int32_t id) const;
  // The id of a token as it is shown; kUnknownId for what is none.
  int32_t id(std::string_view token) const;

  // Without begin and end marks. A line that is not UTF-8 is refused with the byte's offset.
  std::vector<int32_t> encode(std::string_view line) const;
  Sequences encode_lines(std::span<const std::string> lines) const;
  // Plain text. Padding, begin and end marks write nothing, unknown tokens write "<unk>".
  std::string decode(std::span<const int32_t> ids) const;

  // All of it, for a checkpoint.
  std::string to_bytes() const;

  bool operator==(const Tokenizer& other) const = default;

 private:
  Kind kind_;
};

}  // namespace gs
