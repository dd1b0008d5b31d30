#include "framework/train/metrics_log.h"

#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>
#include <limits>
#include <nlohmann/json.hpp>

#include "tests/support/support.h"

namespace gs {
namespace {

using test::error_of;
using test::read_file;

TEST(MetricsLog, OneObjectALineAtOnce) {
  const test::TemporaryDirectory folder;
  const std::string path = folder.write("log", "old\n");
  MetricsLog log = MetricsLog::create(path);
  log.write({{"step", 1}, {"loss", 0.1}, {"split", "iid"}, {"best", true}});
  const std::string line = "{\"step\":1,\"loss\":0.1,\"split\":\"iid\",\"best\":true}\n";
  EXPECT_EQ(read_file(path), line);
  log.write({});
  EXPECT_EQ(read_file(path), line + "{}\n");
}

TEST(MetricsLog, IsAlwaysValidJson) {
  const test::TemporaryDirectory folder;
  const std::string path = folder.file("log");
  const double infinity = std::numeric_limits<double>::infinity();
  MetricsLog::create(path).write({{"loss", std::nan("")},
                                  {"perplexity", infinity},
                                  {"least", -infinity},
                                  {"largest", INT64_MAX},
                                  {"text", "a\"\n\\\xff\x01"}});
  const auto object = nlohmann::json::parse(read_file(path));
  EXPECT_TRUE(object["loss"].is_null());
  EXPECT_TRUE(object["perplexity"].is_null());
  EXPECT_TRUE(object["least"].is_null());
  EXPECT_EQ(object["largest"].get<int64_t>(), INT64_MAX);
  EXPECT_EQ(object["text"], "a\"\n\\\xef\xbf\xbd\x01");
}

TEST(MetricsLog, ResumingDropsACutLine) {
  const test::TemporaryDirectory folder;
  const std::string whole = "{\"step\":1}\n{\"step\":2}\n";
  for (const std::string rest : {"", "{\"st", "{\"step\":3}", "{\"st\n", "\n"}) {
    const std::string path = folder.write("log", whole + rest);
    MetricsLog::resume(path).write({{"step", 3}});
    EXPECT_EQ(read_file(path), whole + "{\"step\":3}\n") << rest;
    EXPECT_FALSE(std::filesystem::exists(path + ".tmp"));
  }
}

TEST(MetricsLog, ResumingDropsWhatIsDoneAgain) {
  const test::TemporaryDirectory folder;
  const std::string path = folder.write(
      "log", "{\"step\":1}\n{\"note\":\"a\"}\n{\"step\":2}\n{\"step\":3}\n{\"step\":2}\n");
  MetricsLog::resume(path, 2).write({{"step", 3}});
  EXPECT_EQ(read_file(path),
            "{\"step\":1}\n{\"note\":\"a\"}\n{\"step\":2}\n{\"step\":2}\n{\"step\":3}\n");
}

TEST(MetricsLog, ResumingDropsEventsThatAreDoneAgain) {
  const test::TemporaryDirectory folder;
  const std::string kept =
      "{\"event\":\"test a\",\"step\":1}\n{\"event\":\"training\",\"step\":2}\n{\"step\":2}\n"
      "{\"event\":3,\"step\":2}\n";
  const std::string path = folder.write(
      "log", kept + "{\"event\":\"test a\",\"step\":2}\n{\"event\":\"x\",\"step\":3}\n" +
                 "{\"event\":\"stopped\",\"step\":2}\n");
  MetricsLog::resume(path, 2, {"stopped", "test "});
  EXPECT_EQ(read_file(path), kept);
}

TEST(MetricsLog, ResumingStartsWhereThereIsNone) {
  const test::TemporaryDirectory folder;
  MetricsLog::resume(folder.file("new")).write({{"step", 1}});
  EXPECT_EQ(read_file(folder.file("new")), "{\"step\":1}\n");
  MetricsLog::resume(folder.write("empty", "")).write({{"step", 1}});
  EXPECT_EQ(read_file(folder.file("empty")), "{\"step\":1}\n");
}

TEST(MetricsLog, OtherFilesAreRefusedAndKept) {
  const test::TemporaryDirectory folder;
  const std::string text = "{\"step\":1}\nDear diary\n[3]\n";
  const std::string path = folder.write("diary", text);
  EXPECT_EQ(error_of([&] { MetricsLog::resume(path); }),
            "metrics log: line 2 of " + path + " is no JSON object; choose another file");
  EXPECT_EQ(read_file(path), text);
  const std::string missing = folder.file("a/b");
  EXPECT_EQ(error_of([&] { MetricsLog::create(missing); }),
            "metrics log: " + missing +
                " cannot be written, No such file or directory; choose another file");
  EXPECT_EQ(error_of([&] { MetricsLog::resume(folder.path().string()); }),
            "metrics log: " + folder.path().string() + " cannot be read; choose another file");
}

TEST(MetricsLog, AFullDiskIsReported) {
  MetricsLog log = MetricsLog::create("/dev/full");
  EXPECT_NE(error_of([&] {
              log.write({{"step", 1}});
            }).find("metrics log: /dev/full cannot be written, No space left on device"),
            std::string::npos);
}

}  // namespace
}  // namespace gs
