#include "framework/nn/module.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <type_traits>

#include "framework/nn/linear.h"
#include "framework/ops/arithmetic.h"
#include "framework/ops/reduce.h"
#include "framework/ops/unary.h"
#include "framework/optim/sgd.h"
#include "tests/support/devices.h"
#include "tests/support/support.h"

namespace gs {
namespace {

using test::error_of;
using testing::ElementsAre;

static_assert(!std::is_copy_constructible_v<nn::Linear> &&
              !std::is_move_constructible_v<nn::Linear> && !std::is_copy_assignable_v<nn::Linear>);

struct Mlp : nn::Module {
  Mlp(int64_t in, int64_t hidden, int64_t out)
      : first(*this, "first", in, hidden), second(*this, "second", hidden, out) {}
  Tensor operator()(const Tensor& x) const { return second(relu(first(x))); }
  nn::Child<nn::Linear> first, second;
};

struct Deep : nn::Module {
  nn::Parameter scale{*this, "scale", Tensor::of<float>({}, {2})};
  nn::Child<nn::ChildList<Mlp>> layers{*this, "layers", 2, 3, 4, 3};
  nn::Child<nn::Linear> output{*this, "output", 3, 5, nn::Linear::Config{.bias = false}};
};

// Two names for one number.
struct Tied : nn::Module {
  explicit Tied(Tensor a = Tensor::of<double>({1}, {1}), Tensor b = Tensor::of<double>({1}, {9}))
      : first(*this, "first", std::move(a)), second(*this, "second", std::move(b)) {}
  nn::Parameter first, second;
};

std::vector<std::string> paths_of(const std::vector<nn::NamedParameter>& parameters) {
  std::vector<std::string> paths;
  for (const nn::NamedParameter& named : parameters) paths.push_back(named.path);
  return paths;
}

TEST(Module, NamesParametersByTheirPathsInOrder) {
  const Deep model;
  EXPECT_THAT(
      paths_of(model.parameters()),
      ElementsAre("scale", "layers/0/first/weight", "layers/0/first/bias", "layers/0/second/weight",
                  "layers/0/second/bias", "layers/1/first/weight", "layers/1/first/bias",
                  "layers/1/second/weight", "layers/1/second/bias", "output/weight"));
  EXPECT_EQ(paths_of(model.named_parameters()), paths_of(model.parameters()));
  EXPECT_EQ(model.parameter_count(), 1 + 2 * (12 + 4 + 12 + 3) + 15);
  for (const nn::NamedParameter& named : model.parameters()) {
    EXPECT_TRUE(named.parameter->tensor().needs_grad()) << named.path;
  }
  EXPECT_EQ(model.layers->size(), 2);
  const Tensor x = Tensor::of<float>({1, 3}, {1, 2, 3});
  EXPECT_EQ((*model.layers)[1](x).shape(), Shape({1, 3}));
}

TEST(Module, OfNothingHasNothing) {
  nn::Module model;
  EXPECT_TRUE(model.parameters().empty());
  EXPECT_EQ(model.parameter_count(), 0);
  model.clear_gradients();
  model.to(kFloat64);
  EXPECT_EQ(nn::ChildList<nn::Linear>(0, 2, 3).size(), 0);
}

TEST(Module, RefusesNamesThatAreTakenOrMakeNoPath) {
  nn::Module model;
  const Tensor x = Tensor::of<float>({1}, {1});
  const nn::Parameter weight(model, "weight", x);
  const nn::Child<nn::Linear> child(model, "child", 2, 2);
  const auto parameter = [&](const char* name) {
    return error_of([&] { nn::Parameter(model, name, x.detach()); });
  };
  const auto module = [&](const char* name) {
    return error_of([&] { nn::Child<nn::Linear>(model, name, 2, 2); });
  };
  EXPECT_EQ(parameter("weight"), "module: two parts are named 'weight'; rename one");
  EXPECT_EQ(parameter("child"), "module: two parts are named 'child'; rename one");
  EXPECT_EQ(module("weight"), "module: two parts are named 'weight'; rename one");
  EXPECT_EQ(module("child"), "module: two parts are named 'child'; rename one");
  EXPECT_EQ(parameter("a/b"), "module: a name must be without '/' and not empty, got 'a/b'");
  EXPECT_EQ(module(""), "module: a name must be without '/' and not empty, got ''");
  EXPECT_THAT(paths_of(model.parameters()), ElementsAre("weight", "child/weight", "child/bias"));
  EXPECT_EQ(error_of([&] { nn::Parameter(model, "indices", Tensor::of<int32_t>({1}, {1})); }),
            "set_needs_grad: needs float32 or float64, got int32");
}

TEST(Module, AnUndefinedTensorMakesNoParameter) {
  nn::Module model;
  const nn::Parameter bias(model, "bias", Tensor());
  EXPECT_FALSE(bias->defined());
  EXPECT_TRUE(model.named_parameters().empty());
}

// torch/nn#613, torch/torch7#716: a weight under two names was stepped twice.
TEST(Module, TiedParametersAreOneUnderTwoNames) {
  Tied model;
  model.second.tie(model.first);
  EXPECT_THAT(paths_of(model.parameters()), ElementsAre("first"));
  EXPECT_THAT(paths_of(model.named_parameters()), ElementsAre("first", "second"));
  EXPECT_EQ(model.parameter_count(), 1);
  Sgd optimizer(model, {.learning_rate = 0.1});
  (model.first * 2.0 + model.second * 3.0).backward();
  EXPECT_EQ(model.first->gradient().item(), 5);
  optimizer.step();
  EXPECT_EQ(model.first->item(), 0.5);
  EXPECT_EQ(model.second->item(), 0.5);
}

TEST(Module, TiesOnlyWhatFits) {
  Tied model(Tensor::of<double>({1}, {1}), Tensor::of<double>({2}, {1, 2}));
  EXPECT_EQ(error_of([&] { model.second.tie(model.first); }),
            "tie: second and first must have one shape, got [2] and [1]");
  nn::Parameter none(model, "none", Tensor());
  EXPECT_EQ(error_of([&] { none.tie(model.first); }),
            "tie: none and first must have one shape, got none and [1]");
  EXPECT_EQ(error_of([&] { model.first.tie(none); }),
            "tie: first and none must have one shape, got [1] and none");
  EXPECT_EQ(model.parameter_count(), 3);
}

TEST(Module, ConversionKeepsValuesAndTies) {
  Deep model;
  nn::Parameter& first = (*model.layers)[0].first->weight;
  nn::Parameter& tied = (*model.layers)[1].first->weight;
  tied.tie(first);
  const std::vector<double> before = first->values<double>();
  for (const DType dtype : {kFloat64, kFloat32}) {
    model.to(dtype);
    for (const nn::NamedParameter& named : model.parameters()) {
      EXPECT_EQ(named.parameter->tensor().dtype(), dtype) << named.path;
      EXPECT_TRUE(named.parameter->tensor().needs_grad()) << named.path;
    }
    EXPECT_EQ(first->values<double>(), before);
    EXPECT_TRUE(first->shares_storage(tied));
    EXPECT_EQ(model.parameters().size(), 9u);
    EXPECT_EQ(model.named_parameters().size(), 10u);
  }
  model.to(Device::cpu());
  EXPECT_TRUE(first->shares_storage(tied));
}

using ModuleOnCuda = test::CudaTest;

TEST_F(ModuleOnCuda, MovingKeepsValuesTypesAndTies) {
  Deep model;
  nn::Parameter& first = (*model.layers)[0].first->weight;
  nn::Parameter& tied = (*model.layers)[1].first->weight;
  tied.tie(first);
  model.scale->set_needs_grad(false);
  const std::vector<double> before = first->values<double>();
  const Tensor x = Tensor::of<float>({1, 3}, {1, 2, 3});
  const std::vector<float> expected = (*model.layers)[1](x).values<float>();
  for (const Device device : {Device::cuda(), Device::cpu(), Device::cuda()}) {
    model.to(device);
    for (const nn::NamedParameter& named : model.parameters()) {
      EXPECT_EQ(named.parameter->tensor().device(), device) << named.path;
      EXPECT_EQ(named.parameter->tensor().needs_grad(), named.path != "scale") << named.path;
    }
    EXPECT_EQ(first->values<double>(), before);
    EXPECT_TRUE(first->shares_storage(tied));
    EXPECT_EQ(model.parameters().size(), 9u);
    const std::vector<float> y = (*model.layers)[1](x.to(device)).values<float>();
    for (size_t i = 0; i < y.size(); ++i) EXPECT_NEAR(y[i], expected[i], 1e-6);
  }
  EXPECT_THAT(error_of([&] { (*model.layers)[1](x); }),
              testing::HasSubstr("input is float32 on cpu, weight float32 on cuda:0"));
}

TEST(Module, FrozenParametersStayApartAndFrozen) {
  Deep model;
  const int64_t count = model.parameter_count();
  for (const nn::NamedParameter& named : model.parameters()) {
    if (named.path != "scale") (*named.parameter)->set_needs_grad(false);
  }
  EXPECT_EQ(model.parameters().size(), 10u);
  EXPECT_EQ(model.parameter_count(), count);
  const std::vector<double> before = (*model.layers)[1].second->weight->values<double>();
  model.to(kFloat64);
  EXPECT_EQ(model.parameters().size(), 10u);
  EXPECT_EQ((*model.layers)[1].second->weight->values<double>(), before);
  for (const nn::NamedParameter& named : model.parameters()) {
    EXPECT_EQ(named.parameter->tensor().needs_grad(), named.path == "scale") << named.path;
  }
}

TEST(Module, EmptyParametersStayApart) {
  Tied model(Tensor::of<float>({0}, {}), Tensor::of<float>({0}, {}));
  EXPECT_EQ(model.parameters().size(), 2u);
  model.to(kFloat64);
  EXPECT_EQ(model.parameters().size(), 2u);
  EXPECT_EQ(model.parameter_count(), 0);
}

TEST(Module, TrainingAndEvaluatingReachAllChildren) {
  Deep model;
  const auto states = [&] {
    const Mlp& layer = (*model.layers)[1];
    return std::vector<bool>{model.training(), model.layers->training(), layer.training(),
                             layer.second->training(), model.output->training()};
  };
  EXPECT_EQ(states(), std::vector<bool>(5, true));
  model.evaluate();
  EXPECT_EQ(states(), std::vector<bool>(5, false));
  (*model.layers)[1].train();
  EXPECT_EQ(states(), (std::vector<bool>{false, false, true, true, false}));
  model.train();
  EXPECT_EQ(states(), std::vector<bool>(5, true));
}

TEST(Module, ClearsAllGradients) {
  Mlp model(2, 3, 1);
  sum(model(Tensor::of<float>({1, 2}, {1, 2}))).backward();
  for (const nn::NamedParameter& named : model.parameters()) {
    EXPECT_TRUE((*named.parameter)->gradient().defined()) << named.path;
  }
  model.clear_gradients();
  for (const nn::NamedParameter& named : model.parameters()) {
    EXPECT_FALSE((*named.parameter)->gradient().defined()) << named.path;
  }
}

TEST(Module, ReplacesOnlyWhatFits) {
  Tied model;
  model.first.replace(Tensor::of<float>({1}, {7}));
  EXPECT_EQ(model.first->item(), 7);
  EXPECT_EQ(error_of([&] {
              model.first.replace(Tensor::of<float>({1, 1}, {7}));
            }),
            "parameter first: must stay [1], got [1, 1]");
  EXPECT_EQ(error_of([&] { model.first.replace(Tensor()); }),
            "parameter first: must stay [1], got none");
  nn::Parameter none(model, "none", Tensor());
  EXPECT_EQ(error_of([&] { none.replace(Tensor::of<float>({}, {7})); }),
            "parameter none: must stay none, got []");
}

TEST(Module, SummaryShowsPathsShapesCountsAndTies) {
  Mlp model(784, 128, 128);
  EXPECT_EQ(model.summary(),
            "parameter               shape         count\n"
            "first/weight       [128, 784]        100352\n"
            "first/bias              [128]           128\n"
            "second/weight      [128, 128]         16384\n"
            "second/bias             [128]           128\n"
            "total                                116992\n");
  Tied tied;
  tied.second.tie(tied.first);
  EXPECT_EQ(tied.summary(),
            "parameter           shape         count\n"
            "first                 [1]             1\n"
            "second                [1]          tied\n"
            "total                                 1\n");
}

TEST(Module, SaysWhatDecays) {
  const nn::Linear linear(2, 3);
  EXPECT_TRUE(linear.weight.decays());
  EXPECT_FALSE(linear.bias.decays());
}

}  // namespace
}  // namespace gs
