#include "framework/train/report.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/support/support.h"

namespace gs {
namespace {

using test::error_of;
using test::TemporaryDirectory;
using testing::HasSubstr;
using testing::Not;

class Report : public testing::Test {
 protected:
  std::string html(const Options::Values& options = {}) const {
    return report_html(
        {.folder = folder_.path(), .title = "A run", .options = options, .samples = 2});
  }

  TemporaryDirectory folder_;
};

TEST_F(Report, DrawsWhatTheLogHolds) {
  folder_.write("metrics.jsonl",
                "{\"event\":\"training\",\"step\":10,\"epoch\":1,\"loss\":4,"
                "\"tokens_per_second\":100,\"seconds\":61}\n"
                "{\"event\":\"validation\",\"step\":10,\"loss\":2,\"perplexity\":100,\"bleu\":0}\n"
                "{\"event\":\"test a\",\"step\":10,\"bleu\":99}\n"
                "{\"event\":\"training\",\"step\":20,\"epoch\":2,\"loss\":null,"
                "\"tokens_per_second\":200,\"seconds\":122}\n"
                "{\"event\":\"validation\",\"step\":20,\"loss\":0,\"perplexity\":1,\"bleu\":50}\n"
                "[1]\n{\"event\":7}\n{\"event\":\"validation\",\"st");
  const std::string page = html();
  EXPECT_THAT(page, HasSubstr("points=\"72.0,12.0\""));               // the loss of training, 4
  EXPECT_THAT(page, HasSubstr("points=\"72.0,122.0 544.0,232.0\""));  // of validation, 2 and 0
  EXPECT_THAT(page, HasSubstr("points=\"72.0,12.0 544.0,232.0\""));   // perplexity
  EXPECT_THAT(page, HasSubstr("points=\"72.0,232.0 544.0,12.0\""));   // BLEU
  EXPECT_THAT(page, HasSubstr("points=\"72.0,122.0 544.0,12.0\""));   // speed
  EXPECT_THAT(page,
              HasSubstr("<h2>Run</h2>\n<dl "
                        "class=\"list\">\n<div><dt>step</dt><dd>20</dd></div>\n<div><dt>epoch</"
                        "dt><dd>2</dd></div>\n<div><dt>time</dt><dd>2:02</dd></div>\n</dl>"));
  EXPECT_THAT(page, HasSubstr("No test has been scored yet."));
  EXPECT_THAT(page, Not(HasSubstr("<h2>Options")));
  EXPECT_THAT(page, Not(HasSubstr("<h2>Translations")));
  EXPECT_THAT(page, testing::StartsWith("<!DOCTYPE html>"));
  EXPECT_THAT(page, testing::EndsWith("</html>\n"));
}

TEST_F(Report, TabulatesTheTests) {
  folder_.write("metrics.jsonl", "");
  folder_.write("summary.json",
                R"({"train_seconds": 61.0, "steps": 20, "exact_match": {"a": 0.125, "b": 1},
                    "bleu": {"a": 41.0249, "c<": null}, "chrf": {}, "note": "x & y"})");
  const std::string page = html({{"width", "128"}, {"valid-source", ""}, {"unit", "<b>"}});
  EXPECT_THAT(page, HasSubstr("<div><dt>train "
                              "time</dt><dd>1:01</dd></div>\n<div><dt>steps</dt><dd>20</dd></"
                              "div>\n<div><dt>note</dt><dd>x &amp; y</dd></div>\n</dl>"));
  EXPECT_THAT(
      page, HasSubstr("<th class=\"number\">exact match</th><th class=\"number\">BLEU</th></tr>"));
  EXPECT_THAT(page, HasSubstr("<tr><td>a</td><td class=\"number\">12.50 %</td>"
                              "<td class=\"number\">41.02</td>"));
  EXPECT_THAT(page, HasSubstr("<tr><td>b</td><td class=\"number\">100.00 %</td>"
                              "<td class=\"number\"></td>"));
  EXPECT_THAT(page, HasSubstr("<tr><td>c&lt;</td><td class=\"number\"></td>"));
  EXPECT_THAT(page, HasSubstr("<div><dt>width</dt><dd>128</dd></div>"));
  EXPECT_THAT(page, HasSubstr("<div><dt>valid-source</dt><dd>&ndash;</dd></div>"));
  EXPECT_THAT(page, HasSubstr("<div><dt>unit</dt><dd>&lt;b&gt;</dd></div>"));
}

TEST_F(Report, ShowsTranslationsFromAllOverATest) {
  folder_.write("metrics.jsonl", "");
  folder_.write("t.source", "one\ntwo\n<script>alert(1)</script>\nfour\n");
  folder_.write("t.translation", "eins\nzwei\n\xFF & drei\nvier\n");
  folder_.write("t.reference", "Eins\nZwei\n\nVier\n");
  // Other files of other lengths belong to another run.
  folder_.write("u.source", "a\nb\n");
  folder_.write("u.translation", "A\n");
  folder_.write("u.reference", "A\n");
  folder_.write("v.translation", "");
  const std::string page = html();
  EXPECT_THAT(page,
              HasSubstr("<h3>t</h3>\n<table>\n<tr><th>source</th><td dir=\"auto\">one</td></tr>\n"
                        "<tr><th>translation</th><td dir=\"auto\">eins</td></tr>\n"
                        "<tr><th>reference</th><td dir=\"auto\">Eins</td></tr>\n</table>\n"
                        "<table>\n<tr><th>source</th>"
                        "<td dir=\"auto\">&lt;script&gt;alert(1)&lt;/script&gt;</td></tr>\n"
                        "<tr><th>translation</th><td dir=\"auto\">\uFFFD &amp; drei</td></tr>\n"
                        "<tr><th>reference</th><td dir=\"auto\"></td></tr>\n</table>\n</div>"));
  EXPECT_THAT(page, Not(HasSubstr("<h3>u</h3>")));
  EXPECT_THAT(page, Not(HasSubstr("<h3>v</h3>")));
}

// Nothing is run and nothing is loaded from anywhere.
TEST_F(Report, NeedsNothingElse) {
  folder_.write("metrics.jsonl", "{\"event\":\"training\",\"step\":1,\"loss\":4}\n");
  write_report({.folder = folder_.path(), .title = "</title><script>"});
  const std::string page = test::read_file(folder_.file("report.html"));
  for (const char* text : {"<script", "http:", "https:", "src=", "href=", "url(", "@import"})
    EXPECT_THAT(page, Not(HasSubstr(text)));
  EXPECT_THAT(page, HasSubstr("<title>&lt;/title&gt;&lt;script&gt;</title>"));
}

TEST_F(Report, RefusesFoldersWithoutARun) {
  EXPECT_EQ(error_of([&] { html(); }), "report: " + folder_.file("metrics.jsonl") +
                                           " cannot be read; name the folder of a run");
  folder_.write("metrics.jsonl", "");
  EXPECT_THAT(html(), HasSubstr("nothing yet"));
  folder_.write("summary.json", "[]");
  EXPECT_EQ(error_of([&] { html(); }),
            "report: " + folder_.file("summary.json") + " is no JSON object; remove it");
}

}  // namespace
}  // namespace gs
