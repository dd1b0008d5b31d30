// Files with one defect each, as they are met in the wild: what the readers of parallel text
// answer.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "datasets/parallel_corpus.h"
#include "framework/text/vocabulary.h"
#include "tests/support/support.h"

namespace gs {
namespace {

using testing::AllOf;
using testing::EndsWith;
using testing::HasSubstr;
using Lines = std::vector<std::string>;

constexpr int64_t kPairs = 20;

// Every line differs, and the German ones have an umlaut each.
Lines english() {
  Lines lines;
  for (int64_t i = 1; i <= kPairs; ++i) lines.push_back(fmt::format("girl number {} sings .", i));
  return lines;
}
Lines german() {
  Lines lines;
  for (int64_t i = 1; i <= kPairs; ++i)
    lines.push_back(fmt::format("Mädchen Nummer {} singt .", i));
  return lines;
}

std::string joined(const Lines& lines, const std::string& end = "\n") {
  std::string text;
  for (const std::string& line : lines) text += line + end;
  return text;
}

// The lines with one of them, counted from 1, changed.
Lines with_line(Lines lines, int64_t number, const std::string& line) {
  lines[static_cast<size_t>(number - 1)] = line;
  return lines;
}

// Where a line starts in the file, in bytes.
int64_t start_of(const Lines& lines, int64_t number) {
  return static_cast<int64_t>(joined(Lines(lines.begin(), lines.begin() + number - 1)).size());
}

std::string replaced(std::string text, const std::string& found, const std::string& other) {
  const size_t place = text.find(found);
  EXPECT_NE(place, std::string::npos) << found;
  return text.replace(place, found.size(), other);
}

Lines each_replaced(Lines lines, const std::string& found, const std::string& other) {
  for (std::string& line : lines) line = replaced(line, found, other);
  return lines;
}

class DirtyFiles : public testing::Test {
 protected:
  ParallelCorpus read(const std::string& source, const std::string& target) const {
    return read_parallel_corpus(folder_.write("x.en", source), folder_.write("x.de", target));
  }
  ParallelCorpus read(const Lines& source, const Lines& target) const {
    return read(joined(source), joined(target));
  }
  std::string error_of(const std::string& source, const std::string& target) const {
    return test::error_of([&] { read(source, target); });
  }
  ParallelCorpus read_tsv(const std::string& text) const {
    return read_parallel_tsv(folder_.write("x.tsv", text));
  }

  static void expect_clean(const ParallelCorpus& corpus) {
    EXPECT_EQ(corpus.source, english());
    EXPECT_EQ(corpus.target, german());
    EXPECT_EQ(corpus.report.lines, kPairs);
    EXPECT_TRUE(corpus.report.left_out.empty());
  }
  // All pairs but the one of that line, which is reported.
  static void expect_left_out(const ParallelCorpus& corpus, int64_t line,
                              const std::string& report) {
    Lines source = english(), target = german();
    source.erase(source.begin() + line - 1);
    target.erase(target.begin() + line - 1);
    EXPECT_EQ(corpus.source, source);
    EXPECT_EQ(corpus.target, target);
    EXPECT_EQ(corpus.report.lines, kPairs);
    ASSERT_EQ(corpus.report.left_out.size(), 1u);
    EXPECT_THAT(corpus.report.left_out[0].text(), EndsWith(report));
  }

