// The page that train_translation writes about its run.
#include <gtest/gtest.h>

#include <filesystem>

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

bool holds(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

TEST(TrainTranslationReport, IsWrittenAtTheEndAndOnItsOwn) {
  const TemporaryDirectory folder;
  const std::string output = folder.file("run"), path = output + "/report.html";
  const CommandResult result = run_program(
      "train_translation", "--output " + output + kSmall + "--steps 6 --validate-every 2");
  ASSERT_EQ(result.status, 0) << result.output;
  EXPECT_TRUE(holds(result.output, "The report is " + path));
  const std::string page = test::read_file(path);
  for (const char* part : {"<h1>Translation model: run</h1>", "<tr><td>iid</td>", "<h3>pair</h3>",
                           "<dt>validate-every</dt><dd>2</dd>", "</html>"})
    EXPECT_TRUE(holds(page, part)) << part;
  std::filesystem::remove(path);
  // The options come from the checkpoint.
  ASSERT_EQ(run_command(kProgram + " --report-only --output " + output + "/").status, 0);
  EXPECT_TRUE(test::read_file(path) == page);
}

TEST(TrainTranslationReport, IsWrittenWhenInterrupted) {
  const TemporaryDirectory folder;
  const std::string output = folder.file("run");
  const CommandResult interrupted =
      run_command("timeout -s TERM 1 " + kProgram + " --output " + output + kSmall +
                  "--steps 1000000 --validate-every 1000000");
  ASSERT_EQ(interrupted.status, 124) << interrupted.output;
  const std::string page = test::read_file(output + "/report.html");
  EXPECT_TRUE(holds(page, "No test has been scored yet.")) << page;
  EXPECT_TRUE(holds(page, "<polyline")) << page;
}

TEST(TrainTranslationReport, NeedsARun) {
  const TemporaryDirectory folder;
  const CommandResult result =
      run_command(kProgram + " --report-only --output " + folder.file("none"));
  EXPECT_EQ(result.status, 2);
  EXPECT_EQ(result.output, "train_translation: report: " + folder.file("none") +
                               "/metrics.jsonl cannot be read; name the folder of a run\n");
  EXPECT_FALSE(std::filesystem::exists(folder.file("none")));
}

}  // namespace
}  // namespace gs
