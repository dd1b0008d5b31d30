// --profile and --profile-trace, which every program has.
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>

#include "tests/examples/translation_programs.h"
#include "tests/support/paths.h"

namespace gs {
namespace {

using test::CommandResult;
using test::kSmall;
using test::run_command;
using test::run_program;
using test::TemporaryDirectory;

// The numbers that follow a name in the table.
std::vector<double> row_of(const std::string& output, const std::string& name) {
  std::vector<double> numbers;
  std::istringstream lines(output);
  for (std::string line; std::getline(lines, line);) {
    if (!line.starts_with(name + " ")) continue;
    std::istringstream cells(line.substr(name.size()));
    for (double number; cells >> number;) numbers.push_back(number);
  }
  return numbers;
}

double call_of(const std::string& output, const std::string& name, size_t column = 0) {
  const std::vector<double> row = row_of(output, name);
  EXPECT_GT(row.size(), column) << name << " is missing in\n" << output;
  return row.size() > column ? row[column] : -1;
}

constexpr size_t kBackwardCalls = 3;

TEST(Profile, OfTrainingCountsItsOperations) {
  const TemporaryDirectory folder;
  const std::string trace_path = folder.file("trace.json");
  const CommandResult result =
      run_program("train_translation", "--device cpu --output " + folder.file("run") + kSmall +
                                           "--steps 20 --profile-trace " + trace_path);
  ASSERT_EQ(result.status, 0) << result.output;
  const std::string& output = result.output;
  // A device replays what was recorded. One layer in the encoder and one in the decoder: three
  // attentions, six norms with the last ones.
  EXPECT_EQ(call_of(output, "packed_attention", kBackwardCalls), 3 * 20);
  EXPECT_EQ(call_of(output, "layer_norm", kBackwardCalls), 7 * 20);
  EXPECT_EQ(call_of(output, "embedding", kBackwardCalls), 2 * 20);
  EXPECT_GT(call_of(output, "packed_attention"), 3 * 20);  // validation is forward only
  EXPECT_EQ(call_of(output, "adam"), 20);
  EXPECT_EQ(call_of(output, "gradient_norm"), 20);
  EXPECT_EQ(call_of(output, "validation"), 1);
  EXPECT_EQ(call_of(output, "save_checkpoint"), 1);
  EXPECT_NE(output.find("arrays held at most "), std::string::npos) << output;

  const auto trace = nlohmann::json::parse(test::read_file(trace_path));
  int64_t backward = 0;
  double start = 0;
  for (const auto& event : trace["traceEvents"]) {
    if (event["name"] == "packed_attention" && event["cat"] == "backward") ++backward;
    EXPECT_GE(event["ts"].get<double>(), start);
    EXPECT_GE(event["dur"].get<double>(), 0);
    start = event["ts"];
  }
  EXPECT_EQ(backward, 3 * 20);
}

TEST(Profile, IsNoOptionOfTheRun) {
  const TemporaryDirectory folder;
  const std::string run = "--output " + folder.file("run");
  ASSERT_EQ(run_program("train_translation", run + kSmall + "--steps 5 --profile").status, 0);
  const CommandResult resumed = run_program("train_translation", run + " --resume --steps 10");
  EXPECT_EQ(resumed.status, 0) << resumed.output;
  EXPECT_EQ(resumed.output.find("profile"), std::string::npos) << resumed.output;
  EXPECT_EQ(resumed.output.find("Profile"), std::string::npos) << resumed.output;
}

TEST(Profile, GoesToStandardErrorInEveryProgram) {
  const TemporaryDirectory folder;
  const std::string program = test::program("");
  for (const std::string& command :
       {std::string("attention_walkthrough"),
        "write_toy_corpus --count 3 --output " + folder.file("corpus")}) {
    const std::string plain = run_command(program + command).output;
    EXPECT_EQ(run_command(program + command + " --profile 2>/dev/null").output, plain);
    const CommandResult profile = run_command(program + command + " --profile >/dev/null");
    EXPECT_EQ(profile.status, 0);
    EXPECT_EQ(profile.output.substr(0, 10), "\nProfile: ") << profile.output;
  }
  const std::string walkthrough =
      run_command(program + "attention_walkthrough --profile >/dev/null").output;
  EXPECT_GT(call_of(walkthrough, "softmax"), 0);
  EXPECT_GT(call_of(walkthrough, "matmul"), 0);
}

TEST(Profile, OfTranslatingIsShownAfterAnErrorToo) {
  const TemporaryDirectory folder;
  const std::string output = folder.file("run");
  ASSERT_EQ(run_program("train_translation", "--output " + output + kSmall + "--steps 5").status,
            0);
  const std::string translate =
      test::program("translate --profile --model ") + output + "/last.h5 --beam 2";
  const CommandResult whole = run_command("echo 'the dog sleeps .' | " + translate);
  EXPECT_EQ(whole.status, 0);
  EXPECT_EQ(call_of(whole.output, "beam_search"), 1);
  EXPECT_EQ(call_of(whole.output, "load_checkpoint"), 1);

  const CommandResult failed =
      run_command("printf 'the dog sleeps .\\n\\377\\n' | " + translate + " 2>&1 >/dev/null");
  EXPECT_EQ(failed.status, 2);
  EXPECT_EQ(call_of(failed.output, "beam_search"), 1);
  const std::string last_line =
      failed.output.substr(failed.output.find_last_of('\n', failed.output.size() - 2) + 1);
  EXPECT_EQ(last_line,
            "translate: standard input: line 2 is not UTF-8 at byte 0; convert it first\n");

  // Waiting for its second line.
  const CommandResult interrupted =
      run_command("mkfifo " + folder.file("pipe") + "; " + translate + " --batch-lines 1 < " +
                  folder.file("pipe") + " > " + folder.file("out") + " & child=$!; exec 3> " +
                  folder.file("pipe") + "; echo 'the dog sleeps .' >&3; until [ -s " +
                  folder.file("out") + " ]; do sleep 0.01; done; kill -TERM $child; wait $child");
  EXPECT_EQ(interrupted.status, 128 + 15);
  EXPECT_EQ(call_of(interrupted.output, "beam_search"), 1);
}

TEST(Profile, OfInterruptedTrainingIsShown) {
  const TemporaryDirectory folder;
  const CommandResult result =
      run_command("timeout -s TERM 1 " + test::program("train_translation --profile --output ") +
                  folder.file("run") + kSmall + "--steps 1000000 --validate-every 1000000");
  EXPECT_EQ(result.status, 124);
  EXPECT_NE(result.output.find("Interrupted at step "), std::string::npos) << result.output;
  EXPECT_GT(call_of(result.output, "adam"), 0);
}

TEST(Profile, ATraceThatCannotBeWrittenIsRefusedBeforeTheWork) {
  const TemporaryDirectory folder;
  const std::string path = folder.file("missing/trace.json");
  const CommandResult result =
      run_program("train_translation",
                  "--output " + folder.file("run") + kSmall + "--steps 5 --profile-trace " + path);
  EXPECT_EQ(result.status, 2);
  EXPECT_EQ(result.output, "train_translation: save: cannot write " + path +
                               ", No such file or directory; what stood there before is "
                               "unchanged\n");
  EXPECT_FALSE(std::filesystem::exists(folder.file("run")));
}

}  // namespace
}  // namespace gs
