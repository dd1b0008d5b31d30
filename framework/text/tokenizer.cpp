#include "framework/text/tokenizer.h"

namespace gs {

Tokenizer Tokenizer::from_bytes(std::string_view bytes) {
  if (bytes.starts_with(BytePairVocabulary::kStoredMark))
    return BytePairVocabulary::from_bytes(bytes);
  if (bytes.starts_with(SentencePiece::kStoredMark)) return SentencePiece::from_bytes(bytes);
  return Vocabulary::from_bytes(bytes);
}

std::string Tokenizer::unit() const {
  if (std::holds_alternative<BytePairVocabulary>(kind_)) return "byte-pair";
  if (std::holds_alternative<SentencePiece>(kind_)) return "sentencepiece";
  return std::get<Vocabulary>(kind_).unit() == TokenUnit::kWord ? "word" : "character";
}

int64_t Tokenizer::size() const {
  return std::visit([](const auto& kind) { return kind.size(); }, kind_);
}

std::string_view Tokenizer::token(int32_t id) const {
  return std::visit([=](const auto& kind) { return kind.token(id); }, kind_);
}

int32_t Tokenizer::id(std::string_view token) const {
  return std::visit([=](const auto& kind) { return kind.id(token); }, kind_);
}

std::vector<int32_t> Tokenizer::encode(std::string_view line) const {
  return std::visit([=](const auto& kind) { return kind.encode(line); }, kind_);
}

Sequences Tokenizer::encode_lines(std::span<const std::string> lines) const {
  return std::visit([=](const auto& kind) { return kind.encode_lines(lines); }, kind_);
}

std::string Tokenizer::decode(std::span<const int32_t> ids) const {
  return std::visit([=](const auto& kind) { return kind.decode(ids); }, kind_);
}

std::string Tokenizer::to_bytes() const {
  return std::visit([](const auto& kind) { return kind.to_bytes(); }, kind_);
}

}  // namespace gs
