#include "models/data_check.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/support/support.h"

namespace gs {
namespace {

using test::error_of;
using testing::ElementsAre;
using testing::IsEmpty;

Tokenizer tokenizer(const std::string& line) {
  TokenCounts counts(TokenUnit::kWord);
  counts.add(line);
  return Vocabulary(counts);
}

// A model that takes three words.
Translator short_translator() {
  TransformerConfig config;
  config.width = 4;
  config.heads = 1;
  config.feed_forward_width = 4;
  config.encoder_layers = config.decoder_layers = 1;
  config.maximum_length = 4;
  return {config, tokenizer("a b"), tokenizer("A B")};
}

TEST(DataCheck, LeavesLongValidationPairsAndHeldOutSourcesOut) {
  TranslationData data;
  data.valid = {"valid", {"a", "a b a b", "b"}, {"A", "A", "A B A B"}, {1, 2, 4}};
  data.tests = {{"test", {"a a a a a", "a"}, {"A", "A A A A A"}}};
  fit_to_model(data, short_translator());
  EXPECT_THAT(data.valid.source, ElementsAre("a"));
  EXPECT_THAT(data.valid.target, ElementsAre("A"));
  EXPECT_THAT(data.tests[0].source, ElementsAre("a"));
  EXPECT_THAT(data.tests[0].target, ElementsAre("A A A A A"));  // no model sees a reference
  EXPECT_THAT(data.notes,
              ElementsAre("valid: 2 pairs are left out, longer than 3 tokens (--maximum-length "
                          "counts an end mark more): line 2 (4 and 1), line 4 (1 and 4)",
                          "test: 1 pair is left out, longer than 3 tokens (--maximum-length "
                          "counts an end mark more): pair 1 (5 and 5)"));
  fit_to_model(data, short_translator());
  EXPECT_EQ(data.notes.size(), 2u);
  data.valid = {"valid", {"a b a b"}, {"A"}, {7}};
  EXPECT_EQ(error_of([&] { fit_to_model(data, short_translator()); }),
            "data: no pair fits; valid: 1 pair is left out, longer than 3 tokens "
            "(--maximum-length counts an end mark more): line 7 (4 and 1)");
}

TEST(DataCheck, TestFilesAreScoredWhole) {
  TranslationData data;
  data.valid = {"valid", {"a"}, {"A"}};
  data.tests = {{"flickr", {"a b a", "b"}, {"A A A A A", "B"}, {1, 2}, true}};
  fit_to_model(data, short_translator());
  EXPECT_THAT(data.notes, IsEmpty());
  EXPECT_EQ(data.tests[0].source.size(), 2u);
  data.tests[0].source = {"a", "a b a b", "b", "a a a a a a"};
  data.tests[0].target = {"A", "B", "A", "B"};
  data.tests[0].lines = {1, 3, 4, 5};
  EXPECT_EQ(error_of([&] { fit_to_model(data, short_translator()); }),
            "data: the test flickr has 2 source sentences of more than 3 tokens, got 4 in line 3; "
            "give --maximum-length 7 or more");
}

TEST(DataCheck, CountsTokens) {
  TranslationData data;
  data.train = {"train", {"a b", "a", "b b b b"}, {"A B X", "A", "B"}};
  data.valid = {"valid", {"x"}, {"A"}};
  data.tests = {{"test_2016_flickr", {}, {}}};
  EXPECT_EQ(data_statistics(data, short_translator()),
            "split                    pairs |     source   mean longest   unknown |     target   "
            "mean longest   unknown\n"
            "train                        2 |          3    1.5       2    0.00 % |          4    "
            "2.0       3   25.00 %\n"
            "valid                        1 |          1    1.0       1  100.00 % |          1    "
            "1.0       1    0.00 %\n"
            "test_2016_flickr             0 |          0    0.0       0    0.00 % |          0    "
            "0.0       0    0.00 %\n");
}

}  // namespace
}  // namespace gs
