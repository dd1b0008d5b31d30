#include "framework/tensor/graph.h"

#include <gtest/gtest.h>

#include <cmath>

#include "framework/backend/copy.h"
#include "framework/tensor/gradcheck.h"
#include "framework/tensor/tensor.h"
#include "tests/support/support.h"

namespace gs {
namespace {

using test::error_of;

// y = a * x + b as an operation defined outside of the framework.
Tensor affine(const Tensor& x, double a, double b) {
  Array y = Array::like(x.value());
  for (int64_t i = 0; i < y.elements(); ++i)
    y.data<double>()[i] = a * x.value().data<double>()[i] + b;
  return record("affine", y, {x}, [a](const Array& dy) {
    Array dx = Array::like(dy);
    for (int64_t i = 0; i < dx.elements(); ++i) dx.data<double>()[i] = a * dy.data<double>()[i];
    return Gradients{dx};
  });
}

// y = x * x elementwise; keeps x. A factor other than 2 plants an error in the gradient.
Tensor square(const Tensor& x, double factor = 2) {
  Array y = Array::like(x.value());
  for (int64_t i = 0; i < y.elements(); ++i)
    y.data<double>()[i] = x.value().data<double>()[i] * x.value().data<double>()[i];
  return record("square", y, {x}, [x = Saved(x.value()), factor](const Array& dy) {
    Array dx = Array::like(dy);
    for (int64_t i = 0; i < dx.elements(); ++i) {
      dx.data<double>()[i] = factor * x.value().data<double>()[i] * dy.data<double>()[i];
    }
    return Gradients{dx};
  });
}

Tensor sum2(const Tensor& a, const Tensor& b) {
  Array y = a.value().clone();
  for (int64_t i = 0; i < y.elements(); ++i) y.data<double>()[i] += b.value().data<double>()[i];
  return record("sum2", y, {a, b}, [](const Array& dy) { return Gradients{dy, dy}; });
}

Tensor leaf(std::vector<double> values) {
  return Tensor::of<double>({static_cast<int64_t>(values.size())}, values).set_needs_grad();
}

TEST(Graph, AddsTheGradientsOfEveryUse) {
  const Tensor x = leaf({3});
  const Tensor y = sum2(square(x), affine(x, 5, 1));  // x^2 + 5x + 1
  y.backward();
  EXPECT_EQ(x.gradient().item(), 11);
  sum2(x, x).backward();  // several backwards add up
  EXPECT_EQ(x.gradient().item(), 13);
}

TEST(Graph, DiamondsRunEachOperationOnce) {
  const Tensor x = leaf({2});
  Tensor y = x;
  for (int i = 0; i < 60; ++i) y = sum2(y, y);  // 2^60 paths
  y.backward();
  EXPECT_EQ(x.gradient().item(), 0x1p60);
}

// pytorch/pytorch#5534, #109948: recursion over deep graphs overflows the stack.
TEST(Graph, DeepChainsRunAndAreDropped) {
  const int64_t before = live_nodes();
  const int64_t bytes = memory_figures().live;
  for (const bool run : {true, false}) {
    const Tensor x = leaf({1});
    Tensor y = x;
    for (int i = 0; i < 1000000; ++i) y = affine(y, 1 + 1e-6, 0);
    EXPECT_NEAR(y.item(), 2.71828046910, 1e-10);
    if (!run) continue;
    y.backward();
    EXPECT_NEAR(x.gradient().item(), 2.71828046910, 1e-10);
  }
  EXPECT_EQ(live_nodes(), before);
  EXPECT_EQ(memory_figures().live, bytes);
}

TEST(Graph, SecondBackwardIsRefusedUnlessRetained) {
  const Tensor x = leaf({3});
  const Tensor y = square(x);
  const Tensor one = leaf({1}).detach();
  y.backward(one, {.retain_graph = true});
  y.backward();
  EXPECT_EQ(x.gradient().item(), 12);
  EXPECT_EQ(error_of([&] { y.backward(); }),
            "backward: the graph of square was freed by an earlier backward; retain the graph "
            "there, or compute the "
            "loss again");
  EXPECT_EQ(x.gradient().item(), 12);
}

// A function that is called for the last time may give away what it keeps.
TEST(Graph, FunctionsLearnWhetherTheyAreCalledAgain) {
  const Tensor x = leaf({3});
  std::vector<bool> last;
  const Tensor y =
      record("first", x.value().clone(), {x}, [&](const Array& dy, const Needs& needs) {
        last.push_back(needs.last());
        check(last.size() < 3, "no more");
        return Gradients{dy};
      });
  const Tensor one = leaf({1}).detach();
  y.backward(one, {.retain_graph = true});
  y.backward(one, {.retain_graph = true});
  EXPECT_EQ(error_of([&] { y.backward(); }), "no more");
  EXPECT_EQ(last, (std::vector<bool>{false, false, true}));
  EXPECT_NE(error_of([&] { y.backward(); }).find("freed by an earlier"), std::string::npos);
  EXPECT_EQ(x.gradient().item(), 2);
}

// pytorch/pytorch#18523: a saved value changed in place gave a wrong gradient in silence.
// y = factor * x, whose gradient is added to the sum of those that came before.
Tensor adding(const Tensor& x, double factor, int* taken) {
  return record("adding", affine(x.detach(), factor, 0).value(), {x},
                [=](const Array& dy, const Needs& needs) {
                  const Array own = affine(Tensor(dy), factor, 0).value();
                  Array sum = needs.take_sum(0);
                  if (!sum.defined()) return Gradients{own};
                  ++*taken;
                  backend::accumulate(Cpu(), sum, own);
                  return Gradients{sum};
                });
}

// The sum of its inputs, which all get dy itself.
Tensor joined(std::initializer_list<Tensor> inputs) {
  return record("joined", inputs.begin()->value().clone(), inputs,
                [count = inputs.size()](const Array& dy) { return Gradients(count, dy); });
}

TEST(Graph, FunctionsMayAddToTheSumOfGradients) {
  Tensor x = Tensor::of<double>({2}, {1, 2});
  x.set_needs_grad();
  int taken = 0;
  const Tensor y = joined({adding(x, 2, &taken), adding(x, 3, &taken), adding(x, 5, &taken)});
  for (int pass = 1; pass <= 2; ++pass) {  // what the first pass has kept is no part of the sum
    y.backward(Tensor::of<double>({2}, {1, 10}), {.retain_graph = pass == 1});
    EXPECT_EQ(x.gradient().values<double>(), (std::vector<double>{10.0 * pass, 100.0 * pass}));
    EXPECT_EQ(taken, 2 * pass);
  }
}

TEST(Graph, SumsThatOthersSeeAreNotGivenAway) {
  Tensor x = Tensor::of<double>({1}, {1});
  x.set_needs_grad();
  Tensor kept = affine(x, 1, 0);
  kept.keep_gradient();
  int taken = 0;
  // x gets the very array that `kept` keeps as its gradient, then that of the operation.
  const Tensor first = adding(x, 3, &taken);
  joined({x, kept, first}).backward(Tensor::of<double>({1}, {1}));
  EXPECT_EQ(taken, 0);
  EXPECT_EQ(kept.gradient().values<double>(), std::vector<double>{1});
  EXPECT_EQ(x.gradient().values<double>(), std::vector<double>{5});
}

TEST(Graph, AnInputGivenTwiceGetsBothGradients) {
  Tensor x = Tensor::of<double>({1}, {1});
  x.set_needs_grad();
  joined({x, x, x}).backward(Tensor::of<double>({1}, {2}));
  EXPECT_EQ(x.gradient().values<double>(), std::vector<double>{6});
}

TEST(Graph, ChangedSavedValuesAreRefused) {
  const Tensor x = leaf({3}), other = leaf({4});
  Tensor y = affine(x, 2, 0);
  const Tensor z = sum2(square(y), affine(other, 1, 0));
  y.add_in_place(Tensor::of<double>({1}, {1}));
  EXPECT_EQ(error_of([&] { z.backward(); }),
            "backward of square: a value [1] float64 that its gradient needs was changed in place, "
            "version 0 then and "
            "1 now; change a copy, or run backward first");
  EXPECT_FALSE(x.gradient().defined());
  EXPECT_FALSE(other.gradient().defined());
}

TEST(Graph, NothingIsRecordedWithoutGrad) {
  const Tensor x = leaf({3});
  const int64_t before = live_nodes();
  {
    const NoGrad no_grad;
    EXPECT_FALSE(square(x).needs_grad());
    EXPECT_EQ(live_nodes(), before);
  }
  EXPECT_TRUE(square(x).needs_grad());
  EXPECT_FALSE(square(x.detach()).needs_grad());
}

TEST(Graph, HooksSeeAndChangeCompleteGradients) {
  const Tensor x = leaf({3});
  Tensor y = affine(x, 2, 0);
  double seen = 0;
  y.on_gradient([&](const Tensor& gradient) {
    seen = gradient.item();
    return Tensor::of<double>({1}, {10});
  });
  y.keep_gradient();
  sum2(y, square(y)).backward();
  EXPECT_EQ(seen, 1 + 2 * 6);
  EXPECT_EQ(y.gradient().item(), 10);
  EXPECT_EQ(x.gradient().item(), 20);
}

TEST(Graph, ChecksWhatAuthorsReturn) {
  const Tensor x = leaf({3});
  const auto bad = [&](Gradients gradients) {
    return record("bad", x.value().clone(), {x}, [gradients](const Array&) { return gradients; });
  };
  EXPECT_EQ(error_of([&] { bad({}).backward(); }),
            "backward of bad: must return 1 gradients, got 0");
  EXPECT_EQ(error_of([&] { bad({Array()}).backward(); }),
            "backward of bad: no gradient for input 0, which needs one");
  EXPECT_EQ(error_of([&] { bad({Array::zeros({2}, kFloat64)}).backward(); }),
            "backward of bad: the gradient of input 0 must be [1] float64 on cpu, got [2] float64 "
            "on cpu");
}

TEST(Graph, AnomalyModeNamesOperationAndElement) {
  const AnomalyMode anomaly;
  const Tensor x = leaf({1, 2e200, 3});
  EXPECT_EQ(error_of([&] { square(x); }), "anomaly: square is inf at element [1] of [3]");
  const Tensor y = record("broken", x.value().clone(), {x}, [](const Array& dy) {
    Array dx = dy.clone();
    dx.data<double>()[2] = std::nan("");
    return Gradients{dx};
  });
  EXPECT_EQ(error_of([&] {
              y.backward(Tensor::of<double>({3}, {1, 1, 1}));
            }),
            "anomaly: the gradient of broken for its input 0 is nan at element [2] of [3]");
}

TEST(Graph, BackwardNeedsAScalarOrAGradient) {
  const Tensor x = leaf({1, 2});
  EXPECT_EQ(error_of([&] { square(x).backward(); }),
            "backward: without an upstream gradient one element is needed, got shape [2]; give a "
            "gradient");
  EXPECT_EQ(
      error_of([&] {
        x.detach().backward(Tensor::of<double>({2}, {1, 1}));
      }),
      "backward: nothing that this tensor was computed from needs a gradient; call set_needs_grad");
}

// pytorch/pytorch#8659, #5351: false alarms in float32 and at kinks; and a real error must be
// found.
TEST(Gradcheck, FindsErrorsAndReportsKinks) {
  const auto right = [](const std::vector<Tensor>& inputs) { return square(inputs[0]); };
  const auto wrong = [](const std::vector<Tensor>& inputs) { return square(inputs[0], 2.02); };
  const Tensor x = Tensor::of<float>({3}, {0.5f, -1.5f, 100.0f});
  EXPECT_TRUE(gradcheck(right, {x}).passed);
  const GradcheckResult result = gradcheck(wrong, {x}, {}, {"x"});
  EXPECT_FALSE(result.passed);
  EXPECT_EQ(result.message.substr(0, 10), "x element ");
  const auto absolute = [](const std::vector<Tensor>& inputs) {
    Array y = inputs[0].value().clone();
    for (int64_t i = 0; i < y.elements(); ++i) y.data<double>()[i] = std::abs(y.data<double>()[i]);
    return record("absolute", y, {inputs[0]}, [x = inputs[0].value()](const Array& dy) {
      Array dx = dy.clone();
      for (int64_t i = 0; i < dx.elements(); ++i)
        dx.data<double>()[i] *= x.data<double>()[i] < 0 ? -1 : 1;
      return Gradients{dx};
    });
  };
  const GradcheckResult kink = gradcheck(absolute, {Tensor::of<double>({2}, {0, 2})});
  EXPECT_TRUE(kink.passed);
  EXPECT_EQ(kink.checked, 1);
  ASSERT_EQ(kink.kinks.size(), 1u);
  EXPECT_EQ(kink.kinks[0], "input 0 element 0: not differentiable here, at 0");
}

TEST(Gradcheck, DoesNotPassWhatIsNotANumber) {
  const auto gradient = [](const std::vector<Tensor>& x) { return sum2(square(x[0], NAN), x[1]); };
  const Tensor x = leaf({1, 2});
  GradcheckResult result = gradcheck(gradient, {x, x});  // later elements are right
  EXPECT_FALSE(result.passed);
  EXPECT_EQ(result.message.substr(0, 19), "input 0 element 0 o");
  const auto value = [](const std::vector<Tensor>& x) { return affine(x[0], NAN, 0); };
  result = gradcheck(value, {x});
  EXPECT_FALSE(result.passed);
  EXPECT_TRUE(result.kinks.empty());
}

// The differences of a large constant are rounding, its gradient is 0 exactly.
TEST(Gradcheck, AllowsForRounding) {
  const auto constant = [](const std::vector<Tensor>& x) {
    return affine(sum2(square(x[0]), affine(square(x[0]), -1, 1000.1)), 1, 0);
  };
  const GradcheckResult result = gradcheck(constant, {leaf({0.3, 1.7, -2.9})});
  EXPECT_TRUE(result.passed) << result.message;
  EXPECT_EQ(result.checked, 3);
  const auto wrong = [](const std::vector<Tensor>& x) { return square(x[0], 2 + 1e-5); };
  EXPECT_FALSE(gradcheck(wrong, {leaf({0.3, 1.7, -2.9})}).passed);
}

}  // namespace
}  // namespace gs
