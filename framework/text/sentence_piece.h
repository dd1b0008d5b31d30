#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "framework/text/sequences.h"

namespace gs {

struct SentencePieceConfig {
  // Unigram: Kudo, "Subword Regularization", ACL 2018. Byte pairs: Sennrich et al., ACL 2016.
  enum class Model { kUnigram, kBytePairs };
  // Identity leaves every character as it is. NFKC is that of Unicode with the changes for
  // translation that SentencePiece calls nmt_nfkc; it also drops needless spaces.
  enum class Normalizer { kIdentity, kNfkc };

  int64_t vocabulary_size = 8000;  // the control ids and the pieces of the 256 bytes included
  Model model = Model::kUnigram;
  Normalizer normalizer = Normalizer::kIdentity;
  double character_coverage = 1;  // share of the text's characters that become pieces, from 0.98
};

// Pieces of text that are learned from text; spaces are part of them, so that no other tokenizer is
// needed: Kudo and Richardson, "SentencePiece", EMNLP 2018. Characters without a piece are written
// in the pieces of their bytes, <0x00> to <0xFF>, so that no text is unknown.
class SentencePiece {
 public:
  static constexpr std::string_view kStoredMark = "GSPIECE\n";

  // Learns the pieces of these lines: the same ones whenever called with the same. Refused: lines
  // that are not UTF-8, a text of no characters, and a size that the text has no pieces for, with
  // the largest that it has. Lines with U+2585 are not learned from.
  static SentencePiece train(std::span<const std::string> lines,
                             const SentencePieceConfig& config = {});
  // From what to_bytes gave; damaged or foreign bytes are refused.
  static SentencePiece from_bytes(std::string_view bytes);

  int64_t size() const;
  // In a piece each space is U+2581; a control id gives its name.
  std::string_view token(int32_t id) const;
  int32_t id(std::string_view token) const;  // kUnknownId for what is no piece

  // Of the line as it stands. A line that is not UTF-8 is refused with the byte's offset.
  std::vector<int32_t> encode(std::string_view line) const;
  Sequences encode_lines(std::span<const std::string> lines) const;
  // With the identity decode(encode(line)) is the line, whatever UTF-8 it holds. Bytes that are no
  // character together become U+FFFD.
  std::string decode(std::span<const int32_t> ids) const;

  std::string to_bytes() const;  // with the model as SentencePiece stores it

  bool operator==(const SentencePiece& other) const;

 private:
  struct Model;
  explicit SentencePiece(std::shared_ptr<const Model> model) : model_(std::move(model)) {}

  std::shared_ptr<const Model> model_;  // never changed
};

}  // namespace gs
