#include "models/evaluation.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "tests/models/small_models.h"
#include "tests/support/support.h"

namespace gs {
namespace {

using test::error_of;
using test::sequences;
using test::small_transformer;
using testing::HasSubstr;

const Sequences kSource = sequences({{5, 6, 7}, {8, 4, 9, 12, 3, 10}, {}, {11, 4}, {7}});
const Sequences kTarget = sequences({{5, 6}, {4, 10, 9, 8, 3}, {7}, {}, {9, 9, 9}});

// Sums over all tokens, whatever the batches: never a mean of means.
// huggingface/transformers#34191
TEST(Evaluation, ScoresTokensAlikeInAnyBatches) {
  const auto model = small_transformer(1);
  double loss = 0;
  int64_t right = 0, tokens = 0;
  for (int64_t i = 0; i < kSource.count(); ++i) {
    const std::vector<int64_t> pair{i};
    const Batch batch = make_batch(kSource, kTarget, pair);
    const std::vector<double> logits = (*model)(batch.source, batch.target_inputs).values<double>();
    for (size_t t = 0; t < batch.target_labels.tokens.size(); ++t) {
      const auto first = logits.begin() + static_cast<int64_t>(t) * 11;
      double sum = 0;
      for (int64_t v = 0; v < 11; ++v) sum += std::exp(first[v]);
      const int32_t label = batch.target_labels.tokens[t];
      loss += std::log(sum) - first[label];
      right += std::max_element(first, first + 11) - first == label;
      ++tokens;
    }
  }
  ASSERT_EQ(tokens, 11 + 5);
  for (const int64_t sentences : {1, 2, 5}) {
    Batches batches(kSource, kTarget, {.maximum_sentences = sentences, .shuffle = false});
    const PredictionScore score = score_predictions(*model, batches);
    EXPECT_EQ(score.tokens, tokens);
    EXPECT_NEAR(score.loss, loss / static_cast<double>(tokens), 1e-5);
    EXPECT_NEAR(score.perplexity, std::exp(loss / static_cast<double>(tokens)), 1e-4);
    EXPECT_NEAR(score.accuracy, static_cast<double>(right) / static_cast<double>(tokens), 1e-12);
  }
}

TEST(Evaluation, RefusesAModelInTraining) {
  const auto model = small_transformer(1);
  model->train();
  Batches batches(kSource, kTarget, {.maximum_sentences = 2, .shuffle = false});
  EXPECT_EQ(error_of([&] { score_predictions(*model, batches); }),
            "score: the model is in training; call evaluate() first");
  {
    const Evaluating evaluating(*model);
    EXPECT_FALSE(model->training());
    const int64_t nodes = live_nodes();
    score_predictions(*model, batches);
    EXPECT_EQ(live_nodes(), nodes);
    const Evaluating nested(*model);
  }
  EXPECT_TRUE(model->training());
  model->evaluate();
  { const Evaluating evaluating(*model); }
  EXPECT_FALSE(model->training());
}

TEST(Evaluation, CountsExactMatches) {
  const std::vector<std::string> references{"a b c d", "e f g h", "", "i j k l"};
  const TranslationScore all = score_translations(references, references);
  EXPECT_EQ(all.exact_match, 1);
  EXPECT_EQ(all.sentences, 4);
  EXPECT_NEAR(all.bleu.score, 100, 1e-9);
  EXPECT_NEAR(all.chrf, 100, 1e-9);
  const TranslationScore half = score_translations({"a b c d", "e f g", "x", ""}, references);
  EXPECT_EQ(half.exact_match, 0.25);
  EXPECT_LT(half.bleu.score, 100);
  EXPECT_LT(half.chrf, 100);
  const TranslationScoring plain{.bleu = {.lowercase = true}, .chrf = {.lowercase = true}};
  const TranslationScore lower = score_translations({"A, b."}, {"a , B ."}, plain);
  EXPECT_NEAR(lower.bleu.score, 100, 1e-9);
  EXPECT_NEAR(lower.chrf, 100, 1e-9);
  EXPECT_EQ(score_translations({"A, b."}, {"a , B ."}).bleu.score, 0);
  EXPECT_EQ(score_translations({"", "", "x", ""}, references).exact_match, 0);
  EXPECT_THAT(error_of([&] { score_translations({"a"}, references); }),
              HasSubstr("score: needs a reference for each translation, got 4 and 1"));
}

TEST(Evaluation, LabelsAreThoseOfTheBatch) {
  const std::vector<int64_t> pairs{1, 0};
  const Tensor labels = labels_of(make_batch(kSource, kTarget, pairs));
  EXPECT_EQ(labels.shape(), Shape({9}));
  EXPECT_EQ(labels.values<int32_t>(), (std::vector<int32_t>{4, 10, 9, 8, 3, 2, 5, 6, 2}));
}

}  // namespace
}  // namespace gs
