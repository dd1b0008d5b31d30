// Walks tests/data/dirty/manifest.tsv: each broken file is answered as its row says.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>
#include <map>
#include <sstream>

#include "datasets/parallel_corpus.h"
#include "framework/text/utf8.h"
#include "framework/text/vocabulary.h"
#include "tests/support/support.h"

namespace gs {
namespace {

using testing::AllOf;
using testing::HasSubstr;

class DirtyFiles : public testing::Test {
 protected:
  static std::string path(const std::string& name) {
    return std::string(GS_TEST_DATA) + "/dirty/" + name;
  }
  static ParallelCorpus read(const std::string& name) {
    return name.ends_with(".tsv") ? read_parallel_tsv(path(name))
                                  : read_parallel_corpus(path(name + ".en"), path(name + ".de"));
  }
  static std::string error_for(const std::string& name) {
    return test::error_of([&] { read(name); });
  }

  void expect_clean(const std::string& name) {
    const ParallelCorpus corpus = read(name);
    EXPECT_EQ(corpus.source, clean_.source);
    EXPECT_EQ(corpus.target, clean_.target);
    EXPECT_TRUE(corpus.report.left_out.empty());
  }

  // All of clean's pairs but the one of that line, which is reported.
  void expect_left_out(const ParallelCorpus& corpus, int64_t line, const std::string& report) {
    ParallelCorpus expected = clean_;
    expected.source.erase(expected.source.begin() + line - 1);
    expected.target.erase(expected.target.begin() + line - 1);
    EXPECT_EQ(corpus.source, expected.source);
    EXPECT_EQ(corpus.target, expected.target);
    ASSERT_EQ(corpus.report.left_out.size(), 1u);
    EXPECT_EQ(corpus.report.lines, 20);
    EXPECT_THAT(corpus.report.left_out[0].text(), testing::EndsWith(report));
  }
  void expect_left_out(const std::string& name, int64_t line, const std::string& report) {
    expect_left_out(read(name), line, report);
  }

  using Rows = std::map<std::string, std::function<void(const std::string& name)>>;
  Rows listed_rows();
  Rows single_rows();

