// Tensors and the recorded graph on a CUDA device.
#include <gtest/gtest.h>

#include <cmath>

#include "framework/ops/arithmetic.h"
#include "framework/ops/reduce.h"
#include "framework/ops/unary.h"
#include "framework/tensor/gradcheck.h"
#include "tests/support/devices.h"
#include "tests/support/numbers.h"
#include "tests/support/support.h"

namespace gs {
namespace {

using test::error_of;
using test::random_tensor;

using GraphOnCuda = test::CudaTest;

const Device kCuda = Device::cuda();

Tensor there(const std::vector<float>& values) {
  return Tensor::of<float>({static_cast<int64_t>(values.size())}, values).to(kCuda);
}

TEST_F(GraphOnCuda, ValuesAreReadFromTheDevice) {
  const Tensor x = there({1, -2, 3});
  EXPECT_EQ(x.device(), kCuda);
  EXPECT_EQ(x.text(), "[1, -2, 3] [3] float32");
  EXPECT_EQ(x.values<double>(), (std::vector<double>{1, -2, 3}));
  EXPECT_EQ(x.values<int32_t>(), (std::vector<int32_t>{1, -2, 3}));
  EXPECT_EQ(there({7}).item(), 7);
  EXPECT_EQ(x.to(kCuda).values<float>(), x.values<float>());
  EXPECT_FALSE(x.to(kCuda).shares_storage(x));
  EXPECT_EQ(x.to(Device::cpu()).device(), Device::cpu());
  EXPECT_EQ(there({}).values<float>(), std::vector<float>());
}

TEST_F(GraphOnCuda, GradientsGoHomeThroughTo) {
  Tensor x = Tensor::of<float>({2}, {3, -1}).set_needs_grad();
  const Tensor moved = x.to(kCuda);
  const Tensor back = square(moved).to(Device::cpu());
  back.backward(Tensor::of<float>({2}, {1, 10}));
  EXPECT_EQ(x.gradient().device(), Device::cpu());
  EXPECT_EQ(x.gradient().values<float>(), (std::vector<float>{6, -20}));
}

TEST_F(GraphOnCuda, ABackwardFromAScalarAddsUp) {
  Tensor x = there({1, 2, 3}).set_needs_grad();
  for (int i = 0; i < 2; ++i) sum(x * x).backward();
  EXPECT_EQ(x.gradient().device(), kCuda);
  EXPECT_EQ(x.gradient().values<float>(), (std::vector<float>{4, 8, 12}));
  x.clear_gradient();
  EXPECT_FALSE(x.gradient().defined());
}

TEST_F(GraphOnCuda, HooksStayOnTheDevice) {
  Tensor x = there({1, 2}).set_needs_grad();
  Tensor y = x * 2.0;
  y.on_gradient([](const Tensor& gradient) { return gradient * 3.0; });
  y.keep_gradient();
  y.backward(there({1, 1}));
  EXPECT_EQ(x.gradient().values<float>(), (std::vector<float>{6, 6}));
  EXPECT_EQ(y.gradient().device(), kCuda);
  Tensor z = x * 2.0;
  z.on_gradient([](const Tensor& gradient) { return gradient.to(Device::cpu()); });
  EXPECT_EQ(error_of([&] {
              z.backward(there({1, 1}));
            }),
            "gradient hook of multiply: must return [2] float32 on cuda:0, got [2] float32 on cpu");
}

TEST_F(GraphOnCuda, ChangesInPlaceAreSeen) {
  Tensor x = there({1, 2}).set_needs_grad();
  const Tensor y = x * x;
  x.detach().add_in_place(there({1, 1}));
  EXPECT_EQ(x.values<float>(), (std::vector<float>{2, 3}));
  EXPECT_NE(error_of([&] {
              y.backward(there({1, 1}));
            }).find("was changed in place"),
            std::string::npos);
  Tensor z = there({5, 6});
  z.assign(there({7, 8}));
  EXPECT_EQ(z.values<float>(), (std::vector<float>{7, 8}));
}

TEST_F(GraphOnCuda, OtherDevicesAreRefused) {
  Tensor x = there({1, 2}).set_needs_grad();
  const Tensor here = Tensor::of<float>({2}, {1, 1});
  const std::string both = "needs [2] float32 on cuda:0, got [2] float32 on cpu";
  EXPECT_EQ(error_of([&] { (x * 2.0).backward(here); }), "backward: " + both);
  EXPECT_EQ(error_of([&] { x.assign(here); }), "assign: " + both);
  EXPECT_EQ(error_of([&] { x.detach().add_in_place(here); }), "add_in_place: " + both);
  EXPECT_EQ(error_of([&] { x.set_gradient(here); }), "set_gradient: " + both);
}

TEST_F(GraphOnCuda, AnomaliesAreFound) {
  const AnomalyMode anomaly;
  const Tensor x = there({1, 0, 4});
  EXPECT_EQ(error_of([&] { log(x); }), "anomaly: log is -inf at element [1] of [3]");
  Tensor y = there({4, 0}).set_needs_grad();
  EXPECT_EQ(error_of([&] {
              sqrt(y).backward(there({1, 1}));
            }),
            "anomaly: the gradient of sqrt for its input 0 is inf at element [1] of [2]");
}

TEST_F(GraphOnCuda, NoMemoryAndNoNodeIsLeft) {
  const int64_t bytes = memory_figures(kCuda).live, nodes = live_nodes();
  {
    Tensor x = there({1, 2, 3}).set_needs_grad();
    Tensor loss = sum(exp(x) * x);
    loss.backward();
    EXPECT_GT(memory_figures(kCuda).live, bytes);
  }
  EXPECT_EQ(memory_figures(kCuda).live, bytes);
  EXPECT_EQ(live_nodes(), nodes);
}

TEST_F(GraphOnCuda, GradcheckRunsThere) {
  const Tensor x = random_tensor<double>({5}, 1).to(kCuda);
  const GradcheckResult right =
      gradcheck([](const std::vector<Tensor>& in) { return tanh(in[0]) * in[0]; }, {x});
  EXPECT_TRUE(right.passed) << right.message;
  EXPECT_EQ(right.checked, 5);
  const GradcheckResult wrong =
      gradcheck([](const std::vector<Tensor>& in) { return square(in[0]) + in[0].detach(); }, {x});
  EXPECT_FALSE(wrong.passed);
}

}  // namespace
}  // namespace gs
