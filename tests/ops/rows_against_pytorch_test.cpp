// Operations over rows, and losses, against values and gradients from PyTorch.
#include <gtest/gtest.h>

#include <map>

#include "framework/ops/cross_entropy.h"
#include "framework/ops/elementwise_loss.h"
#include "framework/ops/embedding.h"
#include "framework/ops/layer_norm.h"
#include "framework/ops/rms_norm.h"
#include "framework/ops/softmax.h"
#include "tests/support/fixture.h"
#include "tests/support/numbers.h"

namespace gs {
namespace {

using test::Fixture;
using test::FixtureArray;

// The inputs of a case by name; floating ones as leaves of one type.
class Inputs {
 public:
  Inputs(const Fixture& fixture, DType dtype) : fixture_(fixture) {
    for (const std::string& name : fixture.names("inputs")) {
      const FixtureArray& array = fixture.array("inputs/" + name);
      const Array values = Array::of<double>(array.shape, array.values);
      Tensor tensor(values.to(is_floating(array.dtype) ? dtype : array.dtype));
      if (fixture.has("gradients/" + name)) tensor.set_needs_grad();
      tensors_.emplace(name, tensor);
    }
  }

  const Tensor& operator[](const std::string& name) const { return tensors_.at(name); }
  double option(const std::string& name) const { return fixture_.number("options/" + name); }
  int64_t integer(const std::string& name) const { return static_cast<int64_t>(option(name)); }
  bool has_option(const std::string& name) const { return fixture_.has("options/" + name); }
  const std::map<std::string, Tensor>& all() const { return tensors_; }

 private:
  const Fixture& fixture_;
  std::map<std::string, Tensor> tensors_;
};

Tensor sum_of(const Loss& loss, const Fixture& fixture) {
  EXPECT_EQ(static_cast<double>(loss.count), fixture.number("outputs/count"));
  if (fixture.has("outputs/negative_log_likelihood")) {
    test::expect_near(loss.negative_log_likelihood_sum,
                      fixture.array("outputs/negative_log_likelihood").values, 1e-5);
  }
  return loss.sum;
}

using Operation = Tensor (*)(const Inputs&, const Fixture&);
const std::map<std::string, Operation> kOperations{
    {"softmax",
     [](const Inputs& in, const Fixture&) { return softmax(in["x"], in.integer("dimension")); }},
    {"log_softmax", [](const Inputs& in,
                       const Fixture&) { return log_softmax(in["x"], in.integer("dimension")); }},
    {"layer_norm",
     [](const Inputs& in, const Fixture&) {
       return layer_norm(in["x"], in["weight"], in["bias"], in.option("epsilon"));
     }},
    {"rms_norm",
     [](const Inputs& in, const Fixture&) {
       return rms_norm(in["x"], in["weight"], in.option("epsilon"));
     }},
    {"embedding",
     [](const Inputs& in, const Fixture&) {
       EmbeddingOptions options;
       if (in.has_option("padding")) options.padding_index = in.integer("padding");
       return embedding(in["weight"], in["indices"], options);
     }},
    {"cross_entropy",
     [](const Inputs& in, const Fixture& fixture) {
       return sum_of(cross_entropy(in["logits"], in["targets"],
                                   {.ignore_index = in.integer("ignore_index"),
                                    .label_smoothing = in.option("label_smoothing")}),
                     fixture);
     }},
    {"mse",
     [](const Inputs& in, const Fixture& fixture) {
       return sum_of(mse_loss(in["x"], in["targets"]), fixture);
     }},
    {"bce_with_logits", [](const Inputs& in, const Fixture& fixture) {
       return sum_of(binary_cross_entropy_with_logits(in["x"], in["targets"]), fixture);
     }}};

void expect_case(const Fixture& fixture, DType dtype, double tolerance) {
  const Inputs inputs(fixture, dtype);
  const Tensor y = kOperations.at(fixture.operation())(inputs, fixture);
  test::expect_near(y, fixture.array("outputs/output").values, tolerance);
  y.backward(Tensor(Array::of<double>(y.shape(), fixture.array("upstream").values).to(dtype)));
  for (const auto& [name, tensor] : inputs.all()) {
    if (!tensor.needs_grad()) continue;
    SCOPED_TRACE(name);
    EXPECT_EQ(tensor.gradient().shape(), fixture.array("gradients/" + name).shape);
    test::expect_near(tensor.gradient(), fixture.array("gradients/" + name).values, tolerance);
  }
}

TEST(RowsAgainstPyTorch, ValuesAndGradientsAgree) {
  std::map<std::string, int> seen;
  for (const Fixture& fixture : Fixture::load_all("operations")) {
    if (!kOperations.contains(fixture.operation())) continue;
    ++seen[fixture.operation()];
    SCOPED_TRACE(fixture.name());
    expect_case(fixture, kFloat64, 1e-10);  // the file holds 12 digits
    expect_case(fixture, kFloat32, 1e-5);
  }
  EXPECT_EQ(seen.size(), kOperations.size());
}

}  // namespace
}  // namespace gs
