// Real corpora, which the repository does not hold: looked for in the folder that the environment
// variable GRADSTONE_DATA names, else in ../shared/data beside the sources; skipped without them.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>

#include "datasets/line_reader.h"
#include "datasets/parallel_corpus.h"
#include "framework/text/utf8.h"
#include "tests/support/paths.h"

namespace gs {
namespace {

using testing::HasSubstr;

class SharedData : public testing::Test {
 protected:
  void SetUp() override {
    const char* named = std::getenv("GRADSTONE_DATA");
    folder_ = named ? named : test::source_directory() + "/../shared/data";
    if (!std::filesystem::exists(folder_ + "/README.md"))
      GTEST_SKIP() << "no corpora in " << folder_ << "; name their folder in GRADSTONE_DATA";
  }

  std::string path(const std::string& name) const { return folder_ + "/" + name; }
  ParallelCorpus read(const std::string& source, const std::string& target) const {
    return read_parallel_corpus(path(source), path(target));
  }

  std::string folder_;
};

int64_t count_words(const std::vector<std::string>& lines) {
  int64_t words = 0;
  for (const std::string& line : lines) words += static_cast<int64_t>(split_words(line).size());
  return words;
}

TEST_F(SharedData, Multi30kHasItsLinesAndWords) {
  struct Split {
    const char* name;
    int64_t lines, english_words, german_words, french_words;
  };
  for (const Split& split :
       {Split{"train", 29000, 345020, 322383, 362021}, Split{"val", 1014, 12167, 11568, 12698},
        Split{"test_2016_flickr", 1000, 11877, 10905, 12352},
        Split{"test_2017_flickr", 1000, 10526, 9600, 11215},
        Split{"test_2017_mscoco", 461, 4843, 4605, 5096},
        Split{"test_2018_flickr", 1071, 13753, 12316, 14724}}) {
    SCOPED_TRACE(split.name);
    const std::string base = std::string("multi30k/") + split.name;
    const ParallelCorpus german = read(base + ".en.gz", base + ".de.gz");
    EXPECT_EQ(german.count(), split.lines);
    EXPECT_TRUE(german.report.left_out.empty());
    EXPECT_EQ(count_words(german.source), split.english_words);
    EXPECT_EQ(count_words(german.target), split.german_words);
    const ParallelCorpus french = read(base + ".en.gz", base + ".fr.gz");
    EXPECT_EQ(french.count(), split.lines);
    EXPECT_EQ(count_words(french.target), split.french_words);
  }
}

TEST_F(SharedData, TatoebaHasItsPairs) {
  struct File {
    const char* name;
    int64_t pairs;
  };
  for (const File& file : {File{"eng-deu", 169813}, File{"eng-spa", 118964}, File{"eng-cmn", 26388},
                           File{"eng-vie", 8050}}) {
    SCOPED_TRACE(file.name);
    const ParallelCorpus corpus =
        read_parallel_tsv(path(std::string("tatoeba/") + file.name + ".tsv.gz"));
    EXPECT_EQ(corpus.count(), file.pairs);
    EXPECT_EQ(corpus.report.lines, file.pairs);
  }
}

TEST_F(SharedData, FilesFoundBrokenAreAnswered) {
  const ParallelCorpus wmt = read("dirty/real/wmt16_val.en.gz", "dirty/real/wmt16_val.de.gz");
  EXPECT_THAT(wmt.report.summary(), HasSubstr("1015 lines, 1014 pairs, 1 left out (1 blank)"));
  const ParallelCorpus crlf = read("dirty/real/crlf_val.en.gz", "dirty/real/crlf_val.de.gz");
  EXPECT_EQ(crlf.count(), 1014);
  for (const std::string& line : crlf.source) EXPECT_EQ(line.find('\r'), std::string::npos);
  const ParallelCorpus bom = read_parallel_tsv(path("dirty/real/bom_eng-cmn.tsv"));
  EXPECT_EQ(bom.source[0], "Hi.");
  EXPECT_THAT(bom.report.summary(), HasSubstr("403 lines, 402 pairs, 1 left out (1 blank)"));
  const ParallelCorpus edges =
      read("dirty/real/edge_space_test_2018.cs.gz", "dirty/real/edge_space_test_2018.en.gz");
  EXPECT_EQ(edges.count(), 1071);
  for (const std::string& line : edges.source) EXPECT_FALSE(line.ends_with(' '));
}

}  // namespace
}  // namespace gs
