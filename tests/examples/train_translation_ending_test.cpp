// How a training ends: early stopping, the time limit, averages, and what is tested.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

#include "framework/io/checkpoint.h"
#include "framework/io/checkpoint_average.h"
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

CommandResult resume(const std::string& output, const std::string& arguments = "") {
  return test::run_program("train_translation", "--output " + output + " --resume " + arguments);
}

std::vector<nlohmann::json> events_of(const std::string& folder, const std::string& event) {
  std::vector<nlohmann::json> lines;
  std::ifstream stream(folder + "/metrics.jsonl");
  for (std::string line; std::getline(stream, line);) {
    const auto parsed = nlohmann::json::parse(line);
    if (parsed["event"] == event) lines.push_back(parsed);
  }
  return lines;
}

nlohmann::json summary_of(const std::string& folder) {
  return nlohmann::json::parse(test::read_file(folder + "/summary.json"));
}

void expect_same_parameters(const Checkpoint& a, const Checkpoint& b) {
  ASSERT_EQ(a.parameters.size(), b.parameters.size());
  for (const auto& [name, array] : a.parameters)
    ASSERT_EQ(array.values<float>(), b.parameters.at(name).values<float>()) << name;
}

TEST(TrainTranslationEnding, AveragesTheLastValidatedCheckpointsAndTestsTheResult) {
  const TemporaryDirectory folder;
  const std::string output = folder.file("run");
  const CommandResult result = train(output, "--steps 50 --validate-every 10 --keep 1 --average 3");
  ASSERT_EQ(result.status, 0) << result.output;
  EXPECT_THAT(result.output, HasSubstr("--keep 1 is raised to 3, which --average needs\n"));
  EXPECT_THAT(result.output,
              HasSubstr(output + "/average.h5, the average of the last 3 validated checkpoints "
                                 "(steps 30, 40, 50): validation loss "));
  const Checkpoint average = load_checkpoint(output + "/average.h5");
  expect_same_parameters(
      average, average_checkpoints(
                   {output + "/step_30.h5", output + "/step_40.h5", output + "/step_50.h5"}));
  const auto events = events_of(output, "average");
  ASSERT_EQ(events.size(), 1u);
  EXPECT_EQ(events[0]["step"], 50);
  EXPECT_EQ(events[0]["loss"], std::get<double>(average.training.at("metric")));
  const auto summary = summary_of(output);
  EXPECT_EQ(summary["weights"], "average");
  EXPECT_EQ(summary["checkpoint"], output + "/average.h5");
  EXPECT_EQ(summary["averaged_files"], "step_30.h5\nstep_40.h5\nstep_50.h5");
  EXPECT_EQ(summary["validation_metric"], events[0]["loss"]);
  EXPECT_EQ(summary["validation_metric_name"], "loss");
  EXPECT_EQ(summary["stopped"], "all 50 steps are done");
  EXPECT_EQ(events_of(output, "stopped")[0]["reason"], "all 50 steps are done");
  EXPECT_EQ(events_of(output, "test iid")[0]["weights"], "average");
  // Again, and with other weights.
  ASSERT_EQ(resume(output).status, 0);
  EXPECT_EQ(summary_of(output), summary);
  EXPECT_EQ(events_of(output, "average"), events);
  for (const std::string weights : {"last", "best"}) {
    ASSERT_EQ(resume(output, "--test-weights " + weights).status, 0);
    EXPECT_EQ(summary_of(output)["weights"], weights);
    EXPECT_EQ(summary_of(output)["checkpoint"], output + "/" + weights + ".h5");
    EXPECT_EQ(summary_of(output)["validation_metric"],
              std::get<double>(load_training_values(output + "/" + weights + ".h5").at("metric")));
  }
}

// Interrupted where nothing is validated, and gone on with: the same average as without.
TEST(TrainTranslationEnding, AnInterruptDoesNotChangeTheAverage) {
  const TemporaryDirectory folder;
  const std::string whole = folder.file("whole"), stopped = folder.file("stopped");
  const std::string arguments = "--steps 400 --validate-every 100 --average 4 --keep 1";
  ASSERT_EQ(train(whole, arguments).status, 0);
  const std::string program = test::program("train_translation");
  const CommandResult interrupted = test::run_command(
      program + " --output " + stopped + test::kSmall + arguments + " & child=$!; until [ -e " +
      stopped + "/step_200.h5 ]; do sleep 0.01; done; kill -TERM $child; wait $child");
  ASSERT_EQ(interrupted.status, 130) << interrupted.output;
  ASSERT_EQ(resume(stopped).status, 0);
  const Checkpoint average = load_checkpoint(stopped + "/average.h5");
  EXPECT_EQ(std::get<std::string>(average.training.at("averaged_files")),
            "step_100.h5\nstep_200.h5\nstep_300.h5\nstep_400.h5");
  expect_same_parameters(average, load_checkpoint(whole + "/average.h5"));
}