  const ParallelCorpus clean_ = read("clean");
};

TEST_F(DirtyFiles, CleanHasTwentyPairs) {
  ASSERT_EQ(clean_.count(), 20);
  EXPECT_EQ(clean_.source[8], "The old house is red.");
  EXPECT_EQ(clean_.target[8], "Das alte Haus ist rot.");
}

// Rows of one kind: clean, one pair left out, an error.
DirtyFiles::Rows DirtyFiles::listed_rows() {
  Rows rows;
  for (const char* name : {"clean", "crlf", "crlf_one_side", "bom", "no_final_newline", "nbsp",
                           "zero_width", "line_separator", "vt_ff_nel", "tab_in_line",
                           "tsv_clean.tsv", "tsv_three_columns.tsv", "tsv_mixed_ends.tsv"})
    rows[name] = [this](const std::string& file) { expect_clean(file); };
  const std::map<std::string, std::pair<int64_t, std::string>> left_out{
      {"empty_source", {7, "empty_source.en:7: blank (byte 137)"}},
      {"empty_target", {7, "empty_target.de:7: blank (byte 150)"}},
      {"blank_target", {7, "blank_target.de:7: blank (byte 150)"}},
      {"latin1_line", {4, "latin1_line.de:4: not UTF-8 (byte 97)"}},
      {"cut_utf8", {18, "cut_utf8.de:18: not UTF-8 (byte 431)"}},
      {"overlong_utf8", {3, "overlong_utf8.de:3: not UTF-8 (byte 61)"}},
      {"surrogate_utf8", {3, "surrogate_utf8.de:3: not UTF-8 (byte 62)"}},
      {"nul_byte", {13, "nul_byte.de:13: NUL byte (byte 316)"}},
      {"long_line", {1, "long_line.en:1: too many words (byte 0)"}},
      {"tsv_one_column.tsv", {8, "tsv_one_column.tsv:8: column missing (byte 348)"}}};
  for (const auto& [name, row] : left_out)
    rows[name] = [this, row = row](const std::string& file) {
      expect_left_out(file, row.first, row.second);
    };
  const std::map<std::string, std::pair<std::string, std::string>> errors{
      {"cr_only", {"end in CR alone", "got 20 CR and no LF"}},
      {"utf16le", {"utf16le.en is UTF-16", "not UTF-8"}},
      {"trailing_blank_one_side", {"got 21 in ", "and 20 in "}},
      {"missing_line",
       {"got 20 in " + path("missing_line.en"), "19 in " + path("missing_line.de")}},
      {"split_line", {"got 20 in ", "and 21 in "}},
      {"all_empty", {"no pairs", "all_empty.de"}},
      {"only_newlines", {"no usable pair", "20 left out (20 blank)"}}};
  for (const auto& [name, parts] : errors)
    rows[name] = [parts = parts](const std::string& file) {
      EXPECT_THAT(error_for(file), AllOf(HasSubstr(parts.first), HasSubstr(parts.second)));
    };
  return rows;
}

DirtyFiles::Rows DirtyFiles::single_rows() {
  Rows rows;
  rows["trailing_blank_line"] = [this](const std::string& name) {
    const ParallelCorpus corpus = read(name);
    EXPECT_EQ(corpus.source, clean_.source);
    EXPECT_EQ(corpus.target, clean_.target);
    EXPECT_THAT(corpus.report.summary(), HasSubstr("21 lines, 20 pairs, 1 left out (1 blank)"));
  };
  rows["nfd"] = [this](const std::string& name) {  // kept as it stands, composed by nobody
    const ParallelCorpus corpus = read(name);
    EXPECT_EQ(corpus.source, clean_.source);
    EXPECT_EQ(corpus.target[3],
              "Mein Bruder schla\xCC\x88"
              "ft.");
  };
  rows["long_word"] = [this](const std::string& name) {
    std::string source = test::read_file(path("clean.en"));
    const size_t line = source.find('\n') + 1;
    source.replace(line, source.find('\n', line) - line, std::string(200'000, 'x'));
    const test::TemporaryDirectory folder;
    expect_left_out(read_parallel_corpus(folder.write("long_word.en", source), path(name + ".de")),
                    2, "long_word.en:2: word too long (byte 22)");
  };
  rows["copied_source"] = [this](const std::string& name) {
    const ParallelCorpus corpus = read(name);
    EXPECT_EQ(corpus.target, clean_.source);
    EXPECT_THAT(corpus.report.summary(),
                HasSubstr("20 pairs, 0 left out, 20 copied untranslated (100.0 %)"));
  };
  rows["special_tokens"] = [](const std::string& name) {
    const ParallelCorpus corpus = read(name);
    ASSERT_EQ(corpus.count(), 20);
    EXPECT_EQ(corpus.source[4], "The @@ cat </s> drinks <unk> milk .");
    TokenCounts counts(TokenUnit::kWord);
    counts.add_lines(corpus.source);
    const Vocabulary vocabulary(counts);
    for (const int32_t id : vocabulary.encode_lines(corpus.source).tokens)
      EXPECT_GE(id, kControlIds);
  };
  // pytorch/text#2221
  rows["appledouble (.de only)"] = [this](const std::string&) {
    EXPECT_THAT(
        test::error_of([this] { read_parallel_corpus(path("appledouble.de"), path("clean.en")); }),
        AllOf(HasSubstr("appledouble.de is binary, not UTF-8 text"),
              HasSubstr("byte 0x80 at offset 37")));
  };
  rows["tsv_quotes.tsv"] = [this](const std::string& name) {
    const ParallelCorpus corpus = read(name);
    ASSERT_EQ(corpus.count(), 20);
    EXPECT_EQ(corpus.source[7], "\"" + clean_.source[7]);
    EXPECT_EQ(corpus.target, clean_.target);
  };
  return rows;
}

TEST_F(DirtyFiles, AreAnsweredAsTheManifestSays) {
  Rows rows = listed_rows();
  rows.merge(single_rows());
  std::istringstream manifest(test::read_file(path("manifest.tsv")));
  std::string row;
  std::getline(manifest, row);
  ASSERT_EQ(row, "name\tdefect\texpected");
  size_t walked = 0;
  while (std::getline(manifest, row)) {
    const std::string name = row.substr(0, row.find('\t'));
    SCOPED_TRACE(row);
    ASSERT_TRUE(rows.contains(name));
    rows[name](name);
    ++walked;
  }
  EXPECT_EQ(walked, rows.size());
}

}  // namespace
}  // namespace gs
