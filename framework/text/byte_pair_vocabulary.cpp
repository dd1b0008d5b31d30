#include "framework/text/byte_pair_vocabulary.h"

#include "framework/core/error.h"
#include "framework/text/stored_bytes.h"

namespace gs {
namespace {

constexpr uint32_t kVersion = 1;

Vocabulary vocabulary_of(const BytePairs& pairs, std::span<const std::string> lines,
                         VocabularyConfig config) {
  TokenCounts counts(TokenUnit::kWord);
  counts.add_lines(pairs.apply_lines(lines));
  return Vocabulary(counts, config);
}

}  // namespace

BytePairVocabulary::BytePairVocabulary(BytePairs pairs, Vocabulary pieces)
    : pairs_(std::move(pairs)), pieces_(std::move(pieces)) {}

BytePairVocabulary::BytePairVocabulary(BytePairs pairs, std::span<const std::string> lines,
                                       VocabularyConfig config)
    : pairs_(std::move(pairs)), pieces_(vocabulary_of(pairs_, lines, config)) {}

std::vector<int32_t> BytePairVocabulary::encode(std::string_view line) const {
  return pieces_.encode(pairs_.apply(line));
}

Sequences BytePairVocabulary::encode_lines(std::span<const std::string> lines) const {
  return pieces_.encode_lines(pairs_.apply_lines(lines));
}

std::string BytePairVocabulary::decode(std::span<const int32_t> ids) const {
  return BytePairs::join(pieces_.decode(ids));
}

std::string BytePairVocabulary::to_bytes() const {
  StoredBytesWriter writer(kStoredMark, kVersion);
  writer.block(pairs_.codes());
  writer.block(pieces_.to_bytes());
  return writer.finish();
}

BytePairVocabulary BytePairVocabulary::from_bytes(std::string_view bytes) {
  StoredBytesReader reader(bytes, kStoredMark, kVersion, "byte-pair vocabulary");
  BytePairs pairs = BytePairs::parse(reader.block(), "the stored list of merges");
  Vocabulary pieces = Vocabulary::from_bytes(reader.block());
  check(pieces.unit() == TokenUnit::kWord,
        "byte-pair vocabulary: the stored pieces are single characters; restore the file from a "
        "copy");
  reader.finish();
  return {std::move(pairs), std::move(pieces)};
}

}  // namespace gs
