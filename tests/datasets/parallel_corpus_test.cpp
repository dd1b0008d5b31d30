#include "datasets/parallel_corpus.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/support/support.h"

namespace gs {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::EndsWith;
using testing::HasSubstr;
using testing::StartsWith;

class ParallelCorpusTest : public testing::Test {
 protected:
  ParallelCorpus read(const std::string& source, const std::string& target,
                      ParallelCorpusConfig config = {}) {
    return read_parallel_corpus(folder_.write("s", source), folder_.write("t", target), config);
  }
  ParallelCorpus read_tsv(const std::string& text, ParallelCorpusConfig config = {}) {
    return read_parallel_tsv(folder_.write("p.tsv", text), config);
  }

  test::TemporaryDirectory folder_;
};

TEST_F(ParallelCorpusTest, KeepsPairsTogether) {
  const ParallelCorpus corpus = read("a b\n c\t d \ne\n", "A\r\nB\r\nC");
  EXPECT_THAT(corpus.source, ElementsAre("a b", "c d", "e"));
  EXPECT_THAT(corpus.target, ElementsAre("A", "B", "C"));
  EXPECT_EQ(corpus.count(), 3);
  EXPECT_EQ(corpus.report.summary(),
            folder_.file("s") + ", " + folder_.file("t") + ": 3 lines, 3 pairs, 0 left out");
}

// MicrosoftTranslator/NTREX#3; moses-smt/mosesdecoder#93
TEST_F(ParallelCorpusTest, RefusesDifferingLineCounts) {
  EXPECT_THAT(test::error_of([&] { read("a\nb\nc\n", "A\nB\n"); }),
              HasSubstr("line counts differ, got 3 in " + folder_.file("s") + " and 2 in " +
                        folder_.file("t")));
  EXPECT_THAT(test::error_of([&] { read("a\n", "A\nB"); }), HasSubstr("got 1 in"));
  EXPECT_THAT(test::error_of([&] { read("", "A\n"); }), HasSubstr("got 0 in"));
}

TEST_F(ParallelCorpusTest, LeavesOutAndReportsBadPairs) {
  const ParallelCorpus corpus =
      read(std::string("a\nb\n\n \xC2\xA0\nx\xFFy\ne\nf\n1 2 3 4\n12345678\nlast\n"),
           std::string("A\nB\nC\nD\nE\n\xC3\nnul \0 here\nH\nI\nlast\n", 32),
           {.maximum_words = 3, .maximum_word_bytes = 7});
  EXPECT_THAT(corpus.source, ElementsAre("a", "b", "last"));
  EXPECT_THAT(corpus.target, ElementsAre("A", "B", "last"));
  const std::string s = folder_.file("s"), t = folder_.file("t");
  EXPECT_EQ(corpus.report.summary(10),
            s + ", " + t +
                ": 10 lines, 3 pairs, 7 left out (2 not UTF-8, 1 NUL byte, 2 blank, 1 too many "
                "words, 1 word too long), 1 copied untranslated (33.3 %)\n"
                "  " +
                s +
                ":3: blank (byte 4)\n"
                "  " +
                s +
                ":4: blank (byte 5)\n"
                "  " +
                s +
                ":5: not UTF-8 (byte 10)\n"
                "  " +
                t +
                ":6: not UTF-8 (byte 10)\n"
                "  " +
                t +
                ":7: NUL byte (byte 16)\n"
                "  " +
                s +
                ":8: too many words (byte 17)\n"
                "  " +
                s + ":9: word too long (byte 25)");
  EXPECT_THAT(corpus.report.summary(1), AllOf(HasSubstr(":3: blank"), EndsWith("\n  and 6 more")));
  EXPECT_EQ(corpus.report.left_out[3].defect, Defect::kInvalidUtf8);
  EXPECT_EQ(corpus.report.left_out[3].line, 6);
}

// rsennrich/subword-nmt#42: an invalid byte, and a file cut inside a 3-byte character.
TEST_F(ParallelCorpusTest, TellsTheByteThatIsNotUtf8) {
  EXPECT_THAT(read("a\xFF"
                   "b\nx\n",
                   "A\nX\n")
                  .report.left_out[0]
                  .text(),
              EndsWith("s:1: not UTF-8 (byte 1)"));
  EXPECT_THAT(read("x\na\xE2\x82", "X\nA\n").report.left_out[0].text(),
              EndsWith("s:2: not UTF-8 (byte 3)"));
}

TEST_F(ParallelCorpusTest, RefusesWhatIsNoCorpus) {
  EXPECT_THAT(test::error_of([&] { read("", ""); }),
              AllOf(HasSubstr("no pairs"), HasSubstr("are without a line")));
  EXPECT_THAT(test::error_of([&] { read_tsv(""); }), HasSubstr("is without a line"));
  EXPECT_THAT(test::error_of([&] { read("\n\n", "A\nB\n"); }),
              AllOf(HasSubstr("no usable pair"),
                    HasSubstr("2 lines, 0 pairs, 2 left out (2 blank)"), HasSubstr("s:1: blank")));
  EXPECT_THAT(test::error_of([&] { read(std::string("ok\na\0\x80\n", 7), "A\nB\n"); }),
              HasSubstr("is binary, not UTF-8 text: byte 0x80 at offset 5, with NUL bytes in the "
                        "same line 2"));
  EXPECT_THAT(test::error_of([&] { read("a\n", "A\n", {.maximum_words = 0}); }),
              HasSubstr("limits must be 1 or more, got maximum_words 0"));
  EXPECT_THAT(test::error_of([&] { read_parallel_corpus("/nowhere/a", "/nowhere/b"); }),
              StartsWith("read: cannot open /nowhere/a: No such file"));
}

TEST_F(ParallelCorpusTest, ReadsColumns) {
  const ParallelCorpus corpus =
      read_tsv("a\tA\tnote\r\n\"b\t'B\n\nno tab\n\tX\ny\t\nc\tC\xFF\nd\tD");
  EXPECT_THAT(corpus.source, ElementsAre("a", "\"b", "d"));
  EXPECT_THAT(corpus.target, ElementsAre("A", "'B", "D"));
  std::vector<std::string> left_out;
  for (const LeftOutPair& pair : corpus.report.left_out)
    left_out.push_back(pair.text().substr(folder_.file("p.tsv").size()));
  EXPECT_THAT(left_out,
              ElementsAre(":3: blank (byte 16)", ":4: column missing (byte 17)",
                          ":5: blank (byte 24)", ":6: blank (byte 29)", ":7: not UTF-8 (byte 33)"));
}

TEST_F(ParallelCorpusTest, ReadsChosenColumns) {
  const ParallelCorpus corpus =
      read_tsv("1\ta\tA\n2\tb\n3\tc\tC\n", {.source_column = 3, .target_column = 2});
  EXPECT_THAT(corpus.source, ElementsAre("A", "C"));
  EXPECT_THAT(corpus.target, ElementsAre("a", "c"));
  EXPECT_EQ(corpus.report.left_out.size(), 1u);
  EXPECT_THAT(test::error_of([&] { read_tsv("a\tb\n", {.source_column = 2}); }),
              HasSubstr("two different numbers from 1 on, got 2 and 2"));
  EXPECT_THAT(test::error_of([&] { read_tsv("a\tb\n", {.source_column = 0}); }),
              HasSubstr("got 0 and 2"));
}

}  // namespace
}  // namespace gs
