#include "framework/ops/dropout.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "framework/core/parallel.h"
#include "framework/tensor/gradcheck.h"
#include "tests/support/instruction_sets.h"
#include "tests/support/support.h"

namespace gs {
namespace {

using test::error_of;

constexpr bool kTraining = true;

template <typename T>
Tensor counting(int64_t count) {
  std::vector<T> values;
  for (int64_t i = 0; i < count; ++i) values.push_back(static_cast<T>(i + 1));
  return Tensor::of<T>({count}, values);
}

// The definition, one element at a time.
template <typename T>
std::vector<T> expected_of(const std::vector<T>& x, double probability, RandomStream stream) {
  std::vector<T> y;
  for (size_t i = 0; i < x.size(); ++i) {
    const bool kept = unit_float(stream.words(i / 4)[i % 4]) >= probability;
    y.push_back(kept ? x[i] * static_cast<T>(1 / (1 - probability)) : T{0});
  }
  return y;
}

template <typename T>
void expect_definition(int64_t count, double probability, RandomState state) {
  Generator generator(state.seed);
  generator.restore(state);
  const Tensor x = counting<T>(count);
  const Tensor y = dropout(x, probability, kTraining, generator);
  EXPECT_EQ(generator.state().next_stream, state.next_stream + 1);
  ASSERT_EQ(y.values<T>(), expected_of(x.values<T>(), probability, {state.seed, state.next_stream}))
      << count << " elements, probability " << probability;
}

TEST(Dropout, FollowsItsDefinitionAtEverySize) {
  test::for_each_instruction_set([] {
    for (int64_t count = 0; count < 70; ++count) {
      expect_definition<float>(count, 0.3, {7, 0});
      expect_definition<double>(count, 0.3, {7, 0});
    }
    // One to three times as many words as are computed side by side.
    for (int64_t count = 90; count < 400; count += 7) expect_definition<float>(count, 0.3, {7, 0});
    // All four words of seed and stream number count.
    expect_definition<float>(2000, 0.5, {0xFEDCBA9876543210, 0x0123456789ABCDEF});
    expect_definition<double>(2000, 0.9, {0xFFFFFFFFFFFFFFFF, 0xFFFFFFFFFFFFFFFE});
  });
  for (const double probability : {1e-9, 0x1p-24, 0.1, 1 - 0x1p-24, 1 - 1e-12})
    expect_definition<float>(3000, probability, {3, 5});
}

TEST(Dropout, IsTheSameForAnyNumberOfThreads) {
  const int before = threads();
  for (const int count : {1, 2, 3, 7}) {
    set_threads(count);
    expect_definition<float>(100003, 0.25, {11, 4});
  }
  set_threads(before);
}

TEST(Dropout, DropsTheShareAskedFor) {
  constexpr int64_t kCount = 200000;
  Generator generator(1);
  const Tensor ones(Array::full({kCount}, 1, kFloat32));
  const std::vector<float> y = dropout(ones, 0.1, kTraining, generator).values<float>();
  const auto dropped = std::count(y.begin(), y.end(), 0.0f);
  EXPECT_NEAR(static_cast<double>(dropped) / kCount, 0.1, 5 * std::sqrt(0.1 * 0.9 / kCount));
  EXPECT_NE(dropout(ones, 0.1, kTraining, generator).values<float>(), y);
}

// pytorch/pytorch#26338, #11999, NVIDIA/apex#1449, tinygrad/tinygrad#4351
TEST(Dropout, WithoutTrainingOrProbabilityIsTheIdentity) {
  Generator generator(1);
  const Tensor x = Tensor::of<float>({3}, {1, -0.0f, NAN});
  EXPECT_TRUE(dropout(x, 0.5, !kTraining, generator).shares_storage(x));
  EXPECT_TRUE(dropout(x, 0, kTraining, generator).shares_storage(x));
  EXPECT_TRUE(dropout(x, 1, !kTraining, generator).shares_storage(x));
  EXPECT_EQ(generator.state(), (RandomState{1, 0}));
}

TEST(Dropout, AtProbabilityOneAllIsZero) {
  Tensor x = Tensor::of<float>({5}, {1, 2, INFINITY, NAN, -3});
  x.set_needs_grad();
  const Tensor y = dropout(x, 1, kTraining);
  EXPECT_EQ(y.values<float>(), std::vector<float>(5));
  y.backward(Tensor::of<float>({5}, {1, NAN, 3, 4, INFINITY}));
  EXPECT_EQ(x.gradient().values<float>(), std::vector<float>(5));
}

TEST(Dropout, GradientPassesWhereTheValueDid) {
  Tensor x = counting<float>(5000);
  x.set_needs_grad();
  Generator generator(2);
  const Tensor y = dropout(x, 0.4, kTraining, generator);
  y.backward(x.detach());
  EXPECT_EQ(x.gradient().values<float>(), y.values<float>());
  const auto same_mask = [](const std::vector<Tensor>& inputs) {
    Generator generator(2);
    return dropout(inputs[0], 0.4, kTraining, generator);
  };
  const GradcheckResult result = gradcheck(same_mask, {counting<double>(13)});
  EXPECT_TRUE(result.passed) << result.message;
}

TEST(Dropout, RefusesWhatIsNoProbability) {
  const Tensor x = counting<float>(2);
  EXPECT_EQ(error_of([&] { dropout(x, 1.5, kTraining); }),
            "dropout: probability must be in [0, 1], got 1.5");
  EXPECT_EQ(error_of([&] { dropout(x, -0.1, !kTraining); }),
            "dropout: probability must be in [0, 1], got -0.1");
  EXPECT_EQ(error_of([&] { dropout(x, NAN, kTraining); }),
            "dropout: probability must be in [0, 1], got nan");
  EXPECT_EQ(error_of([&] { dropout(Tensor::of<int32_t>({1}, {1}), 0.5, kTraining); }),
            "dropout: needs float32 or float64, got int32; cast it first");
}

}  // namespace
}  // namespace gs
