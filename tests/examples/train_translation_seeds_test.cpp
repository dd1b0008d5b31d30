// Several models of one command line, and options that a resumed run cannot change.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "framework/io/checkpoint.h"
#include "tests/examples/translation_programs.h"
#include "tests/support/paths.h"

namespace gs {
namespace {

using test::CommandResult;
using test::TemporaryDirectory;
using testing::HasSubstr;

CommandResult train(const std::string& output, const std::string& arguments) {
  return test::run_program("train_translation", "--output " + output + test::kSmall + arguments);
}

CommandResult resume(const std::string& output, const std::string& arguments) {
  return test::run_program("train_translation", "--output " + output + " --resume " + arguments);
}

nlohmann::json json_in(const std::string& path) {
  return nlohmann::json::parse(test::read_file(path));
}

std::vector<float> weights_in(const std::string& path) {
  return load_checkpoint(path).parameters.at("decoder/norm/weight").values<float>();
}

TEST(TrainTranslationSeeds, TrainsEachAsIfAlone) {
  const TemporaryDirectory folder;
  const std::string all = folder.file("all"), alone = folder.file("alone");
  const std::string arguments = "--steps 20 --validate-every 10 ";
  const CommandResult result = train(all, arguments + "--seed 5 --seeds 2");
  ASSERT_EQ(result.status, 0) << result.output;
  EXPECT_THAT(result.output, HasSubstr("Mean and standard deviation of 2 runs:\nexact_match"));
  ASSERT_EQ(train(alone, arguments + "--seed 6").status, 0);
  EXPECT_EQ(weights_in(all + "/seed_6/last.h5"), weights_in(alone + "/last.h5"));
  EXPECT_NE(weights_in(all + "/seed_6/last.h5"), weights_in(all + "/seed_5/last.h5"));
  const auto summary = json_in(all + "/summary.json");
  EXPECT_EQ(summary["runs"], (std::vector<std::string>{all + "/seed_5", all + "/seed_6"}));
  std::vector<nlohmann::json> scores;
  for (const char* seed : {"/seed_5", "/seed_6"})
    scores.push_back(json_in(all + seed + "/summary.json")["chrf"]["iid"]);
  EXPECT_EQ(summary["chrf"]["iid"]["values"], scores);
  EXPECT_NEAR(summary["chrf"]["iid"]["mean"].get<double>(),
              (scores[0].get<double>() + scores[1].get<double>()) / 2, 1e-12);

  // One more, with the options of before; the others are not trained again.
  const auto before = std::filesystem::last_write_time(all + "/seed_6/last.h5");
  ASSERT_EQ(resume(all, "--seeds 3").status, 0);
  EXPECT_EQ(std::filesystem::last_write_time(all + "/seed_6/last.h5"), before);
  const auto training = load_training_values(all + "/seed_7/last.h5");
  EXPECT_EQ(std::get<int64_t>(training.at("step")), 20);
  EXPECT_EQ(load_checkpoint(all + "/seed_7/last.h5").config.at("options/seed"), "7");
  EXPECT_EQ(json_in(all + "/summary.json")["runs"].size(), 3u);
  // And what is there is never overwritten.
  const CommandResult again = train(all, arguments + "--seed 5 --seeds 2");
  EXPECT_EQ(again.status, 2);
  EXPECT_THAT(again.output, HasSubstr("--output: " + all + "/seed_5 holds a run already"));
}

TEST(TrainTranslationSeeds, AnInterruptEndsThemAll) {
  const TemporaryDirectory folder;
  const std::string output = folder.file("run");
  const CommandResult interrupted = test::run_command(
      "timeout -s TERM 1 " + test::program("train_translation --output ") + output + test::kSmall +
      "--steps 1000000 --validate-every 1000000 --seeds 3");
  ASSERT_EQ(interrupted.status, 124) << interrupted.output;
  EXPECT_THAT(interrupted.output, HasSubstr("All seeds go on with: train_translation --output " +
                                            output + " --seeds 3 --resume\n"));
  EXPECT_TRUE(std::filesystem::exists(output + "/seed_1/last.h5"));
  EXPECT_FALSE(std::filesystem::exists(output + "/seed_2"));
  EXPECT_FALSE(std::filesystem::exists(output + "/summary.json"));
}

TEST(TrainTranslationSeeds, RefusesWhatDoesNotTrain) {
  const TemporaryDirectory folder;
  for (const char* option : {"--check-data", "--verify-resume", "--report-only"}) {
    const CommandResult result = train(folder.file("run"), std::string("--seeds 2 ") + option);
    EXPECT_EQ(result.status, 2);
    EXPECT_EQ(result.output,
              "train_translation: --seeds: trains; leave out --verify-resume, --check-data and "
              "--report-only\n");
  }
}

// pytorch/pytorch#60265, OpenNMT/OpenNMT-py#1393: what a resumed run cannot change is refused, what
// it can is told; the rest is as before.
TEST(TrainTranslationResume, RefusesOptionsThatWouldChangeTheData) {
  const TemporaryDirectory folder;
  const std::string output = folder.file("run");
  ASSERT_EQ(train(output, "--steps 6 --validate-every 3 --seed 3").status, 0);
  const std::string before = test::read_file(output + "/last.h5");
  for (const auto& [option, value, old] :
       std::vector<std::array<std::string, 3>>{{"seed", "4", "3"},
                                               {"toy-pairs", "400", "300"},
                                               {"batch-sentences", "7", "32"},
                                               {"minimum-count", "2", "1"}}) {
    const CommandResult refused = resume(output, "--steps 9 --" + option + " " + value);
    EXPECT_EQ(refused.status, 2);
    EXPECT_EQ(refused.output, "train_translation: --" + option + ": " + value +
                                  " from the command line, but it was " + old +
                                  " from the start and cannot change; leave it out\n");
  }
  // Through an option that also has another use.
  const CommandResult refused = resume(output, "--steps 9 --maximum-length 9");
  EXPECT_EQ(refused.status, 2);
  EXPECT_EQ(test::read_file(output + "/last.h5"), before);
  const CommandResult resumed =
      resume(output, "--steps 9 --seed 3 --learning-rate 0.5 --accumulate 2");
  EXPECT_EQ(resumed.status, 0) << resumed.output;
  for (const char* text : {"--steps: 9 from the command line is used, not the stored 6; leave it "
                           "out to keep that\n",
                           "--learning-rate: 0.5 from the command line is used, not the stored "
                           "0.003; leave it out to keep that\n",
                           "--accumulate: 2 from the command line is used, not the stored 1; leave "
                           "it out to keep that\n"}) {
    EXPECT_THAT(resumed.output, HasSubstr(text));
  }
  EXPECT_THAT(resumed.output, testing::Not(HasSubstr("--seed")));
}

TEST(TrainTranslationResume, BeginsWithAnotherRunsModel) {
  const TemporaryDirectory folder;
  const std::string first = folder.file("first"), second = folder.file("second");
  ASSERT_EQ(train(first, "--steps 20").status, 0);
  const CommandResult result =
      train(second, "--steps 3 --learning-rate 1e-12 --init-from " + first + "/last.h5");
  ASSERT_EQ(result.status, 0) << result.output;
  EXPECT_EQ(weights_in(second + "/last.h5"), weights_in(first + "/last.h5"));
  ASSERT_EQ(resume(second, "--steps 5").status, 0) << "the first model is not looked at again";
}

}  // namespace
}  // namespace gs
