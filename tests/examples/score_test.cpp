#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "tests/examples/translation_programs.h"
#include "tests/support/paths.h"

namespace gs {
namespace {

using test::CommandResult;
using test::run_program;
using testing::HasSubstr;
using testing::StartsWith;

const char* const kReference = "A red bird sits on the old wall.\nIt costs 1,250.75 dollars.\n";
const char* const kHypothesis = "A red bird is on the old wall.\nIt costs 1,250.75 euros.\n";

class Score : public testing::Test {
 protected:
  CommandResult score(const std::string& hypothesis, const std::string& arguments = "",
                      const std::string& reference = kReference) const {
    return run_program("score", "--reference " + folder_.write("reference", reference) +
                                    " --hypothesis " + folder_.write("hypothesis", hypothesis) +
                                    " " + arguments);
  }

  test::TemporaryDirectory folder_;
};

// The numbers are sacreBLEU's: `sacrebleu reference -i hypothesis -m bleu chrf`.
TEST_F(Score, PrintsALineForEachMetric) {
  const CommandResult result = score(kHypothesis, "--metric bleu,chrf --metric chrf++");
  EXPECT_EQ(result.status, 0);
  EXPECT_EQ(
      result.output,
      "BLEU|nrefs:1|case:mixed|eff:no|tok:13a|smooth:exp|version:gradstone-0.1.0 = 51.70 "
      "85.7/66.7/50.0/25.0 (BP = 1.000 ratio = 1.000 hyp_len = 14 ref_len = 14)\n"
      "chrF2|nrefs:1|case:mixed|eff:yes|nc:6|nw:0|space:no|version:gradstone-0.1.0 = 71.51\n"
      "chrF2++|nrefs:1|case:mixed|eff:yes|nc:6|nw:2|space:no|version:gradstone-0.1.0 = 72.70\n");
  EXPECT_THAT(score(kHypothesis, "--lowercase --tokenize intl --smoothing add-k").output,
              StartsWith("BLEU|nrefs:1|case:lc|eff:no|tok:intl|smooth:add-k[1.00]|"));
}

TEST_F(Score, ReadsStandardInputAndWordsAsHypotheses) {
  const std::string reference = folder_.write("reference", kReference);
  const std::string hypothesis = folder_.write("hypothesis", kHypothesis);
  const std::string expected = score(kHypothesis).output;
  EXPECT_EQ(run_program("score", "--reference " + reference + " < " + hypothesis).output, expected);
  EXPECT_EQ(run_program("score", "--reference " + reference + " - < " + hypothesis).output,
            expected);
  EXPECT_EQ(run_program("score", hypothesis + " --reference " + reference).output, expected);
  EXPECT_EQ(test::run_command("gzip -c " + hypothesis + " | " +
                              test::program("score --reference ") + reference)
                .output,
            expected);
}

TEST_F(Score, ToleratesCarriageReturnsByteOrderMarksAndAMissingLastLineEnd) {
  EXPECT_EQ(score("\xEF\xBB\xBF"
                  "A red bird is on the old wall.\r\nIt costs 1,250.75 euros.  ")
                .output,
            score(kHypothesis).output);
  // U+2028, a form feed and a lone CR end no line.
  EXPECT_EQ(score("a\u2028\x0c\rb\n", "--tokenize none --order 2", "a b\n").output,
            "BLEU|nrefs:1|case:mixed|eff:no|tok:none|smooth:exp|version:gradstone-0.1.0 = 100.00 "
            "100.0/100.0 (BP = 1.000 ratio = 1.000 hyp_len = 2 ref_len = 2)\n");
}

// mjpost/sacrebleu#198: empty hypotheses count by their references' length.
TEST_F(Score, EmptyLinesCount) {
  EXPECT_EQ(score("a b c d e\n\n", "--multi-bleu", "a b c d e\nf g h\n").output,
            "BLEU = 54.88, 100.0/100.0/100.0/100.0 (BP=0.549, ratio=0.625, hyp_len=5, "
            "ref_len=8)\n");
}

TEST_F(Score, TakesSeveralReferences) {
  const std::string second = folder_.write("second", "A red bird is on the old wall.\nNo.\n");
  const CommandResult result = score(kHypothesis, "--tokenize none --reference " + second);
  EXPECT_THAT(result.output, StartsWith("BLEU|nrefs:2|"));
  EXPECT_THAT(result.output, HasSubstr("= 88.07 91.7/90.0/87.5/83.3 "));
}

TEST_F(Score, GivesScoresOfSentences) {
  EXPECT_EQ(score(kHypothesis, "--sentence --metric bleu,chrf --digits 4").output,
            "sentence\tBLEU|nrefs:1|case:mixed|eff:yes|tok:13a|smooth:exp|version:gradstone-0.1.0"
            "\tchrF2|nrefs:1|case:mixed|eff:yes|nc:6|nw:0|space:no|version:gradstone-0.1.0\n"
            "1\t59.6949\t76.8585\n2\t42.7287\t65.6349\n");
}

TEST_F(Score, ComparesSystemsOnTheSameSamples) {
  std::string reference, good, bad;
  for (int i = 0; i < 60; ++i) {
    const std::string line = "word" + std::to_string(i) + " and some more of the same kind";
    reference += line + "\n";
    good += line + (i % 3 == 0 ? " here\n" : "\n");
    bad += "no " + line + (i % 2 == 0 ? " here\n" : "\n");
  }
  const std::string second = folder_.write("second", good);
  const CommandResult result = score(bad, "--confidence 200 --hypothesis " + second, reference);
  EXPECT_THAT(result.output, HasSubstr("nrefs:1|bs:200|seed:12345|case:mixed"));
  EXPECT_THAT(result.output, HasSubstr("(μ = "));
  EXPECT_THAT(result.output, HasSubstr(" against " + folder_.file("hypothesis") +
                                       ", p = 0.0050, better in 100.0 % of the samples\n"));
  const auto json = nlohmann::json::parse(
      score(bad, "--confidence 200 --json --hypothesis " + second, reference).output);
  EXPECT_EQ(json["sentences"], 60);
  EXPECT_EQ(json["systems"][1]["metrics"][0]["against_first"]["wins"], 1.0);
  EXPECT_FALSE(json["systems"][0]["metrics"][0].contains("against_first"));
  EXPECT_EQ(score(bad, "--confidence 50 --seed 3 --hypothesis " + second, reference).output,
            score(bad, "--confidence 50 --seed 3 --hypothesis " + second, reference).output);
}

TEST_F(Score, GivesAllNumbersAsJson) {
  const auto json = nlohmann::json::parse(score(kHypothesis, "--json --sentence").output);
  const auto& metric = json["systems"][0]["metrics"][0];
  EXPECT_EQ(metric["name"], "BLEU");
  EXPECT_EQ(metric["matches"], (std::vector<int64_t>{12, 8, 5, 2}));
  EXPECT_EQ(metric["totals"], (std::vector<int64_t>{14, 12, 10, 8}));
  EXPECT_EQ(metric["reference_length"], 14);
  EXPECT_EQ(metric["sentence_scores"].size(), 2u);
}

// mjpost/sacrebleu warns alike: 13a on tokenized text counts marks twice over.
TEST_F(Score, WarnsOfTokenizedText) {
  std::string tokenized;
  for (int i = 0; i < 100; ++i) tokenized += "it is so .\n";
  EXPECT_THAT(score(tokenized, "", tokenized).output,
              HasSubstr("score: 100 lines of " + folder_.file("hypothesis") +
                        " end in a period of its own: the text looks tokenized"));
  EXPECT_THAT(score(tokenized, "--tokenize none", tokenized).output, StartsWith("BLEU|"));
}

TEST_F(Score, RefusesWhatCannotBeScored) {
  const CommandResult fewer = score("a\n");
  EXPECT_EQ(fewer.status, 2);
  EXPECT_EQ(fewer.output, "score: line counts differ, got 1 in " + folder_.file("hypothesis") +
                              " and 2 in " + folder_.file("reference") +
                              "; every hypothesis needs its reference in the line of the same "
                              "number\n");
  EXPECT_THAT(score("a\nb\xff\n").output,
              HasSubstr("hypothesis is not UTF-8, got byte 0xff at offset 1 of line 2"));
  EXPECT_THAT(score("", "", "").output, HasSubstr("reference is empty"));
  EXPECT_THAT(run_program("score", "< /dev/null").output, HasSubstr("--reference: missing"));
  EXPECT_THAT(score("a\nb\n", "--sentence --confidence 10").output, HasSubstr("--sentence: does"));
  EXPECT_THAT(score("a\nb\n", "--multi-bleu --tokenize 13a").output,
              HasSubstr("--multi-bleu: does not go with --tokenize"));
  EXPECT_THAT(score("a\nb\n", "--tokenize zh").output, HasSubstr("--tokenize: unknown choice"));
  EXPECT_EQ(run_program("score", "--reference nowhere.de").output,
            "score: read: cannot open nowhere.de: No such file or directory\n");
}

}  // namespace
}  // namespace gs
