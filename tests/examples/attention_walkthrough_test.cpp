#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <regex>
#include <string>
#include <vector>

#include "tests/support/paths.h"
#include "tests/support/support.h"

namespace gs {
namespace {

using testing::HasSubstr;
using testing::Not;

test::CommandResult run(const std::string& arguments = "") {
  return test::run_command(test::program("attention_walkthrough ") + arguments);
}

std::string table_of(const std::string& output) { return output.substr(output.find("\nhead 0  ")); }

// The published numbers of the NumPy example, as they stand in the lines of its output.
TEST(AttentionWalkthrough, PrintsTheNumbersOfTheExample) {
  const auto result = run();
  EXPECT_EQ(result.status, 0);
  for (const char* line : {
           "\nweights = softmax(scores) (3 x 3)\n   0.1989013496   0.4237412998   0.3773573505\n",
           "\nweights = softmax(scores) (3 x 3)\n   0.2595188481   0.3997047244   0.3407764275\n",
           "\noutput = weights value (3 x 3)\n"
           "   0.1576525964  -0.1021838853  -0.6959753770\n"
           "   0.1662770704  -0.0954209427  -0.6874243781\n"
           "   0.1659078465  -0.0816976025  -0.7342273268\n",
           "\noutput = weights value (3 x 3)\n"
           "  -0.0209705709   0.2058862597  -0.7908474472\n"
           "  -0.0122056486   0.2212395561  -0.7193932846\n"
           "  -0.0157355798   0.2150433630  -0.7488218661\n",
           "   0.157653  -0.102184  -0.695975  -0.020971   0.205886  -0.790847\n",
           "\n  right   0.1576525964  -0.1021838853  -0.6959753770 ...\n"
           "  wrong   0.3117763133   0.1977368011  -1.1166413613 ...\n",
       })
    EXPECT_THAT(result.output, HasSubstr(line));
}

TEST(AttentionWalkthrough, ShowsThatAllFormsAgree) {
  const std::string output = run("--seed 7").output;
  for (const std::string form : {"PyTorch's form", "Keras's form", "nn::MultiHeadAttention"}) {
    std::smatch match;
    ASSERT_TRUE(std::regex_search(output, match, std::regex(form + " +([0-9.e+-]+)"))) << output;
    EXPECT_LT(std::stod(match[1]), 1e-12) << form;
  }
}

TEST(AttentionWalkthrough, PrintsATableOfASentence) {
  const auto result = run("--sentence ' a  bb a'");
  EXPECT_EQ(result.status, 0);
  const std::string table = table_of(result.output);
  EXPECT_EQ(std::count(table.begin(), table.end(), '\n'), 10) << table;
  EXPECT_THAT(table, HasSubstr("\nhead 0  a       bb      a\n"));
  const std::regex numbers("[01]\\.[0-9]{2}");
  std::vector<double> weights;
  for (std::sregex_iterator i(table.begin(), table.end(), numbers), end; i != end; ++i)
    weights.push_back(std::stod(i->str()));
  ASSERT_EQ(weights.size(), 18u) << table;
  for (size_t row = 0; row < 18; row += 3)
    EXPECT_NEAR(weights[row] + weights[row + 1] + weights[row + 2], 1, 0.016);
  // The same word twice: the same row, and the same share.
  for (const size_t row : {0, 3, 6, 9, 12, 15}) EXPECT_EQ(weights[row], weights[row + 2]);
  for (const size_t i : {0, 1, 2, 9, 10, 11}) EXPECT_EQ(weights[i], weights[i + 6]);
}

TEST(AttentionWalkthrough, HidesTheFutureWhenAsked) {
  const std::string table = table_of(run("--causal --sentence 'one two three'").output);
  EXPECT_THAT(table, HasSubstr("\none     1.00██     -       -\n"));
  EXPECT_EQ(std::count(table.begin(), table.end(), '-'), 6) << table;
  EXPECT_THAT(table_of(run("--sentence 'one two three'").output), Not(HasSubstr("-")));
}

TEST(AttentionWalkthrough, AlignsWordsThatAreNotAscii) {
  const std::string table = table_of(run("--sentence 'über Straßenbahnhaltestellen x'").output);
  EXPECT_THAT(table, HasSubstr("\nhead 0         über    Straßenbahnh…  x\n")) << table;
  EXPECT_THAT(table, HasSubstr("\nüber           "));
  EXPECT_THAT(table, HasSubstr("\nStraßenbahnh…  "));
}

TEST(AttentionWalkthrough, AnswersHelpAndRefusesBadOptionsInOneLine) {
  const auto help = run("--help");
  EXPECT_EQ(help.status, 0);
  for (const char* option : {"--seed", "--sentence", "--causal", "42"})
    EXPECT_THAT(help.output, HasSubstr(option));
  for (const std::string bad :
       {"--sentence ''", "--sentence '  '", "--sentence 'a b c d e f g h i j k l m'",
        "--sentence \"$(printf 'a\\377b')\"", "--seed -1", "--seed 4294967296", "--seed x",
        "--seed", "--nonsense 1", "stray"}) {
    const auto result = run(bad);
    EXPECT_EQ(result.status, 2) << bad << ": " << result.output;
    EXPECT_EQ(std::count(result.output.begin(), result.output.end(), '\n'), 1) << result.output;
  }
  EXPECT_THAT(run("--sentence ''").output, HasSubstr("--sentence: must have 1 to 12 words, got 0"));
  EXPECT_EQ(run("> /dev/full").status, 2);
}

}  // namespace
}  // namespace gs
