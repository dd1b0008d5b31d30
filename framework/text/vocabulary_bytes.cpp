// The contents of a stored vocabulary: u32 unit (0 word, 1 character), u32 number of tokens, and
// each token as a block.
#include "framework/core/error.h"
#include "framework/text/stored_bytes.h"
#include "framework/text/utf8.h"
#include "framework/text/vocabulary.h"

namespace gs {
namespace {

constexpr uint32_t kVersion = 1;

void check_token(TokenUnit unit, std::string_view token) {
  const bool whole = !first_invalid_utf8(token) &&
                     (unit == TokenUnit::kCharacter
                          ? split_characters(token).size() == 1
                          : normalize_spaces(token) == token && split_words(token).size() == 1);
  check(whole, "vocabulary: a stored token of {} bytes is no {}; restore the file from a copy",
        token.size(), unit == TokenUnit::kCharacter ? "character" : "word");
}

}  // namespace

std::string Vocabulary::to_bytes() const {
  StoredBytesWriter writer(kStoredMark, kVersion);
  writer.number(unit_ == TokenUnit::kWord ? 0 : 1);
  writer.number(static_cast<uint32_t>(tokens_.size()));
  for (const std::string& token : tokens_) writer.block(token);
  return writer.finish();
}

Vocabulary Vocabulary::from_bytes(std::string_view bytes) {
  StoredBytesReader reader(bytes, kStoredMark, kVersion, "vocabulary");
  const uint32_t unit_number = reader.number(), count = reader.number();
  check(unit_number <= 1, "vocabulary: the stored unit must be 0 or 1, got {}", unit_number);
  const TokenUnit unit = unit_number == 0 ? TokenUnit::kWord : TokenUnit::kCharacter;
  std::vector<std::string> tokens;
  for (uint32_t i = 0; i < count; ++i) {
    const std::string_view token = reader.block();
    check_token(unit, token);
    tokens.emplace_back(token);
  }
  reader.finish();
  return Vocabulary(unit, std::move(tokens));
}

}  // namespace gs
