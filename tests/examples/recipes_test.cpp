#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>

#include "datasets/toy_corpus.h"
#include "tests/examples/translation_programs.h"
#include "tests/support/paths.h"

namespace gs {
namespace {

using test::CommandResult;
using test::TemporaryDirectory;
using testing::AllOf;
using testing::HasSubstr;

// A model so small and so few steps that a recipe takes a second.
const std::string kLittle =
    " --width 16 --heads 2 --feed-forward 16 --encoder-layers 1 --decoder-layers 1 --steps 20"
    " --validate-every 5 --warmup 2 --threads 2 --batch-tokens 300 --learning-rate 0.01";

CommandResult recipe(const std::string& environment, const std::string& line) {
  return test::run_command("env BIN=" + test::program_directory() + " " + environment + " " +
                           test::source_directory() + "/examples/" + line);
}

struct Sides {
  std::string source, target, both;
};

Sides toy_lines(int64_t pairs) {
  ToyCorpus corpus(1, 1, "train");
  Sides sides;
  for (int64_t i = 0; i < pairs; ++i) {
    const ToyPair pair = corpus.next();
    sides.source += pair.source + "\n";
    sides.target += pair.target + "\n";
    sides.both += pair.source + "\t" + pair.target + "\tby someone\n";
  }
  return sides;
}

// Toy sentences under the names of Multi30k's files.
void write_like_multi30k(const TemporaryDirectory& folder) {
  std::filesystem::create_directories(folder.file("raw"));
  std::filesystem::create_directories(folder.file("tok"));
  const Sides train = toy_lines(300), few = toy_lines(8);
  for (const std::string split :
       {"train", "val", "test_2016_flickr", "test_2017_flickr", "test_2017_mscoco"}) {
    const Sides& sides = split == "train" ? train : few;
    for (const auto& [language, text] :
         {std::pair("en", &sides.source), std::pair("de", &sides.target)}) {
      folder.write("raw/" + split + "." + language, *text);
      folder.write("tok/" + split + ".lc.norm.tok." + language, *text);
    }
  }
}

class Multi30kRecipe : public testing::TestWithParam<std::string> {};

TEST_P(Multi30kRecipe, GoesFromTextToScores) {
  const TemporaryDirectory folder;
  write_like_multi30k(folder);
  const std::string run = folder.file("run");
  const std::string line = "multi30k.sh " + GetParam() + " de en" + kLittle +
                           (GetParam() == "raw" ? " --subword-size 400" : " --merges 50");
  const CommandResult result = recipe("MULTI30K=" + folder.file("") + " RUN=" + run, line);
  ASSERT_EQ(result.status, 0) << result.output;
  EXPECT_THAT(result.output,
              AllOf(HasSubstr("test_2016_flickr\nBLEU"), HasSubstr("test_2017_mscoco\nBLEU")));
  EXPECT_TRUE(std::filesystem::exists(run + "/test_2017_flickr.en"));
  // Given again it trains no more and scores the same.
  const CommandResult again = recipe("MULTI30K=" + folder.file("") + " RUN=" + run, line);
  EXPECT_EQ(again.status, 0);
  EXPECT_EQ(again.output.substr(again.output.rfind("test_2016_flickr\nBLEU")),
            result.output.substr(result.output.rfind("test_2016_flickr\nBLEU")));
}

INSTANTIATE_TEST_SUITE_P(Names, Multi30kRecipe, testing::Values("published", "quick", "raw"));

TEST(Multi30kRecipe, SaysWhatItNeeds) {
  const TemporaryDirectory folder;
  const CommandResult usage = recipe("", "multi30k.sh fast");
  EXPECT_EQ(usage.status, 2);
  EXPECT_THAT(usage.output, HasSubstr("RECIPE is one of"));
  const CommandResult missing = recipe("MULTI30K=" + folder.file("none"), "multi30k.sh raw");
  EXPECT_EQ(missing.status, 1);
  EXPECT_THAT(missing.output, HasSubstr("there is no " + folder.file("none/raw/train.en")));
}

TEST(TatoebaRecipe, GoesFromOneFileToScores) {
  const TemporaryDirectory folder;
  const std::string pairs = folder.write("pairs.tsv", toy_lines(400).both),
                    run = folder.file("run");
  const CommandResult result =
      recipe("", "tatoeba.sh " + pairs + " " + run + kLittle +
                     " --subword-size 400 --valid-pairs 20 --held-out-test 30");
  ASSERT_EQ(result.status, 0) << result.output;
  EXPECT_THAT(result.output, AllOf(HasSubstr("BLEU|nrefs:1|bs:1000|"), HasSubstr("chrF2|")));
  EXPECT_EQ(recipe("", "tatoeba.sh").status, 2);
}

}  // namespace
}  // namespace gs
