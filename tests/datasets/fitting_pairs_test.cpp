#include "datasets/fitting_pairs.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/support/support.h"

namespace gs {
namespace {

using test::error_of;
using testing::ElementsAre;
using testing::IsEmpty;

// Sequences of those lengths; the tokens of sequence i are all 10 + i.
Sequences of_lengths(const std::vector<size_t>& lengths) {
  Sequences sequences;
  for (size_t i = 0; i < lengths.size(); ++i)
    sequences.append(std::vector<int32_t>(lengths[i], static_cast<int32_t>(10 + i)));
  return sequences;
}

TEST(FittingPairs, LeaveOutWhereEitherSideIsLonger) {
  const FittingPairs fitting =
      fitting_pairs(of_lengths({3, 4, 0, 3, 1}), of_lengths({3, 1, 3, 4, 0}), 3);
  EXPECT_THAT(fitting.pairs, ElementsAre(0, 2, 4));
  EXPECT_THAT(fitting.left_out, ElementsAre(LongPair{1, 4, 1}, LongPair{3, 3, 4}));
  EXPECT_THAT(fitting.source.tokens, ElementsAre(10, 10, 10, 14));
  EXPECT_THAT(fitting.source.offsets, ElementsAre(0, 3, 3, 4));
  EXPECT_THAT(fitting.target.tokens, ElementsAre(10, 10, 10, 12, 12, 12));
  EXPECT_THAT(fitting.target.offsets, ElementsAre(0, 3, 6, 6));
}

TEST(FittingPairs, KeepAllThatFit) {
  const FittingPairs fitting = fitting_pairs(of_lengths({2, 3}), of_lengths({1, 2}), 3);
  EXPECT_THAT(fitting.pairs, ElementsAre(0, 1));
  EXPECT_THAT(fitting.left_out, IsEmpty());
  EXPECT_EQ(fitting.source, of_lengths({2, 3}));
  EXPECT_EQ(fitting.target, of_lengths({1, 2}));
  EXPECT_THAT(fitting_pairs({}, {}, 3).pairs, IsEmpty());
  EXPECT_THAT(fitting_pairs(of_lengths({1}), of_lengths({1}), 0).pairs, IsEmpty());
  EXPECT_EQ(error_of([] {
              fitting_pairs(of_lengths({1, 1}), of_lengths({1}), 3);
            }),
            "fitting pairs: counts differ, got 2 sources and 1 targets; give one target for each "
            "source");
}

TEST(FittingPairs, TheNoteNamesTheirLines) {
  TranslationSplit split{"train", {"a", "b", "c"}, {"A", "B", "C"}, {4, 7, 8}};
  FittingPairs fitting = fitting_pairs(of_lengths({1, 5, 2}), of_lengths({1, 2, 4}), 3);
  EXPECT_EQ(long_pairs_note(split, fitting, 3),
            "train: 2 pairs are left out, longer than 3 tokens (--maximum-length counts an end "
            "mark more): line 7 (5 and 2), line 8 (2 and 4)");
  keep_pairs(split, fitting.pairs);
  EXPECT_THAT(split.source, ElementsAre("a"));
  EXPECT_THAT(split.target, ElementsAre("A"));
  EXPECT_THAT(split.lines, ElementsAre(4));

  // Generated pairs have no lines.
  TranslationSplit generated{"iid", {"a", "b", "c"}, {"A", "B", "C"}};
  fitting = fitting_pairs(of_lengths({9, 1, 1}), of_lengths({1, 1, 1}), 3);
  EXPECT_EQ(long_pairs_note(generated, fitting, 3),
            "iid: 1 pair is left out, longer than 3 tokens (--maximum-length counts an end mark "
            "more): pair 1 (9 and 1)");
  keep_pairs(generated, fitting.pairs);
  EXPECT_THAT(generated.source, ElementsAre("b", "c"));
  EXPECT_THAT(generated.target, ElementsAre("B", "C"));
  EXPECT_THAT(generated.lines, IsEmpty());
}

TEST(FittingPairs, TheNoteHasAFewExamples) {
  const TranslationSplit split{"valid", std::vector<std::string>(6), std::vector<std::string>(6)};
  const FittingPairs fitting =
      fitting_pairs(of_lengths({2, 2, 2, 2, 2, 2}), of_lengths({1, 1, 1, 1, 1, 1}), 1);
  EXPECT_EQ(long_pairs_note(split, fitting, 1),
            "valid: 6 pairs are left out, longer than 1 tokens (--maximum-length counts an end "
            "mark more): pair 1 (2 and 1), pair 2 (2 and 1), pair 3 (2 and 1), pair 4 (2 and 1), "
            "pair 5 (2 and 1), ...");
}

}  // namespace
}  // namespace gs
