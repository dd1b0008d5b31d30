// Operations over rows, and losses, against values and gradients from PyTorch.
#include <gtest/gtest.h>

#include <map>

#include "framework/ops/cross_entropy.h"
#include "framework/ops/elementwise_loss.h"
#include "framework/ops/embedding.h"
#include "framework/ops/layer_norm.h"
#include "framework/ops/rms_norm.h"
#include "framework/ops/softmax.h"
#include "tests/support/numbers.h"
#include "tests/support/pytorch_operations.h"

namespace gs {
namespace {

using test::Fixture;
using Inputs = test::FixtureInputs;

Tensor sum_of(const Loss& loss, const Fixture& fixture) {
  EXPECT_EQ(static_cast<double>(loss.count), fixture.number("outputs/count"));
  if (fixture.has("outputs/negative_log_likelihood")) {
    test::expect_near(loss.negative_log_likelihood_sum,
                      fixture.array("outputs/negative_log_likelihood").values, 1e-5);
  }
  return loss.sum;
}

const std::map<std::string, test::FixtureOperation> kOperations{
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

TEST(RowsAgainstPyTorch, ValuesAndGradientsAgree) { test::expect_pytorch_agrees(kOperations); }

}  // namespace
}  // namespace gs
