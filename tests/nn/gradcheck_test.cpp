#include "framework/nn/gradcheck.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "framework/core/random.h"
#include "framework/nn/dropout.h"
#include "framework/nn/linear.h"
#include "framework/ops/arithmetic.h"
#include "framework/ops/unary.h"
#include "tests/support/numbers.h"
#include "tests/support/support.h"

namespace gs {
namespace {

using test::error_of;
using test::random_tensor;
using testing::StartsWith;

// y = x, with a gradient that is wrong by a factor.
Tensor wrong(const Tensor& x, double factor) {
  return record("wrong", x.value().clone(), {x}, [factor](const Array& dy) {
    Array dx = dy.clone();
    for (int64_t i = 0; i < dx.elements(); ++i) dx.data<double>()[i] *= factor;
    return Gradients{dx};
  });
}

struct Mlp : nn::Module {
  nn::Child<nn::Linear> first{*this, "first", 3, 4}, second{*this, "second", 4, 2};
  double bias_factor = 1, input_factor = 1;

  Tensor operator()(const Tensor& x) const {
    const Tensor y = second(tanh(first(wrong(x, input_factor))));
    return bias_factor == 1 ? y : y + wrong(second->bias, bias_factor) - second->bias;
  }
};

GradcheckResult check_of(Mlp& model, const GradcheckOptions& options = {}) {
  return gradcheck(
      model, [&](const std::vector<Tensor>& x) { return model(x[0]); },
      {random_tensor<float>({5, 3}, 1)}, options);
}

TEST(ModuleGradcheck, PassesWhatIsRight) {
  Mlp model;
  const GradcheckResult result = check_of(model);
  EXPECT_TRUE(result.passed) << result.message;
  EXPECT_EQ(result.checked, 12 + 4 + 8 + 2 + 15);  // every element of every parameter and input
  EXPECT_LT(result.worst, 1e-6);
  EXPECT_GT(result.worst, 0);
}

TEST(ModuleGradcheck, NamesTheWorstOffenderByItsPath) {
  Mlp model;
  model.bias_factor = 1.01;
  GradcheckResult result = check_of(model);
  EXPECT_FALSE(result.passed);
  EXPECT_NEAR(result.worst, 0.01, 0.001);
  EXPECT_THAT(result.message, StartsWith("second/bias element "));
  model.bias_factor = 1;
  model.input_factor = 0.9;
  result = check_of(model);
  EXPECT_FALSE(result.passed);
  EXPECT_THAT(result.message, StartsWith("input 0 element "));
}

TEST(ModuleGradcheck, FindsAGradientThatIsNotANumber) {
  Mlp model;
  model.bias_factor = NAN;
  const GradcheckResult result = check_of(model);
  EXPECT_FALSE(result.passed);
  EXPECT_THAT(result.message, StartsWith("second/bias element 0"));
}

TEST(ModuleGradcheck, LeavesTheModelAsItWas) {
  Mlp model;
  set_seed(5);
  const RandomState random = default_generator().state();
  std::vector<Tensor> tensors;
  std::vector<std::vector<float>> values;
  model(random_tensor<float>({2, 3}, 3));
  for (const nn::NamedParameter& named : model.parameters()) {
    const Tensor& tensor = named.parameter->tensor();
    (*named.parameter)->set_gradient(tensor.detach());
    tensors.push_back(tensor);
    values.push_back(tensor.values<float>());
  }
  const int64_t nodes = live_nodes();
  const auto expect_unchanged = [&] {
    size_t i = 0;
    for (const nn::NamedParameter& named : model.parameters()) {
      SCOPED_TRACE(named.path);
      const Tensor& tensor = named.parameter->tensor();
      EXPECT_TRUE(tensor.shares_storage(tensors[i]));
      EXPECT_EQ(tensor.node(), tensors[i].node());
      EXPECT_EQ(tensor.dtype(), kFloat32);
      EXPECT_EQ(tensor.values<float>(), values[i]);
      EXPECT_EQ(tensor.gradient().values<float>(), values[i]);
      ++i;
    }
    EXPECT_EQ(default_generator().state(), random);
    EXPECT_EQ(live_nodes(), nodes);
  };
  check_of(model);
  expect_unchanged();
  const auto failing = [](const std::vector<Tensor>&) -> Tensor { fail("model: no"); };
  EXPECT_EQ(error_of([&] { gradcheck(model, failing, {}); }), "model: no");
  expect_unchanged();
}

TEST(ModuleGradcheck, PerturbsTiedParametersTogetherAndOnce) {
  struct Tied : nn::Module {
    nn::Child<nn::Linear> first{*this, "first", 3, 3}, second{*this, "second", 3, 3};
  } model;
  model.second->weight.tie(model.first->weight);
  const auto function = [&](const std::vector<Tensor>& x) {
    return model.second(tanh(model.first(x[0])));
  };
  const GradcheckResult result = gradcheck(model, function, {random_tensor<float>({2, 3}, 1)});
  EXPECT_TRUE(result.passed) << result.message;
  EXPECT_EQ(result.checked, 9 + 3 + 3 + 6);
  EXPECT_TRUE(model.second->weight->shares_storage(model.first->weight));
}

TEST(ModuleGradcheck, LeavesFrozenParametersOut) {
  Mlp model;
  model.first->weight->set_needs_grad(false);
  const GradcheckResult result = check_of(model);
  EXPECT_TRUE(result.passed) << result.message;
  EXPECT_EQ(result.checked, 4 + 8 + 2 + 15);
  EXPECT_FALSE(model.first->weight->needs_grad());
}

TEST(ModuleGradcheck, SamplesLargeParameters) {
  Mlp model;
  EXPECT_EQ(check_of(model, {.samples_per_input = 3}).checked, 3 + 3 + 3 + 2 + 3);
}

TEST(ModuleGradcheck, DrawsTheSameRandomNumbersInEachCall) {
  struct Model : nn::Module {
    nn::Child<nn::Linear> linear{*this, "linear", 3, 40};
    nn::Child<nn::Dropout> dropout{*this, "dropout", 0.5};
  } model;
  const auto function = [&](const std::vector<Tensor>& x) {
    return model.dropout(model.linear(x[0]));
  };
  const GradcheckResult result = gradcheck(model, function, {random_tensor<float>({2, 3}, 1)});
  EXPECT_TRUE(result.passed) << result.message;
  EXPECT_TRUE(result.kinks.empty());
}

TEST(ModuleGradcheck, ReportsKinksAsKinks) {
  nn::Linear linear(1, 1);
  linear.weight->assign(Tensor::of<float>({1, 1}, {0}));
  const auto function = [&](const std::vector<Tensor>&) {
    return relu(linear(Tensor::of<double>({1}, {2})));
  };
  const GradcheckResult result = gradcheck(linear, function, {});
  EXPECT_TRUE(result.passed);
  EXPECT_THAT(result.kinks, testing::ElementsAre("weight element 0: not differentiable here, at 0",
                                                 "bias element 0: not differentiable here, at 0"));
}

// Nothing can be told from values that are not numbers.
TEST(ModuleGradcheck, DoesNotPassAFunctionThatIsNotANumber) {
  nn::Linear linear(1, 1);
  linear.weight->assign(Tensor::of<float>({1, 1}, {NAN}));
  const auto function = [&](const std::vector<Tensor>&) {
    return linear(Tensor::of<double>({1}, {2}));
  };
  EXPECT_FALSE(gradcheck(linear, function, {}).passed);
}

}  // namespace
}  // namespace gs
