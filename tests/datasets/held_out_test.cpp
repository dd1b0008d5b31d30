#include "datasets/held_out.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <random>
#include <set>

#include "tests/support/support.h"

namespace gs {
namespace {

using test::error_of;
using testing::Each;
using testing::ElementsAre;
using testing::IsEmpty;

using Lines = std::vector<std::string>;
constexpr Purpose kTraining = Purpose::kTraining, kValidation = Purpose::kValidation,
                  kTest = Purpose::kTest;

// Sentences of 1 to 4 translations, sorted by length, as files of sentence collections are.
Lines many_sources() {
  Lines sources;
  for (int i = 0; i < 3000; ++i) {
    for (int copy = 0; copy <= i % 4; ++copy) {
      sources.push_back(std::string(static_cast<size_t>(i / 100), 'x') + std::to_string(i));
    }
  }
  return sources;
}

std::map<std::string, std::set<Purpose>> purposes_of_sentences(
    const Lines& sources, const std::vector<Purpose>& purposes) {
  std::map<std::string, std::set<Purpose>> found;
  for (size_t i = 0; i < sources.size(); ++i) found[sources[i]].insert(purposes[i]);
  return found;
}

// The order of the hashes, computed with Python: d g h c e b f a for seed 1, h e f b c d a g for
// seed 2.
TEST(HeldOut, TakesTheFirstSentencesInTheOrderOfTheirHashes) {
  const Lines sources{"a", "b", "c", "d", "e", "f", "g", "h"};
  EXPECT_THAT(hold_out(sources, {.valid_pairs = 3, .test_pairs = 2, .seed = 1}),
              ElementsAre(kTraining, kTraining, kValidation, kTest, kValidation, kTraining, kTest,
                          kValidation));
  EXPECT_THAT(hold_out(sources, {.valid_pairs = 1, .test_pairs = 1, .seed = 2}),
              ElementsAre(kTraining, kTraining, kTraining, kTraining, kValidation, kTraining,
                          kTraining, kTest));
}

TEST(HeldOut, AllTranslationsOfASentenceGoTheSameWay) {
  const Lines sources = many_sources();
  const std::vector<Purpose> purposes =
      hold_out(sources, {.valid_pairs = 500, .test_pairs = 700, .seed = 5});
  for (const auto& [sentence, found] : purposes_of_sentences(sources, purposes))
    EXPECT_EQ(found.size(), 1u) << sentence;
  const auto valid = std::count(purposes.begin(), purposes.end(), kValidation);
  const auto test = std::count(purposes.begin(), purposes.end(), kTest);
  // At least as many as wanted, and less than one sentence more.
  EXPECT_TRUE(valid >= 500 && valid < 504) << valid;
  EXPECT_TRUE(test >= 700 && test < 704) << test;
}

// A split that took the end of a sorted file would have long sentences alone.
TEST(HeldOut, TakesShortAndLongSentencesAlike) {
  const Lines sources = many_sources();
  const std::vector<Purpose> purposes = hold_out(sources, {.valid_pairs = 750});
  for (size_t part = 0; part < 5; ++part) {
    const auto begin = purposes.begin() + static_cast<int64_t>(part * purposes.size() / 5);
    const auto end = purposes.begin() + static_cast<int64_t>((part + 1) * purposes.size() / 5);
    const auto held = std::count(begin, end, kValidation);
    EXPECT_TRUE(held > 100 && held < 200) << "part " << part << ": " << held;  // 150 expected
  }
}

TEST(HeldOut, DoesNotDependOnTheOrderOfTheCorpus) {
  Lines sources = many_sources();
  const HeldOutConfig config{.valid_pairs = 300, .test_pairs = 300, .seed = 9};
  const auto before = purposes_of_sentences(sources, hold_out(sources, config));
  std::mt19937 random(3);
  std::shuffle(sources.begin(), sources.end(), random);
  EXPECT_EQ(purposes_of_sentences(sources, hold_out(sources, config)), before);
}

// So that scores of runs with other validation sizes can be compared.
TEST(HeldOut, TheTestDoesNotDependOnTheValidation) {
  const Lines sources = many_sources();
  const std::vector<Purpose> with = hold_out(sources, {.valid_pairs = 300, .test_pairs = 200});
  const std::vector<Purpose> without = hold_out(sources, {.test_pairs = 200});
  for (size_t i = 0; i < sources.size(); ++i) EXPECT_EQ(with[i] == kTest, without[i] == kTest);
}

TEST(HeldOut, FollowsTheSeed) {
  const Lines sources = many_sources();
  const std::vector<Purpose> first = hold_out(sources, {.test_pairs = 500, .seed = 1});
  EXPECT_EQ(hold_out(sources, {.test_pairs = 500, .seed = 1}), first);
  const std::vector<Purpose> second = hold_out(sources, {.test_pairs = 500, .seed = 2});
  int64_t both = 0;
  for (size_t i = 0; i < sources.size(); ++i) both += first[i] == kTest && second[i] == kTest;
  EXPECT_LT(both, 100);  // 500 * 500 / 7500 = 33 expected
}

TEST(HeldOut, LetterCaseCounts) {
  const std::vector<Purpose> purposes = hold_out(Lines{"Go", "go", "Go"}, {.test_pairs = 1});
  EXPECT_EQ(purposes[0], purposes[2]);
  EXPECT_NE(purposes[0], purposes[1]);
}

TEST(HeldOut, NothingWantedLeavesAllForTraining) {
  EXPECT_THAT(hold_out(Lines{"a", "b", "a"}, {}), Each(kTraining));
  EXPECT_THAT(hold_out(Lines{}, {}), IsEmpty());
}

TEST(HeldOut, RefusesWhatLeavesNoTrainingPair) {
  const auto error = [](const Lines& sources, HeldOutConfig config) {
    return error_of([&] { hold_out(sources, config); });
  };
  EXPECT_EQ(error({"a", "b", "c"}, {.valid_pairs = 1, .test_pairs = 2}),
            "held out: 3 pairs are too few to hold out 1 for validation and 2 for the test, with "
            "all translations of each of their sentences; lower the numbers, or give files");
  // One sentence alone cannot be split.
  EXPECT_EQ(error({"a", "a", "a"}, {.valid_pairs = 1}),
            "held out: 3 pairs are too few to hold out 1 for validation and 0 for the test, with "
            "all translations of each of their sentences; lower the numbers, or give files");
  EXPECT_EQ(error({"a", "b"}, {.test_pairs = -1}),
            "held out: numbers of pairs are 0 or more, got 0 for validation and -1 for the test");
  EXPECT_EQ(error({}, {.valid_pairs = 1}),
            "held out: 0 pairs are too few to hold out 1 for validation and 0 for the test, with "
            "all translations of each of their sentences; lower the numbers, or give files");
}

}  // namespace
}  // namespace gs
