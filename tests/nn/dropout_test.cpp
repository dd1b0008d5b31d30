#include "framework/nn/dropout.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "framework/core/random.h"
#include "tests/support/numbers.h"
#include "tests/support/support.h"

namespace gs {
namespace {

using test::error_of;
using test::random_tensor;

const std::vector<float> kOnes(10, 1.0f);

// pytorch/pytorch#26338, #11999; NVIDIA/apex#1449; tinygrad/tinygrad#4351
TEST(Dropout, DoesNothingInEvaluationAndAtProbability0) {
  nn::Dropout evaluating(0.5), never(0);
  evaluating.evaluate();
  const Tensor x = random_tensor<float>({10}, 1).set_needs_grad();
  const RandomState before = default_generator().state();
  for (const nn::Dropout* dropout : {&evaluating, &never}) {
    const Tensor y = (*dropout)(x);
    EXPECT_EQ(y.values<float>(), x.values<float>());
    Tensor(x).clear_gradient();
    y.backward(Tensor::of<float>({10}, kOnes));
    EXPECT_EQ(x.gradient().values<float>(), kOnes);
  }
  EXPECT_EQ(default_generator().state(), before);
}

// The same sources: 1 / (1 - p) gave 0 * infinity.
TEST(Dropout, DropsAllAtProbability1) {
  const nn::Dropout dropout(1);
  const Tensor x = random_tensor<float>({10}, 1).set_needs_grad();
  const Tensor y = dropout(x);
  EXPECT_EQ(y.values<float>(), std::vector<float>(10));
  y.backward(Tensor::of<float>({10}, kOnes));
  EXPECT_EQ(x.gradient().values<float>(), std::vector<float>(10));
}

TEST(Dropout, KeepsTheExpectationInTraining) {
  const nn::Dropout dropout(0.25);
  set_seed(1);
  const Tensor x = Tensor::of<float>({40000}, std::vector<float>(40000, 3)).set_needs_grad();
  const Tensor y = dropout(x);
  const std::vector<float> values = y.values<float>();
  const auto kept = std::count(values.begin(), values.end(), 4.0f);
  EXPECT_EQ(kept + std::count(values.begin(), values.end(), 0.0f), 40000);
  EXPECT_NEAR(static_cast<double>(kept), 30000, 400);  // the deviation is 87
  y.backward(Tensor::of<float>({40000}, std::vector<float>(40000, 3)));
  EXPECT_EQ(x.gradient().values<float>(), values);  // the same elements, the same factor
}

TEST(Dropout, DrawsOthersInEachCallAndTheSameFromOneSeed) {
  const nn::Dropout dropout(0.5);
  const Tensor x = random_tensor<float>({100}, 1);
  set_seed(3);
  const std::vector<float> first = dropout(x).values<float>();
  EXPECT_NE(dropout(x).values<float>(), first);
  set_seed(3);
  EXPECT_EQ(dropout(x).values<float>(), first);
}

TEST(Dropout, RefusesWhatIsNoProbability) {
  EXPECT_EQ(error_of([] { nn::Dropout(-0.1); }),
            "dropout: the probability must be 0 to 1, got -0.1");
  EXPECT_EQ(error_of([] { nn::Dropout(1.5); }), "dropout: the probability must be 0 to 1, got 1.5");
  EXPECT_NE(error_of([] { nn::Dropout dropout(NAN); }), "");
  EXPECT_EQ(nn::Dropout(0.5)(Tensor::of<float>({0, 3}, {})).shape(), Shape({0, 3}));
}

}  // namespace
}  // namespace gs
