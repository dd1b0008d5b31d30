#include "framework/text/sentence_piece.h"

#include <fmt/format.h>
#include <sentencepiece_processor.h>
#include <sentencepiece_trainer.h>

#include <algorithm>

#include "framework/core/error.h"
#include "framework/text/stored_bytes.h"
#include "framework/text/utf8.h"
#include "framework/text/vocabulary.h"

namespace gs {
namespace {

using Normalizer = SentencePieceConfig::Normalizer;

constexpr uint32_t kVersion = 1;
constexpr int64_t kBytePieces = 256, kLargestVocabulary = 1'000'000;
// What is learned depends on how the sums are split, so this is not that of the machine.
constexpr int kTrainingThreads = 8;

// A space is U+2581 inside of SentencePiece, so that a U+2581 of the text would become a space:
// where nothing else changes the text, it is written as U+001A and "_", U+001A as itself twice.
constexpr std::string_view kSpaceMark = "\u2581";
constexpr char kEscape = '\x1A', kEscapedMark = '_';

std::string escaped(std::string_view line) {
  std::string text;
  text.reserve(line.size());
  while (!line.empty()) {
    const size_t size = line.starts_with(kSpaceMark) ? kSpaceMark.size() : 1;
    if (size > 1) {
      (text += kEscape) += kEscapedMark;
    } else {
      text.append(line.front() == kEscape ? 2 : 1, line.front());
    }
    line.remove_prefix(size);
  }
  return text;
}

std::string unescaped(std::string_view text) {
  std::string line;
  line.reserve(text.size());
  for (size_t i = 0; i < text.size(); ++i) {
    if (text[i] == kEscape && i + 1 < text.size() && text[i + 1] == kEscapedMark) {
      line += kSpaceMark;
      ++i;
    } else {
      line += text[i];
      if (text[i] == kEscape && i + 1 < text.size() && text[i + 1] == kEscape) ++i;
    }
  }
  return line;
}

std::string prepared(std::string_view line, Normalizer normalizer) {
  return normalizer == Normalizer::kIdentity ? escaped(line) : std::string(line);
}

// Gives the lines to the trainer one at a time.
class Lines : public sentencepiece::SentenceIterator {
 public:
  Lines(std::span<const std::string> lines, Normalizer normalizer)
      : lines_(lines), normalizer_(normalizer) {
    prepare();
  }

  bool done() const override { return next_ == lines_.size(); }
  void Next() override {
    ++next_;
    prepare();
  }
  const std::string& value() const override { return line_; }
  sentencepiece::util::Status status() const override { return {}; }

 private:
  void prepare() {
    if (!done()) line_ = prepared(lines_[next_], normalizer_);
  }

  std::span<const std::string> lines_;
  Normalizer normalizer_;
  size_t next_ = 0;
  std::string line_;
};

void check_config(const SentencePieceConfig& config) {
  check(config.vocabulary_size > kControlIds + kBytePieces &&
            config.vocabulary_size <= kLargestVocabulary,
        "sentence_piece: the vocabulary must have {} to {} pieces, got {}",
        kControlIds + kBytePieces + 1, kLargestVocabulary, config.vocabulary_size);
  check(config.character_coverage >= 0.98 && config.character_coverage <= 1,
        "sentence_piece: the character coverage must be 0.98 to 1, got {}",
        config.character_coverage);
}

void check_lines(std::span<const std::string> lines) {
  bool has_text = false;
  for (size_t i = 0; i < lines.size(); ++i) {
    const std::optional<int64_t> invalid = first_invalid_utf8(lines[i]);
    check(!invalid, "sentence_piece: line {} is not UTF-8 at byte {}; convert it to UTF-8", i + 1,
          invalid.value_or(0));
    has_text = has_text || !split_words(lines[i]).empty();
  }
  check(has_text, "sentence_piece: there is no text to learn from, got {} blank lines; give more",
        lines.size());
}

std::unordered_map<std::string, std::string> arguments_of(const SentencePieceConfig& config) {
  const bool identity = config.normalizer == Normalizer::kIdentity;
  return {{"vocab_size", std::to_string(config.vocabulary_size)},
          {"model_type", config.model == SentencePieceConfig::Model::kUnigram ? "unigram" : "bpe"},
          {"character_coverage", fmt::format("{}", config.character_coverage)},
          {"normalization_rule_name", identity ? "identity" : "nmt_nfkc"},
          {"remove_extra_whitespaces", identity ? "false" : "true"},
          {"byte_fallback", "true"},
          {"pad_id", std::to_string(kPaddingId)},
          {"bos_id", std::to_string(kBeginId)},
          {"eos_id", std::to_string(kEndId)},
          {"unk_id", std::to_string(kUnknownId)},
          {"unk_surface", "<unk>"},
          {"num_threads", std::to_string(kTrainingThreads)},
          {"max_sentence_length", "1000000000"},  // longer lines would be passed over
          {"minloglevel", "3"}};
}

// The number behind the last `mark` of a message, or 0.
int64_t number_after(std::string_view message, std::string_view mark) {
  const size_t found = message.rfind(mark);
  int64_t number = 0;
  if (found == std::string_view::npos) return number;
  for (const char c : message.substr(found + mark.size())) {
    if (c < '0' || c > '9') break;
    number = 10 * number + (c - '0');
  }
  return number;
}

[[noreturn]] void fail_training(std::string_view message, const SentencePieceConfig& config) {
  if (const int64_t largest = number_after(message, "Please set it to a value <= "); largest > 0) {
    fail(
        "sentence_piece: the text has pieces for a vocabulary of at most {}, got {}; choose a "
        "smaller one, or give more text",
        largest, config.vocabulary_size);
  }
  if (const int64_t least = number_after(message, " vs "); least > 0) {
    fail(
        "sentence_piece: the characters of the text need a vocabulary of at least {}, got {}; "
        "choose a larger one, or a smaller character coverage",
        least, config.vocabulary_size);
  }
  fail("sentence_piece: training failed, got: {}", message);
}

}  // namespace

struct SentencePiece::Model {
  Model(std::string proto, Normalizer chosen) : bytes(std::move(proto)), normalizer(chosen) {
    const auto status = processor.LoadFromSerializedProto(bytes);
    check(status.ok() && processor.pad_id() == kPaddingId && processor.bos_id() == kBeginId &&
              processor.eos_id() == kEndId && processor.unk_id() == kUnknownId &&
              processor.GetPieceSize() > kControlIds,
          "sentence_piece: the {} bytes of the model are none of this program's; restore the file "
          "from a copy",
          bytes.size());
  }

