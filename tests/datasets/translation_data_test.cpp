#include "datasets/translation_data.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>

#include "datasets/toy_corpus.h"
#include "tests/support/support.h"

namespace gs {
namespace {

using test::error_of;
using test::TemporaryDirectory;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

using Lines = std::vector<std::string>;

void expect_pairs(const TranslationSplit& split, const std::string& name,
                  const std::vector<ToyPair>& pairs, size_t first, size_t count) {
  EXPECT_EQ(split.name, name);
  ASSERT_EQ(split.source.size(), count);
  ASSERT_EQ(split.target.size(), count);
  for (size_t i = 0; i < count; ++i) {
    EXPECT_EQ(split.source[i], pairs[first + i].source);
    EXPECT_EQ(split.target[i], pairs[first + i].target);
  }
}

TEST(TranslationData, OfTheToyCorpusIsItsSplits) {
  const ToyDataConfig config{
      .seed = 7, .level = 2, .train_pairs = 30, .valid_pairs = 6, .test_pairs = 11};
  const TranslationData data = toy_translation_data(config);
  expect_pairs(data.train, "train", toy_pairs(7, 2, "train", 30), 0, 30);
  const std::vector<ToyPair> iid = toy_pairs(7, 2, "iid", 17);
  ASSERT_EQ(data.tests.size(), 5u);
  expect_pairs(data.tests[0], "iid", iid, 0, 11);
  expect_pairs(data.valid, "valid", iid, 11, 6);
  const std::vector<std::string> names{"iid", "pair", "role", "nested", "long"};
  for (size_t i = 1; i < names.size(); ++i)
    expect_pairs(data.tests[i], names[i], toy_pairs(7, 2, names[i], 11), 0, 11);
  EXPECT_THAT(data.notes, IsEmpty());
}

// What is scored was neither trained on nor watched.
TEST(TranslationData, NoToySentenceIsInTwoSplits) {
  const TranslationData data = toy_translation_data(
      {.seed = 1, .level = 1, .train_pairs = 2000, .valid_pairs = 200, .test_pairs = 200});
  ASSERT_EQ(data.tests.size(), 3u);  // level 1 has no nested and no long sentences
  std::set<std::string> seen(data.train.source.begin(), data.train.source.end());
  EXPECT_EQ(seen.size(), 2000u);
  size_t expected = seen.size();
  for (const TranslationSplit* split :
       {&data.valid, &data.tests[0], &data.tests[1], &data.tests[2]}) {
    seen.insert(split->source.begin(), split->source.end());
    expected += split->source.size();
    EXPECT_EQ(seen.size(), expected) << split->name;
  }
}

TEST(TranslationData, ReadsTwoFilesForEachPurpose) {
  const TemporaryDirectory folder;
  FileDataConfig config;
  config.train_source = folder.write("train.en", "a b\nc\n\n");
  config.train_target = folder.write("train.de", "A B\nC\nempty source\n");
  config.valid_source = folder.write("valid.en", "d\n");
  config.valid_target = folder.write("valid.de", "D\n");
  config.test_source = folder.write("test.en", "e\nf f f\n");
  config.test_target = folder.write("test.de", "E\nF\n");
  config.maximum_words = 2;
  const TranslationData data = file_translation_data(config);
  EXPECT_EQ(data.train.source, (Lines{"a b", "c"}));
  EXPECT_EQ(data.train.target, (Lines{"A B", "C"}));
  EXPECT_EQ(data.valid.name, "valid");
  EXPECT_EQ(data.valid.source, Lines{"d"});
  EXPECT_EQ(data.valid.target, Lines{"D"});
  ASSERT_EQ(data.tests.size(), 1u);
  EXPECT_EQ(data.tests[0].name, "test");
  EXPECT_EQ(data.tests[0].source, Lines{"e"});
  EXPECT_EQ(data.tests[0].target, Lines{"E"});
  ASSERT_EQ(data.notes.size(), 3u);
  EXPECT_THAT(data.notes[0], HasSubstr("3 lines, 2 pairs, 1 left out"));
  EXPECT_THAT(data.notes[1], HasSubstr("valid.en"));
  EXPECT_THAT(data.notes[2], HasSubstr("2 lines, 1 pairs, 1 left out"));
}

TEST(TranslationData, HoldsOutTheLastPairsWithoutValidationFiles) {
  const TemporaryDirectory folder;
  FileDataConfig config;
  config.train_source = folder.write("pairs.tsv", "a\tA\nb\tB\nc\tC\nd\tD\n");
  config.valid_pairs = 3;
  const TranslationData data = file_translation_data(config);
  EXPECT_EQ(data.train.source, Lines{"a"});
  EXPECT_EQ(data.train.target, Lines{"A"});
  EXPECT_EQ(data.valid.source, (Lines{"b", "c", "d"}));
  EXPECT_EQ(data.valid.target, (Lines{"B", "C", "D"}));
  EXPECT_THAT(data.tests, IsEmpty());
  config.valid_pairs = 4;
  EXPECT_EQ(error_of([&] { file_translation_data(config); }),
            "data: 4 pairs are too few to hold out 4 for validation; give validation files");
}

TEST(TranslationData, RefusesFilesThatDoNotFit) {
  const TemporaryDirectory folder;
  FileDataConfig config;
  config.train_source = folder.write("a.en", "a\nb\n");
  config.train_target = folder.write("a.de", "A\n");
  EXPECT_THAT(error_of([&] { file_translation_data(config); }), HasSubstr("2"));
  config.train_target = folder.file("none.de");
  EXPECT_THAT(error_of([&] { file_translation_data(config); }), HasSubstr("none.de"));
  config.train_target = folder.write("a.de", "A\nB\n");
  config.valid_pairs = 1;
  // A target that would be passed over in silence.
  config.valid_target = config.train_target;
  EXPECT_EQ(error_of([&] { file_translation_data(config); }),
            "data: the validation target " + config.train_target + " has no source; name both");
  config.valid_target.clear();
  config.test_target = config.train_target;
  EXPECT_EQ(error_of([&] { file_translation_data(config); }),
            "data: the test target " + config.train_target + " has no source; name both");
  config.test_target.clear();
  EXPECT_EQ(file_translation_data(config).train.source, Lines{"a"});
}

}  // namespace
}  // namespace gs
