#include "datasets/translation_data.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
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
  config.test_source = {folder.write("test.en", "e\n\nf f f\n")};
  config.test_target = {folder.write("test.de", "E\n\nF\n")};
  config.maximum_words = 2;
  const TranslationData data = file_translation_data(config);
  EXPECT_EQ(data.train.source, (Lines{"a b", "c"}));
  EXPECT_EQ(data.train.target, (Lines{"A B", "C"}));
  EXPECT_EQ(data.valid.name, "valid");
  EXPECT_EQ(data.valid.source, Lines{"d"});
  EXPECT_EQ(data.valid.target, Lines{"D"});
  ASSERT_EQ(data.tests.size(), 1u);
  EXPECT_EQ(data.tests[0].name, "test");
  EXPECT_EQ(data.tests[0].source, (Lines{"e", "f f f"}));  // of any length
  EXPECT_EQ(data.tests[0].target, (Lines{"E", "F"}));
  EXPECT_THAT(data.tests[0].lines, ElementsAre(1, 3));
  EXPECT_EQ(data.tests[0].place(1), "line 3");
  ASSERT_EQ(data.notes.size(), 3u);
  EXPECT_THAT(data.notes[0], HasSubstr("3 lines, 2 pairs, 1 left out"));
  EXPECT_THAT(data.notes[1], HasSubstr("valid.en"));
  EXPECT_THAT(data.notes[2], HasSubstr("3 lines, 2 pairs, 1 left out"));
}

// The order of the hashes of a to h for seed 1 is d g h c e b f a (held_out_test.cpp).
TEST(TranslationData, HoldsOutSourceSentencesInTheOrderOfTheFile) {
  const TemporaryDirectory folder;
  FileDataConfig config;
  config.train_source =
      folder.write("pairs.tsv", "a\tA\nb\tB\n\nc\tC\nd\tD\nd \tDD\ne\tE\n\u200Bd\tDDD\n");
  config.valid_pairs = 2;
  config.held_out_test = 1;
  const TranslationData data = file_translation_data(config);
  EXPECT_EQ(data.train.source, (Lines{"a", "b"}));
  EXPECT_EQ(data.train.target, (Lines{"A", "B"}));
  EXPECT_EQ(data.valid.source, (Lines{"c", "e"}));
  EXPECT_EQ(data.valid.target, (Lines{"C", "E"}));
  EXPECT_THAT(data.valid.lines, ElementsAre(4, 7));
  ASSERT_EQ(data.tests.size(), 1u);
  EXPECT_EQ(data.tests[0].name, "test");
  EXPECT_EQ(data.tests[0].source, (Lines{"d", "d", "d"}));
  EXPECT_EQ(data.tests[0].target, (Lines{"D", "DD", "DDD"}));
  ASSERT_EQ(data.notes.size(), 2u);
  EXPECT_EQ(data.notes[1],
            "held out by source sentence: 2 pairs of 2 sentences for validation, 3 pairs of 1 "
            "sentences for the test; 2 pairs of 2 sentences are left for training (split seed 1)");
  config.valid_pairs = 7;
  EXPECT_THAT(error_of([&] { file_translation_data(config); }),
              HasSubstr("held out: 7 pairs are too few to hold out 7 for validation and 1 for the "
                        "test"));
}

TEST(TranslationData, HoldsATestOutBesideFilesOfValidationAndTest) {
  const TemporaryDirectory folder;
  FileDataConfig config;
  config.train_source = folder.write("pairs.tsv", "a\tA\nb\tB\nc\tC\nd\tD\n");
  config.valid_source = folder.write("valid.tsv", "a\tAA\ne\tE\n");
  config.test_source = {folder.write("test.tsv", "x\tX\nb\tBB\n"),
                        folder.write("other.tsv.gz", "d\tDD\n")};
  config.held_out_test = 1;  // d
  const TranslationData data = file_translation_data(config);
  EXPECT_EQ(data.train.source, (Lines{"a", "b", "c"}));
  EXPECT_EQ(data.valid.source, (Lines{"a", "e"}));
  ASSERT_EQ(data.tests.size(), 3u);
  EXPECT_EQ(data.tests[0].name, "test");
  EXPECT_EQ(data.tests[0].source, Lines{"d"});
  EXPECT_EQ(data.tests[1].name, "test-2");
  EXPECT_EQ(data.tests[2].name, "other");
  ASSERT_EQ(data.notes.size(), 7u);
  EXPECT_EQ(data.notes[5], "valid: 1 of 2 source sentences are training sentences too");
  EXPECT_EQ(data.notes[6], "test-2: 1 of 2 source sentences are training sentences too");
}

TEST(TranslationData, NamesTestsAfterTheirFiles) {
  const TemporaryDirectory folder;
  std::filesystem::create_directory(folder.file("b"));
  FileDataConfig config;
  config.train_source = folder.write("pairs.tsv", "a\tA\nb\tB\n");
  config.valid_source = config.train_source;
  for (const char* name : {"test_2016_flickr.en", "test.2017.en.gz", "plain", "train.en", "b/plain",
                           "b/valid.en", "b/train", "\xff.en"})
    config.test_source.push_back(folder.write(name, "c\tC\n"));
  const TranslationData data = file_translation_data(config);
  Lines names;
  for (const TranslationSplit& test : data.tests) names.push_back(test.name);
  EXPECT_THAT(names, ElementsAre("test_2016_flickr", "test.2017", "plain", "train-2", "plain-2",
                                 "valid-2", "train-3", "\uFFFD"));
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
  config.test_target = {config.train_target};
  EXPECT_EQ(error_of([&] { file_translation_data(config); }),
            "data: the test target " + config.train_target + " has no source; name both");
  config.test_source = {config.train_source, config.train_source};
  EXPECT_EQ(error_of([&] { file_translation_data(config); }),
            "data: numbers of test files differ, got 2 sources and 1 targets; name one target for "
            "each source, or none where the sources are TSV files");
  config.test_source.clear();
  config.test_target.clear();
  EXPECT_EQ(file_translation_data(config).train.source.size(), 1u);
}

}  // namespace
}  // namespace gs