  const test::TemporaryDirectory folder_;
};

TEST_F(DirtyFiles, LineEndsAndMarksOfOtherSystems) {
  expect_clean(read(english(), german()));
  expect_clean(read(joined(english(), "\r\n"), joined(german(), "\r\n")));
  expect_clean(read(joined(english(), "\r\n"), joined(german())));
  expect_clean(read("\xEF\xBB\xBF" + joined(english()), "\xEF\xBB\xBF" + joined(german())));
  std::string open = joined(english());
  open.pop_back();
  expect_clean(read(open, joined(german())));
  EXPECT_THAT(error_of(joined(english(), "\r"), joined(german(), "\r")),
              AllOf(HasSubstr("end in CR alone"), HasSubstr("got 20 CR and no LF")));
}

TEST_F(DirtyFiles, SpacesThatEndNoLine) {
  expect_clean(read(each_replaced(english(), " ", "\u00A0"), german()));
  expect_clean(read(each_replaced(english(), "number", "num\u200Bber"), german()));
  for (const char* space : {"\u2028", "\v", "\f", "\u0085", "\t", " \v \f \u0085 "}) {
    expect_clean(read(with_line(english(), 9, replaced(english()[8], " ", space)), german()));
  }
}

TEST_F(DirtyFiles, UnusablePairsAreLeftOutAndReported) {
  const auto expect_target = [this](int64_t line, const std::string& text,
                                    const std::string& reason, int64_t offset) {
    const Lines lines = with_line(german(), line, text);
    expect_left_out(
        read(english(), lines), line,
        fmt::format("x.de:{}: {} (byte {})", line, reason, start_of(lines, line) + offset));
  };
  expect_target(7, "", "blank", 0);
  expect_target(7, " \u00A0\t", "blank", 0);
  expect_target(4,
                "M\xE4"
                "dchen singen .",
                "not UTF-8", 1);                              // Latin-1
  expect_target(18, "ein M\xC3", "not UTF-8", 5);             // cut
  expect_target(3, "ein\xC0\xA0Lied", "not UTF-8", 3);        // overlong
  expect_target(3, "ein \xED\xA0\x80 Lied", "not UTF-8", 4);  // a surrogate
  expect_target(13, std::string("ein\0 Lied", 9), "NUL byte", 3);
  std::string many;
  for (int i = 0; i < 3000; ++i) many += "la ";
  expect_target(1, many, "too many words", 0);
  expect_target(2, std::string(200'000, 'x'), "word too long", 0);
  expect_left_out(read(with_line(english(), 7, ""), german()), 7,
                  fmt::format("x.en:7: blank (byte {})", start_of(english(), 7)));
}

TEST_F(DirtyFiles, BlankLinesAtTheEnd) {
  const ParallelCorpus corpus = read(joined(english()) + "\n", joined(german()) + "\n");
  EXPECT_EQ(corpus.source, english());
  EXPECT_EQ(corpus.target, german());
  EXPECT_THAT(corpus.report.summary(), HasSubstr("21 lines, 20 pairs, 1 left out (1 blank)"));
  EXPECT_THAT(error_of(joined(english()) + "\n", joined(german())),
              AllOf(HasSubstr("got 21 in "), HasSubstr("x.en and 20 in ")));
}

TEST_F(DirtyFiles, ShiftedLinesAreRefusedWithBothCounts) {
  Lines shorter = german(), longer = german();
  shorter.erase(shorter.begin() + 9);
  longer.insert(longer.begin() + 9, "singt .");
  EXPECT_THAT(error_of(joined(english()), joined(shorter)),
              AllOf(HasSubstr("got 20 in "), HasSubstr("and 19 in " + folder_.file("x.de"))));
  EXPECT_THAT(error_of(joined(english()), joined(longer)),
              AllOf(HasSubstr("got 20 in "), HasSubstr("and 21 in ")));
}

TEST_F(DirtyFiles, FilesWithoutTextAreRefused) {
  EXPECT_THAT(error_of("", ""), AllOf(HasSubstr("no pairs"), HasSubstr("x.de")));
  const std::string blank(kPairs, '\n');
  EXPECT_THAT(error_of(blank, blank),
              AllOf(HasSubstr("no usable pair"), HasSubstr("20 left out (20 blank)")));
  std::string wide("\xFF\xFE", 2);  // UTF-16
  for (const char letter : joined(english())) (wide += letter) += '\0';
  EXPECT_THAT(error_of(wide, joined(german())),
              AllOf(HasSubstr("x.en is UTF-16"), HasSubstr("not UTF-8")));
  // Archives made on macOS hold such files beside the real ones; pytorch/text#2221.
  std::string double_file("\0\x05\x16\x07\0\x02", 6);
  double_file += "Mac OS X" + std::string(23, '\0') + "\x80 and so on";
  EXPECT_THAT(
      error_of(double_file, joined(german())),
      AllOf(HasSubstr("x.en is binary, not UTF-8 text"), HasSubstr("byte 0x80 at offset 37")));
}

TEST_F(DirtyFiles, TextThatLooksLikeSomethingElseStaysText) {
  const Lines spelled = with_line(english(), 5, "a @@ girl </s> sings <unk> songs .");
  const ParallelCorpus corpus = read(spelled, german());
  EXPECT_EQ(corpus.source, spelled);
  TokenCounts counts(TokenUnit::kWord);
  counts.add_lines(corpus.source);
  for (const int32_t id : Vocabulary(counts).encode_lines(corpus.source).tokens)
    EXPECT_GE(id, kControlIds);
  // Decomposed letters are composed by nobody.
  const Lines decomposed = each_replaced(german(), "ä", "a\u0308");
  EXPECT_EQ(read(english(), decomposed).target, decomposed);
  EXPECT_THAT(read(english(), english()).report.summary(),
              HasSubstr("20 pairs, 0 left out, 20 copied untranslated (100.0 %)"));
}

TEST_F(DirtyFiles, FilesWithTabs) {
  const auto rows = [](const std::string& between, const std::string& end) {
    Lines lines;
    for (size_t i = 0; i < kPairs; ++i) lines.push_back(english()[i] + between + german()[i] + end);
    return lines;
  };
  const Lines plain = rows("\t", "");
  expect_clean(read_tsv(joined(plain)));
  expect_clean(read_tsv(joined(rows("\t", "\tby somebody, CC BY"))));
  expect_clean(read_tsv(joined(with_line(plain, 3, plain[2] + "\r"))));
  expect_left_out(read_tsv(joined(with_line(plain, 8, english()[7]))), 8,
                  fmt::format("x.tsv:8: column missing (byte {})", start_of(plain, 8)));
  const ParallelCorpus quoted = read_tsv(joined(with_line(plain, 8, "\"" + plain[7])));
  EXPECT_EQ(quoted.source, with_line(english(), 8, "\"" + english()[7]));
  EXPECT_EQ(quoted.target, german());
}

}  // namespace
}  // namespace gs
