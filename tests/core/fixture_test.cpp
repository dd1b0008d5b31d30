#include "tests/support/fixture.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <string>

#include "tests/support/support.h"

namespace gs {
namespace {

using test::Fixture;
using test::FixtureArray;
using testing::ElementsAre;
using testing::HasSubstr;

// y = x W^T + b, computed here in plain loops, gives the stored output and gradients.
TEST(Fixture, HoldsALinearLayerThatIsRight) {
  const Fixture fixture = Fixture::load("operations", "linear");
  const FixtureArray &x = fixture.array("inputs/x"), &weight = fixture.array("inputs/weight"),
                     &bias = fixture.array("inputs/bias"), &y = fixture.array("outputs/output"),
                     &dy = fixture.array("upstream"), &dbias = fixture.array("gradients/bias");
  ASSERT_EQ(x.shape, Shape({2, 3, 5}));
  ASSERT_EQ(weight.shape, Shape({7, 5}));
  ASSERT_EQ(y.shape, Shape({2, 3, 7}));
  ASSERT_EQ(dy.shape, y.shape);
  ASSERT_EQ(y.values.size(), 42u);
  for (size_t j = 0; j < 7; ++j) {
    double gradient = 0;
    for (size_t i = 0; i < 6; ++i) {
      double sum = bias.values[j];
      for (size_t k = 0; k < 5; ++k) sum += x.values[i * 5 + k] * weight.values[j * 5 + k];
      EXPECT_NEAR(y.values[i * 7 + j], sum, 1e-10);
      gradient += dy.values[i * 7 + j];
    }
    EXPECT_NEAR(dbias.values[j], gradient, 1e-10);
  }
}

// Both precisions see the same inputs, and no reference value is NaN.
TEST(Fixture, InputsAreExactInSinglePrecision) {
  int arrays = 0;
  for (const char* group : {"operations", "attention", "modules", "optimizers", "transformer"}) {
    for (const Fixture& fixture : Fixture::load_all(group)) {
      for (const char* part : {"inputs", "parameters", "outputs", "gradients"}) {
        if (!fixture.has(part)) continue;
        const bool given = part == std::string("inputs") || part == std::string("parameters");
        for (const std::string& name : fixture.names(part)) {
          const FixtureArray& array = fixture.array(std::string(part) + "/" + name);
          ASSERT_EQ(array.shape.elements(), static_cast<int64_t>(array.values.size())) << name;
          for (const double value : array.values) {
            ASSERT_FALSE(std::isnan(value)) << group << " " << fixture.name() << " " << name;
            const double single = static_cast<double>(static_cast<float>(value));
            ASSERT_TRUE(!given || value == single) << group << " " << fixture.name() << " " << name;
          }
          ++arrays;
        }
      }
    }
  }
  EXPECT_GT(arrays, 1000);
}

TEST(Fixture, ReadsOptionsOfEveryKind) {
  const Fixture sum = Fixture::load("operations", "sum_dimensions_0_3_keep");
  EXPECT_EQ(sum.name(), "sum_dimensions_0_3_keep");
  EXPECT_EQ(sum.operation(), "sum");
  EXPECT_THAT(sum.integers("options/dimensions"), ElementsAre(0, 3));
  EXPECT_TRUE(sum.flag("options/keep"));
  EXPECT_EQ(sum.array("outputs/output").shape, Shape({1, 5, 1, 1}));

  const Fixture loss = Fixture::load("operations", "cross_entropy_ignore_smoothing");
  EXPECT_EQ(loss.number("options/label_smoothing"), 0.1);
  EXPECT_EQ(loss.number("outputs/count"), 5);
  EXPECT_EQ(loss.array("outputs/output").shape, Shape());
  EXPECT_THAT(loss.integers("inputs/targets"), ElementsAre(3, 0, 4, 0, 1, 2, 3));
  EXPECT_EQ(loss.array("inputs/targets").dtype, kInt32);
  EXPECT_EQ(loss.array("inputs/logits").dtype, kFloat64);

  const Fixture layer = Fixture::load("modules", "encoder_layer_post_norm_gelu");
  EXPECT_EQ(layer.text("options/activation"), "gelu");
  EXPECT_FALSE(layer.flag("options/pre_norm"));
}

TEST(Fixture, ReadsMasksAndInfinities) {
  const Fixture masked = Fixture::load("modules", "decoder_layer_pre_norm_relu");
  EXPECT_EQ(masked.array("inputs/memory_mask").dtype, kBool);
  EXPECT_THAT(masked.array("inputs/memory_mask").values, ElementsAre(1, 1, 0, 0, 0, 1, 1, 1, 1, 1));
  const Fixture blocked =
      Fixture::load("operations", "scaled_dot_product_attention_scores_blocked");
  EXPECT_EQ(blocked.array("inputs/scores").values[0], -std::numeric_limits<double>::infinity());
}

TEST(Fixture, NamesAreTheRestOfThePath) {
  const Fixture fixture = Fixture::load("modules", "feed_forward_relu");
  EXPECT_THAT(fixture.names("parameters"),
              ElementsAre("first/bias", "first/weight", "second/bias", "second/weight"));
  EXPECT_THAT(fixture.names("gradients"),
              ElementsAre("first/bias", "first/weight", "second/bias", "second/weight", "x"));
  EXPECT_THAT(Fixture::load("transformer", "pre_norm").names("gradients"),
              testing::Contains("encoder/layers/0/self_attention/query/weight"));
}

TEST(Fixture, NamesWhatIsMissing) {
  const Fixture fixture = Fixture::load("operations", "tanh");
  EXPECT_EQ(test::error_of([&] { fixture.array("inputs/y"); }),
            "fixture: no array inputs/y in operations/tanh; it has gradients/x, inputs/x, "
            "outputs/output, upstream");
  EXPECT_EQ(test::error_of([&] { fixture.number("inputs/x"); }),
            "fixture: inputs/x in operations/tanh is not a number, got shape [3, 7]");
  EXPECT_THAT(test::error_of([&] { fixture.integers("inputs/x"); }),
              HasSubstr("holds a value that is not an integer"));
  EXPECT_EQ(test::error_of([&] { fixture.text("options/activation"); }),
            "fixture: no text options/activation in operations/tanh; it has operation");
  EXPECT_THAT(test::error_of([&] { fixture.names("parameters"); }),
              HasSubstr("fixture: nothing below parameters in operations/tanh"));
  EXPECT_THAT(test::error_of([] { Fixture::load("operations", "tan"); }),
              HasSubstr("fixture: no case tan in operations; it has abs, add"));
  EXPECT_THAT(test::error_of([] { Fixture::load("operation", "tanh"); }),
              HasSubstr("operation.json; run tools/pytorch_fixtures.py"));
}

}  // namespace
}  // namespace gs
