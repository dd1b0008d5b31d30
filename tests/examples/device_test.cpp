// The option --device of the programs.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "framework/backend/backend.h"
#include "tests/examples/translation_programs.h"
#include "tests/support/devices.h"

namespace gs {
namespace {

using test::kSmall;
using test::run_program;
using testing::HasSubstr;

TEST(Device, ProgramsTellWhereThereIsNone) {
  const std::string reason = kWithCuda ? "no CUDA device is visible; use cpu\n"
                                       : "this build has no CUDA; use cpu, or build with "
                                         "-DGS_WITH_CUDA=ON\n";
  for (const char* name : {"train_translation", "attention_walkthrough", "translate"}) {
    const test::CommandResult result = test::run_command(
        "env CUDA_VISIBLE_DEVICES= " + test::program(name) + " --device cuda < /dev/null");
    EXPECT_EQ(result.status, 2);
    EXPECT_EQ(result.output, std::string(name) + ": --device: cuda is wanted, and " + reason);
    EXPECT_THAT(run_program(name, "--help").output, HasSubstr("--device"));
  }
}

TEST(Device, TheFirstLinesAndTheSummaryNameIt) {
  const test::TemporaryDirectory folder;
  const std::string output = folder.file("run");
  const test::CommandResult result = run_program(
      "train_translation", "--device cpu --steps 2 --validate-every 2 --output " + output + kSmall);
  EXPECT_EQ(result.status, 0) << result.output;
  EXPECT_THAT(result.output, HasSubstr(" 2 threads; "));
  EXPECT_THAT(test::read_file(output + "/summary.json"), HasSubstr("\"device\": \"cpu\""));
}

using DeviceOnCuda = test::CudaTest;

// Trains on one device, goes on on the other, and translates on both alike.
TEST_F(DeviceOnCuda, RunsMoveBetweenDevices) {
  const test::TemporaryDirectory folder;
  const std::string output = folder.file("run");
  const std::string run = "--validate-every 6 --beam 2 --moving-average 0.9 --output " + output;
  const test::CommandResult begun =
      run_program("train_translation", "--device cuda --steps 6 " + run + kSmall);
  EXPECT_EQ(begun.status, 0) << begun.output;
  EXPECT_THAT(begun.output, HasSubstr("cuda:0, "));
  EXPECT_THAT(test::read_file(output + "/summary.json"), HasSubstr("\"device\": \"cuda:0\""));
  for (const std::string device : {"cpu", "cuda"}) {
    const std::string steps = device == "cpu" ? "12" : "18";
    const test::CommandResult resumed =
        run_program("train_translation",
                    "--device " + device + " --resume --steps " + steps + " --output " + output);
    EXPECT_EQ(resumed.status, 0) << resumed.output;
    EXPECT_THAT(resumed.output, HasSubstr("Trained " + steps + " steps"));
  }
  const std::string input = folder.write("input", "the dog sleeps .\na cat sees the dog .\n");
  const std::string translate = "--model " + output + "/last.h5 --input " + input + " --device ";
  const test::CommandResult there = run_program("translate", translate + "cuda 2>/dev/null");
  EXPECT_EQ(there.status, 0);
  EXPECT_EQ(there.output, run_program("translate", translate + "cpu").output);
}

TEST_F(DeviceOnCuda, TheWalkthroughAgreesWithItself) {
  const test::CommandResult result = run_program("attention_walkthrough", "--device cuda");
  EXPECT_EQ(result.status, 0) << result.output;
  EXPECT_THAT(result.output, HasSubstr("Steps 5 to 7 are computed on cuda:0, "));
  EXPECT_THAT(result.output, testing::ContainsRegex("PyTorch's form +[0-9].[0-9]e-1[5-7]"));
}

}  // namespace
}  // namespace gs
