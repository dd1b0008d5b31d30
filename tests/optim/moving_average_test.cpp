#include "framework/optim/moving_average.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <memory>

#include "framework/core/parallel.h"
#include "tests/support/instruction_sets.h"
#include "tests/support/numbers.h"
#include "tests/support/support.h"

namespace gs {
namespace {

using test::error_of;
using test::random_tensor;

// Parameters of odd sizes, one without elements, one longer than a block of the kernel.
struct Model : nn::Module {
  explicit Model(DType dtype) {
    for (const int64_t size : {1, 40'001, 0, 33}) {
      const std::string name = std::to_string(all.size());
      const Tensor values = random_tensor<double>({size}, 1 + all.size());
      all.push_back(std::make_unique<nn::Parameter>(*this, name, Tensor(values.value().to(dtype))));
    }
  }
  // As a step of an optimizer would.
  void move(uint64_t seed) {
    for (const auto& parameter : all) {
      const NoGrad no_grad;
      const Tensor values = random_tensor<double>((*parameter)->shape(), seed++);
      (*parameter)->assign(Tensor(values.value().to((*parameter)->dtype())));
    }
  }
  std::vector<double> values() const {
    std::vector<double> values;
    for (const auto& parameter : all) {
      const std::vector<double> own = (*parameter)->values<double>();
      values.insert(values.end(), own.begin(), own.end());
    }
    return values;
  }
  std::vector<std::unique_ptr<nn::Parameter>> all;
};

std::vector<double> averages_of(MovingAverage& average, const Model& model) {
  average.swap();
  std::vector<double> values = model.values();
  average.swap();
  return values;
}

TEST(MovingAverage, FollowsTheFormula) {
  test::for_each_instruction_set([] {
    for (const auto& [dtype, tolerance] : {std::pair{kFloat32, 1e-6}, {kFloat64, 1e-15}}) {
      Model model(dtype);
      MovingAverage average(model, 0.4);
      std::vector<double> expected = model.values();
      EXPECT_EQ(averages_of(average, model), expected);
      // The decay warms up, 2/11, 3/12, 4/13, 5/14, 6/15, and stays at 0.4.
      const double decays[] = {2.0 / 11, 3.0 / 12, 4.0 / 13, 5.0 / 14, 0.4, 0.4, 0.4};
      for (int i = 0; i < 7; ++i) {
        model.move(100 * i);
        average.update();
        const std::vector<double> weights = model.values();
        for (size_t k = 0; k < expected.size(); ++k)
          expected[k] = decays[i] * expected[k] + (1 - decays[i]) * weights[k];
        const std::vector<double> actual = averages_of(average, model);
        for (size_t k = 0; k < expected.size(); ++k)
          ASSERT_NEAR(actual[k], expected[k], tolerance) << "update " << i << ", element " << k;
      }
      EXPECT_EQ(average.updates(), 7);
    }
  });
}

TEST(MovingAverage, OfWeightsThatRestIsThoseWeights) {
  Model model(kFloat32);
  MovingAverage average(model, 0.999);
  for (int i = 0; i < 50; ++i) average.update();
  EXPECT_EQ(averages_of(average, model), model.values());
}

TEST(MovingAverage, SwappingTwiceChangesNoBit) {
  Model model(kFloat32);
  MovingAverage average(model, 0.9);
  model.move(7);
  average.update();
  const std::vector<double> weights = model.values();
  const Tensor held = model.all[1]->tensor();
  average.swap();
  const std::vector<double> averages = model.values();
  EXPECT_NE(averages, weights);
  EXPECT_TRUE(held.shares_storage(model.all[1]->tensor())) << "optimizers hold these tensors";
  average.swap();
  EXPECT_EQ(model.values(), weights);
  average.swap();
  EXPECT_EQ(model.values(), averages);
}

TEST(MovingAverage, IsTheSameForAnyNumberOfThreads) {
  const int before = threads();
  std::vector<double> first;
  for (const int count : {1, 2, 3}) {
    set_threads(count);
    Model model(kFloat32);
    MovingAverage average(model, 0.9);
    model.move(7);
    average.update();
    const std::vector<double> averages = averages_of(average, model);
    if (count == 1) first = averages;
    EXPECT_EQ(averages, first);
  }
  set_threads(before);
}

// Through what a checkpoint holds: the average as the model, the weights beside the optimizer.
TEST(MovingAverage, GoesOnAfterRestoring) {
  Model model(kFloat32);
  MovingAverage average(model, 0.9);
  for (int i = 0; i < 3; ++i) {
    model.move(10 * i);
    average.update();
  }
  std::map<std::string, Array> parameters;
  OptimizerState state;
  average.store(parameters, state);
  ASSERT_EQ(parameters.size(), 4u);
  ASSERT_EQ(state.size(), 4u);
  EXPECT_EQ(state.at("1/trained_weight").values<float>(), model.all[1]->tensor().values<float>());

  Model resumed(kFloat32);
  for (size_t i = 0; i < resumed.all.size(); ++i) {
    const NoGrad no_grad;
    (*resumed.all[i])->assign(Tensor(parameters.at(std::to_string(i))));
  }
  MovingAverage going_on(resumed, 0.9);
  going_on.restore(state, average.updates());
  EXPECT_EQ(resumed.values(), model.values());
  EXPECT_EQ(averages_of(going_on, resumed), averages_of(average, model));
  for (auto* one : {&model, &resumed}) one->move(99);
  average.update();
  going_on.update();
  EXPECT_EQ(averages_of(going_on, resumed), averages_of(average, model));

  state.erase("3/trained_weight");
  const std::vector<double> values = resumed.values();
  EXPECT_EQ(error_of([&] { going_on.restore(state, 3); }),
            "optimizer: 3/trained_weight is missing in the saved state; was it another optimizer?");
  EXPECT_EQ(resumed.values(), values);
}

TEST(MovingAverage, RefusesBadDecays) {
  const Model model(kFloat32);
  for (const double decay : {0.0, 1.0, -0.5, static_cast<double>(NAN)}) {
    EXPECT_THAT(error_of([&] { MovingAverage(model, decay); }),
                testing::HasSubstr("moving average: the decay must be above 0 and below 1, got"));
  }
}

}  // namespace
}  // namespace gs