  std::string bytes;
  Normalizer normalizer;
  sentencepiece::SentencePieceProcessor processor;
};

SentencePiece SentencePiece::train(std::span<const std::string> lines,
                                   const SentencePieceConfig& config) {
  check_config(config);
  check_lines(lines);
  Lines iterator(lines, config.normalizer);
  std::string bytes;
  const auto status =
      sentencepiece::SentencePieceTrainer::Train(arguments_of(config), &iterator, &bytes);
  if (!status.ok()) fail_training(status.error_message(), config);
  return SentencePiece(std::make_shared<const Model>(std::move(bytes), config.normalizer));
}

int64_t SentencePiece::size() const { return model_->processor.GetPieceSize(); }

std::string_view SentencePiece::token(int32_t id) const {
  check(id >= 0 && id < size(), "sentence_piece: id {} is outside 0..{}", id, size() - 1);
  return model_->processor.IdToPiece(id);
}

int32_t SentencePiece::id(std::string_view token) const {
  return model_->processor.PieceToId(token);
}

std::vector<int32_t> SentencePiece::encode(std::string_view line) const {
  check_utf8("sentence_piece", line);
  std::vector<int32_t> ids;
  const auto status = model_->processor.Encode(prepared(line, model_->normalizer), &ids);
  check(status.ok(), "sentence_piece: a line of {} bytes cannot be split, got: {}", line.size(),
        status.error_message());
  return ids;
}

Sequences SentencePiece::encode_lines(std::span<const std::string> lines) const {
  Sequences sequences;
  for (const std::string& line : lines) sequences.append(encode(line));
  return sequences;
}

std::string SentencePiece::decode(std::span<const int32_t> ids) const {
  std::vector<int32_t> pieces;
  for (const int32_t id : ids) {
    (void)token(id);  // checks the id
    if (id >= kUnknownId) pieces.push_back(id);
  }
  std::string text;
  const auto status = model_->processor.Decode(pieces, &text);
  check(status.ok(), "sentence_piece: {} pieces cannot be joined, got: {}", pieces.size(),
        status.error_message());
  return model_->normalizer == Normalizer::kIdentity ? unescaped(text) : text;
}

std::string SentencePiece::to_bytes() const {
  StoredBytesWriter writer(kStoredMark, kVersion);
  writer.number(model_->normalizer == Normalizer::kIdentity ? 0 : 1);
  writer.block(model_->bytes);
  return writer.finish();
}

SentencePiece SentencePiece::from_bytes(std::string_view bytes) {
  StoredBytesReader reader(bytes, kStoredMark, kVersion, "sentence_piece");
  const uint32_t normalizer = reader.number();
  check(normalizer <= 1, "sentence_piece: the stored normaliser must be 0 or 1, got {}",
        normalizer);
  std::string model(reader.block());
  reader.finish();
  return SentencePiece(std::make_shared<const Model>(
      std::move(model), normalizer == 0 ? Normalizer::kIdentity : Normalizer::kNfkc));
}

bool SentencePiece::operator==(const SentencePiece& other) const {
  return model_->bytes == other.model_->bytes && model_->normalizer == other.model_->normalizer;
}

}  // namespace gs
