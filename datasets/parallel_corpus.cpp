#include "datasets/parallel_corpus.h"

#include <algorithm>
#include <array>
#include <optional>
#include <string_view>

#include "datasets/line_reader.h"
#include "framework/core/error.h"
#include "framework/text/utf8.h"

namespace gs {
namespace {

constexpr std::array<std::string_view, 6> kReasons{
    "column missing", "not UTF-8", "NUL byte", "blank", "too many words", "word too long"};

std::string_view reason(Defect defect) { return kReasons[static_cast<size_t>(defect)]; }

// One side of a pair as it stands in its file.
struct Field {
  const LineReader* reader;
  std::string_view bytes;
  int64_t offset;
};

class CorpusBuilder {
 public:
  CorpusBuilder(std::vector<std::string> files, const ParallelCorpusConfig& config)
      : config_(config) {
    check(config.maximum_words >= 1 && config.maximum_word_bytes >= 1,
          "read_corpus: limits must be 1 or more, got maximum_words {} and maximum_word_bytes {}",
          config.maximum_words, config.maximum_word_bytes);
    corpus_.report.files = std::move(files);
  }

  void add(const Field& source, const Field& target) {
    ++corpus_.report.lines;
    std::string source_text, target_text;
    if (!accept(source, source_text) || !accept(target, target_text)) return;
    corpus_.report.copies += source_text == target_text;
    corpus_.source.push_back(std::move(source_text));
    corpus_.target.push_back(std::move(target_text));
    corpus_.lines.push_back(source.reader->number());
  }

  void leave_out(const Field& field, Defect defect, int64_t position = 0) {
    corpus_.report.left_out.push_back(
        {field.reader->path(), field.reader->number(), field.offset + position, defect});
  }

  void add_without_columns(const Field& line) {
    ++corpus_.report.lines;
    leave_out(line, line.bytes.empty() ? Defect::kBlank : Defect::kMissingColumn);
  }

  ParallelCorpus finish() {
    CorpusReport& report = corpus_.report;
    report.pairs = corpus_.count();
    check(report.lines > 0, "read_corpus: no pairs, {} without a line; give a file with text",
          report.files.size() == 1 ? report.files[0] + " is"
                                   : report.files[0] + " and " + report.files[1] + " are");
    check(report.pairs > 0,
          "read_corpus: no usable pair, got {}; check the encoding and the format",
          report.summary(1));
    return std::move(corpus_);
  }

 private:
  // The normalized text of a field, or false after reporting what is wrong with it.
  bool accept(const Field& field, std::string& text) {
    const std::optional<int64_t> invalid = first_invalid_utf8(field.bytes);
    const size_t nul = field.bytes.find('\0');
    if (invalid && nul != std::string_view::npos)
      fail(
          "read_corpus: {} is binary, not UTF-8 text: byte {:#04x} at offset {}, with NUL bytes in "
          "the same line {}; give a text file",
          field.reader->path(), static_cast<uint8_t>(field.bytes[static_cast<size_t>(*invalid)]),
          field.offset + *invalid, field.reader->number());
    if (invalid) return leave_out(field, Defect::kInvalidUtf8, *invalid), false;
    if (nul != std::string_view::npos)
      return leave_out(field, Defect::kNulByte, static_cast<int64_t>(nul)), false;
    text = normalize_spaces(field.bytes);
    if (text.empty()) return leave_out(field, Defect::kBlank), false;
    if (std::count(text.begin(), text.end(), ' ') + 1 > config_.maximum_words)
      return leave_out(field, Defect::kTooManyWords), false;
    for (const std::string_view word : split_words(text))
      if (static_cast<int64_t>(word.size()) > config_.maximum_word_bytes)
        return leave_out(field, Defect::kLongWord), false;
    return true;
  }

  ParallelCorpusConfig config_;
  ParallelCorpus corpus_;
};

// The column of that number (from 1), if the line has as many.
std::optional<Field> column(const LineReader& reader, int64_t number) {
  const std::string_view line = reader.line();
  size_t begin = 0;
  for (int64_t i = 1; i < number; ++i) {
    const size_t tab = line.find('\t', begin);
    if (tab == std::string_view::npos) return std::nullopt;
    begin = tab + 1;
  }
  const size_t end = std::min(line.find('\t', begin), line.size());
  return Field{&reader, line.substr(begin, end - begin),
               reader.offset() + static_cast<int64_t>(begin)};
}

Field whole_line(const LineReader& reader) { return {&reader, reader.line(), reader.offset()}; }

}  // namespace

ParallelCorpus read_parallel_corpus(const std::string& source_file, const std::string& target_file,
                                    ParallelCorpusConfig config) {
  LineReader source(source_file), target(target_file);
  CorpusBuilder builder({source_file, target_file}, config);
  bool more_source = source.next(), more_target = target.next();
  while (more_source && more_target) {
    builder.add(whole_line(source), whole_line(target));
    more_source = source.next();
    more_target = target.next();
  }
  while (more_source) more_source = source.next();  // count the rest
  while (more_target) more_target = target.next();
  check(source.number() == target.number(),
        "read_corpus: line counts differ, got {} in {} and {} in {}; every line needs its "
        "translation in the line of the same number",
        source.number(), source_file, target.number(), target_file);
  return builder.finish();
}

ParallelCorpus read_parallel_tsv(const std::string& file, ParallelCorpusConfig config) {
  check(config.source_column >= 1 && config.target_column >= 1 &&
            config.source_column != config.target_column,
        "read_corpus: columns are two different numbers from 1 on, got {} and {}",
        config.source_column, config.target_column);
  LineReader reader(file);
  CorpusBuilder builder({file}, config);
  while (reader.next()) {
    const std::optional<Field> source = column(reader, config.source_column);
    const std::optional<Field> target = column(reader, config.target_column);
    if (source && target)
      builder.add(*source, *target);
    else
      builder.add_without_columns(whole_line(reader));
  }
  return builder.finish();
}

std::string LeftOutPair::text() const {
  return fmt::format("{}:{}: {} (byte {})", file, line, reason(defect), offset);
}

std::string CorpusReport::summary(int64_t examples) const {
  std::array<int64_t, kReasons.size()> counts{};
  for (const LeftOutPair& pair : left_out) ++counts[static_cast<size_t>(pair.defect)];
  std::string text = files.empty() ? "" : files[0];
  for (size_t i = 1; i < files.size(); ++i) text += ", " + files[i];
  text += fmt::format(": {} lines, {} pairs, {} left out", lines, pairs, left_out.size());
  std::string reasons;
  for (size_t i = 0; i < counts.size(); ++i)
    if (counts[i] > 0)
      reasons += fmt::format("{}{} {}", reasons.empty() ? "" : ", ", counts[i], kReasons[i]);
  if (!reasons.empty()) text += " (" + reasons + ")";
  if (copies > 0)
    text += fmt::format(", {} copied untranslated ({:.1f} %)", copies,
                        100.0 * static_cast<double>(copies) / static_cast<double>(pairs));
  const auto shown = std::min(static_cast<size_t>(std::max<int64_t>(examples, 0)), left_out.size());
  for (size_t i = 0; i < shown; ++i) text += "\n  " + left_out[i].text();
  if (shown < left_out.size() && shown > 0)
    text += fmt::format("\n  and {} more", left_out.size() - shown);
  return text;
}

}  // namespace gs
