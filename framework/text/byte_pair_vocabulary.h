#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "framework/text/byte_pairs.h"
#include "framework/text/vocabulary.h"

namespace gs {

// The pieces of words by byte-pair merges, and their ids 4, 5, ...
class BytePairVocabulary {
 public:
  static constexpr std::string_view kStoredMark = "GSBPAIR\n";

  // With the pieces of these lines, the most frequent first. No piece at all is an error.
  BytePairVocabulary(BytePairs pairs, std::span<const std::string> lines,
                     VocabularyConfig config = {});
  // From what to_bytes gave; damaged or foreign bytes are refused.
  static BytePairVocabulary from_bytes(std::string_view bytes);

  int64_t size() const { return pieces_.size(); }
  // "@@" at its end, but for the last piece of a word; a control id gives its name.
  std::string_view token(int32_t id) const { return pieces_.token(id); }
  int32_t id(std::string_view token) const { return pieces_.id(token); }

  std::vector<int32_t> encode(std::string_view line) const;
  Sequences encode_lines(std::span<const std::string> lines) const;
  // Plain words. Where all pieces are known decode(encode(line)) is normalize_spaces(line).
  std::string decode(std::span<const int32_t> ids) const;

  std::string to_bytes() const;  // the merges and the pieces

  bool operator==(const BytePairVocabulary& other) const = default;

 private:
  BytePairVocabulary(BytePairs pairs, Vocabulary pieces);

  BytePairs pairs_;
  Vocabulary pieces_;
};

}  // namespace gs
