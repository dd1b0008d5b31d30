#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "framework/io/checkpoint_rotation.h"
#include "tests/examples/translation_programs.h"

namespace gs {
namespace {

using test::CommandResult;
using test::TemporaryDirectory;

CommandResult average(const std::string& arguments) {
  return test::run_program("average_checkpoints", arguments);
}

Checkpoint with_weight(float value) {
  Checkpoint checkpoint;
  checkpoint.parameters["w"] = Array::of<float>({1}, {value});
  return checkpoint;
}

float weight_in(const std::string& path) {
  return load_checkpoint(path).parameters.at("w").values<float>()[0];
}

TEST(AverageCheckpoints, TakesNamedFiles) {
  const TemporaryDirectory folder;
  const std::string a = folder.file("a.h5"), b = folder.file("b.h5"), out = folder.file("out.h5");
  save_checkpoint(a, with_weight(1));
  save_checkpoint(b, with_weight(4));
  const CommandResult result = average(a + " --output " + out + " " + b);
  EXPECT_EQ(result.status, 0);
  EXPECT_EQ(result.output, out + ": the average of 2 checkpoints\n  " + a + "\n  " + b + "\n");
  EXPECT_EQ(weight_in(out), 2.5F);
}

TEST(AverageCheckpoints, ChoosesFromAFolder) {
  const TemporaryDirectory folder;
  const std::string run = folder.file("run"), out = folder.file("out.h5");
  CheckpointRotation kept({.folder = run, .keep = 9, .lower_is_better = false});
  const float metrics[] = {30, 10, 20, 40};
  for (int64_t step = 0; step < 4; ++step)
    kept.save(step + 1, with_weight(static_cast<float>(1 << step)), metrics[step]);
  kept.save(5, with_weight(1000));  // interrupted: nobody looked at it
  EXPECT_EQ(average("--folder " + run + " --output " + out + " --last 2").status, 0);
  EXPECT_EQ(weight_in(out), 6);  // steps 3, 4
  EXPECT_EQ(average("--folder " + run + " --output " + out + " --best 2").status, 0);
  EXPECT_EQ(weight_in(out), 4.5F);  // steps 1, 4
  const std::string before = test::read_file(out);
  const CommandResult refused = average("--folder " + run + " --output " + out + " --last 5");
  EXPECT_EQ(refused.status, 2);
  EXPECT_EQ(refused.output, "average_checkpoints: --last: " + run +
                                " has 4 validated checkpoints, not 5; take fewer, or train with a "
                                "higher --keep\n");
  EXPECT_EQ(test::read_file(out), before);
}

TEST(AverageCheckpoints, RefusesUnclearCalls) {
  const auto error = [](const std::string& arguments) {
    const CommandResult result = average(arguments);
    EXPECT_EQ(result.status, 2) << result.output;
    return result.output;
  };
  EXPECT_EQ(error(""),
            "average_checkpoints: average: needs either files or --folder, got "
            "neither; see --help\n");
  EXPECT_THAT(error("a.h5 --folder x --last 1"), testing::HasSubstr("got both"));
  EXPECT_EQ(error("--folder x"),
            "average_checkpoints: --last and --best: one of the two must be above 0, got 0 and "
            "0\n");
  EXPECT_THAT(error("--folder x --last 1 --best 1"), testing::HasSubstr("got 1 and 1"));
  EXPECT_EQ(error("a.h5 --last 1"),
            "average_checkpoints: --last and --best: they choose from a --folder, got 1 and 0\n");
  EXPECT_THAT(error("--folder nowhere --last 1"), testing::HasSubstr("cannot read the folder"));
  EXPECT_THAT(error("nowhere.h5"), testing::HasSubstr("nowhere.h5"));
  EXPECT_THAT(average("--help").output, testing::HasSubstr("[--name value]... FILE..."));
}

}  // namespace
}  // namespace gs
