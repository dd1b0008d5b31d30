// The option --precision of the programs.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/examples/translation_programs.h"
#include "tests/support/devices.h"

namespace gs {
namespace {

using test::kSmall;
using test::run_program;
using testing::HasSubstr;

using ProgramsInPrecisionsOnCuda = test::CudaTest;

TEST(ProgramsInPrecisions, NeedACudaDevice) {
  const test::TemporaryDirectory folder;
  const std::string output = folder.file("run");
  const test::CommandResult refused = run_program(
      "train_translation", "--device cpu --precision bfloat16 --output " + output + kSmall);
  EXPECT_EQ(refused.status, 2);
  EXPECT_EQ(refused.output,
            "train_translation: --precision bfloat16: needs a CUDA device, got --device cpu; use "
            "--precision float32\n");
  const test::CommandResult trained = run_program(
      "train_translation", "--device cpu --steps 2 --validate-every 2 --output " + output + kSmall);
  EXPECT_EQ(trained.status, 0) << trained.output;
  EXPECT_THAT(test::read_file(output + "/summary.json"), HasSubstr("\"precision\": \"float32\""));
  const test::CommandResult translated =
      run_program("translate", "--device cpu --precision tf32 --model " + output + "/last.h5");
  EXPECT_EQ(translated.status, 2);
  EXPECT_THAT(translated.output, HasSubstr("--precision tf32: needs a CUDA device"));
}

// A run goes on in its precision, or in another one, on another device.
TEST_F(ProgramsInPrecisionsOnCuda, RunsGoOnInAnother) {
  const test::TemporaryDirectory folder;
  const std::string output = folder.file("run"), summary = output + "/summary.json";
  const test::CommandResult begun = run_program("train_translation",
                                                "--device cuda --precision bfloat16 --steps 4 "
                                                "--validate-every 4 --output " +
                                                    output + kSmall);
  EXPECT_EQ(begun.status, 0) << begun.output;
  EXPECT_THAT(begun.output, HasSubstr(", bfloat16\n"));
  EXPECT_THAT(test::read_file(summary), HasSubstr("\"precision\": \"bfloat16\""));
  const std::string resume = "--resume --output " + output;
  const test::CommandResult same =
      run_program("train_translation", "--device cuda --steps 8 " + resume);
  EXPECT_EQ(same.status, 0) << same.output;
  EXPECT_THAT(test::read_file(summary), HasSubstr("\"precision\": \"bfloat16\""));
  EXPECT_THAT(run_program("train_translation", "--device cpu --steps 12 " + resume).output,
              HasSubstr("use --precision float32"));
  const test::CommandResult other =
      run_program("train_translation", "--device cpu --precision float32 --steps 12 " + resume);
  EXPECT_EQ(other.status, 0) << other.output;
  EXPECT_THAT(test::read_file(summary), HasSubstr("\"precision\": \"float32\""));
  const std::string input = folder.write("input", "the dog sleeps .\n");
  const test::CommandResult translated =
      run_program("translate", "--device cuda --precision bfloat16 --model " + output +
                                   "/last.h5 --input " + input);
  EXPECT_EQ(translated.status, 0) << translated.output;
  EXPECT_THAT(translated.output, HasSubstr(", bfloat16\n"));
}

}  // namespace
}  // namespace gs
