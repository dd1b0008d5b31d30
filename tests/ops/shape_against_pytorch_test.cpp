// Operations that move elements, against values and gradients from PyTorch.
#include <gtest/gtest.h>

#include "framework/ops/indexing.h"
#include "framework/ops/join.h"
#include "framework/ops/permute.h"
#include "framework/ops/slice.h"
#include "tests/support/pytorch_operations.h"

namespace gs {
namespace {

using test::Fixture;
using Inputs = test::FixtureInputs;

TEST(ShapeAgainstPyTorch, ValuesAndGradientsAgree) {
  test::expect_pytorch_agrees(
      {{"permute", [](const Inputs& in,
                      const Fixture&) { return permute(in["x"], in.integers("dimensions")); }},
       {"slice",
        [](const Inputs& in, const Fixture&) {
          return slice(in["x"], in.integer("dimension"), in.integer("start"), in.integer("end"));
        }},
       {"concat",
        [](const Inputs& in, const Fixture&) {
          return concat({in["x"], in["y"], in["z"]}, in.integer("dimension"));
        }},
       {"stack",
        [](const Inputs& in, const Fixture&) {
          return stack({in["x"], in["y"]}, in.integer("dimension"));
        }},
       {"gather",
        [](const Inputs& in, const Fixture&) {
          return gather(in["x"], in.integer("dimension"), in["index"]);
        }},
       {"index_select", [](const Inputs& in, const Fixture&) {
          return index_select(in["x"], in.integer("dimension"), in["index"]);
        }}});
}

}  // namespace
}  // namespace gs