TEST(TrainTranslationEnding, AveragesTheBestByTheMetric) {
  const TemporaryDirectory folder;
  const std::string output = folder.file("run");
  const CommandResult result =
      train(output,
            "--steps 60 --validate-every 10 --keep 1 --average 2 --average-of best "
            "--metric accuracy");
  ASSERT_EQ(result.status, 0) << result.output;
  std::vector<std::pair<double, int64_t>> order;
  for (const auto& event : events_of(output, "validation"))
    order.emplace_back(-event["token_accuracy"].get<double>(), event["step"].get<int64_t>());
  ASSERT_EQ(order.size(), 6u);
  std::sort(order.begin(), order.end());
  const auto [first, second] = std::minmax(order[0].second, order[1].second);
  EXPECT_EQ(summary_of(output)["averaged_files"],
            fmt::format("step_{}.h5\nstep_{}.h5", first, second));
  EXPECT_EQ(std::get<int64_t>(load_training_values(output + "/best.h5").at("step")),
            order[0].second);
  EXPECT_EQ(std::get<double>(load_training_values(output + "/best.h5").at("metric")),
            -order[0].first);
}

// A learning rate that ruins the model: no validation is better than the first ones.
TEST(TrainTranslationEnding, StopsEarlyAndTestsTheBest) {
  const TemporaryDirectory folder;
  const std::string output = folder.file("run");
  const std::string arguments =
      "--steps 1000 --validate-every 5 --patience 3 --learning-rate 3 --schedule constant "
      "--warmup 20";
  const CommandResult result = train(output, arguments);
  ASSERT_EQ(result.status, 0) << result.output;
  const auto validations = events_of(output, "validation");
  ASSERT_GE(validations.size(), 4u);
  size_t best = 0;
  for (size_t i = 0; i < validations.size(); ++i)
    if (validations[i]["loss"] < validations[best]["loss"]) best = i;
  EXPECT_EQ(best + 4, validations.size());
  const double loss = validations[best]["loss"].get<double>();
  const std::string reason = fmt::format("no better loss in 3 validations than {:.6g}", loss);
  EXPECT_THAT(result.output, HasSubstr(reason));
  const auto summary = summary_of(output);
  EXPECT_EQ(summary["stopped"], reason);
  EXPECT_EQ(summary["weights"], "best");
  EXPECT_EQ(summary["validation_metric"], loss);
  ASSERT_EQ(events_of(output, "stopped").size(), 1u);
  EXPECT_EQ(events_of(output, "stopped")[0]["step"], validations.back()["step"]);
  // It has ended: resuming only tests again. With more patience it goes on.
  ASSERT_EQ(resume(output).status, 0);
  EXPECT_EQ(summary_of(output), summary);
  EXPECT_EQ(events_of(output, "stopped").size(), 1u);
  ASSERT_EQ(resume(output, "--patience 4").status, 0);
  EXPECT_GT(events_of(output, "validation").size(), validations.size());
}

TEST(TrainTranslationEnding, StopsInGoodOrderWhenTheTimeIsOver) {
  const TemporaryDirectory folder;
  const std::string output = folder.file("run");
  const CommandResult result =
      train(output, "--steps 1000000 --validate-every 1000000 --time-limit 0.01 --average 5");
  ASSERT_EQ(result.status, 0) << result.output;
  const auto summary = summary_of(output);
  EXPECT_EQ(summary["stopped"], "the time limit of 0.01 minutes is over");
  const int64_t step = summary["steps"].get<int64_t>();
  EXPECT_GT(step, 0);
  EXPECT_LT(step, 1000000);
  EXPECT_GE(summary["train_seconds"].get<double>(), 0.6);
  ASSERT_EQ(events_of(output, "validation").size(), 1u);
  EXPECT_EQ(events_of(output, "validation")[0]["step"], step);
  EXPECT_EQ(summary["averaged_files"], fmt::format("step_{}.h5", step)) << "all that there is";
  EXPECT_TRUE(summary["bleu"].contains("iid"));
}

TEST(TrainTranslationEnding, RefusesWhatCannotBe) {
  const TemporaryDirectory folder;
  const std::string output = folder.file("run");
  CommandResult refused = train(output, "--steps 5 --test-weights average");
  EXPECT_EQ(refused.status, 2);
  EXPECT_EQ(refused.output, "train_translation: --test-weights: average needs --average\n");
  EXPECT_FALSE(std::filesystem::exists(output));
  ASSERT_EQ(train(output, "--steps 5 --metric bleu").status, 0);
  refused = resume(output, "--steps 10 --metric loss");
  EXPECT_EQ(refused.status, 2);
  EXPECT_THAT(refused.output,
              HasSubstr("--metric: loss from the command line, but it was bleu from the start"));
}

}  // namespace
}  // namespace gs
