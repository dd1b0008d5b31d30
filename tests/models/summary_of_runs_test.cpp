#include "models/summary_of_runs.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <nlohmann/json.hpp>

#include "tests/support/support.h"

namespace gs {
namespace {

using test::error_of;

std::string run_with(const test::TemporaryDirectory& folder, const std::string& name,
                     const std::string& summary) {
  std::filesystem::create_directory(folder.file(name));
  folder.write(name + "/summary.json", summary);
  return folder.file(name);
}

TEST(SummaryOfRuns, HasMeanDeviationAndValues) {
  const test::TemporaryDirectory folder;
  const std::vector<std::string> runs{
      run_with(folder, "a", R"({"steps": 10, "stopped": "so", "bleu": {"x": 30, "y": 1}})"),
      run_with(folder, "b", R"({"steps": 10, "stopped": "so", "bleu": {"x": 32.5}, "more": 1})"),
      run_with(folder, "c", R"({"steps": 13, "stopped": "so", "bleu": {"x": 35, "y": null}})")};
  summarise_runs(runs, folder.path());
  const auto summary = nlohmann::json::parse(test::read_file(folder.file("summary.json")));
  EXPECT_EQ(summary["runs"], runs);
  EXPECT_EQ(summary["bleu"]["x"]["mean"], 32.5);
  EXPECT_EQ(summary["bleu"]["x"]["standard_deviation"], 2.5);
  EXPECT_EQ(summary["bleu"]["x"]["values"], (std::vector<double>{30, 32.5, 35}));
  EXPECT_EQ(summary["steps"]["mean"], 11);
  EXPECT_NEAR(summary["steps"]["standard_deviation"].get<double>(), 1.7320508075688772, 1e-15);
  for (const char* name : {"stopped", "more"}) EXPECT_FALSE(summary.contains(name)) << name;
  EXPECT_FALSE(summary["bleu"].contains("y")) << "not a number in every run";
}

TEST(SummaryOfRuns, OneRunHasNoDeviation) {
  const test::TemporaryDirectory folder;
  summarise_runs({run_with(folder, "a", R"({"bleu": {"x": 30}})")}, folder.path());
  const auto summary = nlohmann::json::parse(test::read_file(folder.file("summary.json")));
  EXPECT_EQ(summary["bleu"]["x"]["mean"], 30);
  EXPECT_TRUE(summary["bleu"]["x"]["standard_deviation"].is_null());
}

TEST(SummaryOfRuns, RefusesWhatIsNone) {
  const test::TemporaryDirectory folder;
  EXPECT_EQ(error_of([&] { summarise_runs({}, folder.path()); }), "summary: no run is given");
  for (const char* text : {"", "[1]", "{\"a\": "}) {
    const std::string run = run_with(folder, "run", text);
    EXPECT_EQ(error_of([&] { summarise_runs({run}, folder.path()); }),
              "summary: " + run + "/summary.json cannot be read, or is no summary of a run");
  }
  EXPECT_THAT(error_of([&] { summarise_runs({folder.file("none")}, folder.path()); }),
              testing::HasSubstr("cannot be read"));
  EXPECT_FALSE(std::filesystem::exists(folder.file("summary.json")));
}

TEST(SummaryOfRuns, FindsTheFirstSeed) {
  const test::TemporaryDirectory folder;
  EXPECT_FALSE(first_seed_in(folder.file("nowhere")).has_value());
  EXPECT_FALSE(first_seed_in(folder.path()).has_value());
  for (const char* name : {"seed_12", "seed_7", "seed_3", "seed_x", "seed_05", "my_seed_1"}) {
    std::filesystem::create_directory(folder.file(name));
    if (std::string(name) != "seed_3") folder.write(std::string(name) + "/last.h5", "");
  }
  EXPECT_EQ(first_seed_in(folder.path()), 7u) << "seed_3 has no checkpoint";
}

}  // namespace
}  // namespace gs
