#include "framework/text/byte_pair_learning.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/support/support.h"

namespace gs {
namespace {

using test::error_of;
using testing::HasSubstr;
using Lines = std::vector<std::string>;

const Lines kLines{"aaa aaaa aaaaa ab abab ababab", "low lower lowest newer wer low low",
                   "ein kleiner jungär jär jär x y x y", "zz zzz zzzz"};

// The merges of subword-nmt's learn-bpe 0.3.8, with pairs that overlap and many of equal counts.
const std::string kMerges =
    "a a\nl o\nw e\nä r</w>\nz z</w>\nwe r</w>\nlo w</w>\nb a\nz zz</w>\nn e\nj är</w>\ne i\n"
    "ba b</w>\naa a</w>\n";

TEST(LearnBytePairs, LearnsAsSubwordNmtDoes) {
  EXPECT_EQ(learn_byte_pairs(kLines, 1000).codes(), "#version: 0.2\n" + kMerges);
  EXPECT_EQ(learn_byte_pairs(kLines, 4).codes(), "#version: 0.2\na a\nl o\nw e\nä r</w>\n");
}

// rsennrich/subword-nmt#41
TEST(LearnBytePairs, TakesAnySpacesAndBlankLines) {
  Lines spaced{"", "   "};
  for (const std::string& line : kLines) spaced.push_back("  " + line + " \t ");
  EXPECT_EQ(learn_byte_pairs(spaced, 1000), learn_byte_pairs(kLines, 1000));
}

TEST(LearnBytePairs, RefusesTextWithoutPairs) {
  for (const Lines& lines : {Lines{}, Lines{""}, Lines{"a"}, Lines{"ab cd", "e f g"}}) {
    EXPECT_THAT(error_of([&] { learn_byte_pairs(lines, 10); }),
                HasSubstr("learn_byte_pairs: no pair of symbols occurs twice"));
  }
  EXPECT_THAT(error_of([] { learn_byte_pairs(Lines{"aa aa"}, 0); }), HasSubstr("got 0"));
  EXPECT_THAT(error_of([] { learn_byte_pairs(Lines{"a\xFF"}, 1); }), HasSubstr("UTF-8"));
}

}  // namespace
}  // namespace gs
