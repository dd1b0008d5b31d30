#include <gtest/gtest.h>

#include "framework/ops/cross_entropy.h"
#include "framework/optim/adam.h"
#include "framework/optim/clip.h"
#include "models/transformer.h"
#include "tests/support/devices.h"
#include "tests/support/fixture.h"
#include "tests/support/numbers.h"

namespace gs {
namespace {

using test::expect_near;
using test::Fixture;
using test::FixtureArray;

Sequences packed(const Fixture& fixture, const std::string& part) {
  Sequences result;
  for (int i = 0; fixture.has(part + "/" + std::to_string(i)); ++i) {
    const std::vector<int64_t> tokens = fixture.integers(part + "/" + std::to_string(i));
    result.append(std::vector<int32_t>(tokens.begin(), tokens.end()));
  }
  return result;
}

TransformerConfig config_of(const Fixture& fixture) {
  const auto size = [&](const std::string& name) {
    return static_cast<int64_t>(fixture.number("options/" + name));
  };
  TransformerConfig config;
  config.source_vocabulary = size("source_vocabulary");
  config.target_vocabulary = size("target_vocabulary");
  config.width = size("width");
  config.heads = size("heads");
  config.feed_forward_width = size("inner");
  config.encoder_layers = config.decoder_layers = size("layers");
  config.pre_norm = fixture.flag("options/pre_norm");
  config.activation = nn::parse_activation(fixture.text("options/activation"));
  config.tie_output = fixture.flag("options/tied_output");
  config.output_bias = !config.tie_output;
  return config;
}

void load(const Fixture& fixture, Transformer& model, DType dtype, Device device) {
  ASSERT_EQ(model.parameters().size(), fixture.names("parameters").size());
  for (const auto& named : model.parameters()) {
    const FixtureArray& array = fixture.array("parameters/" + named.path);
    const Array values = Array::of<double>(array.shape, array.values).to(dtype);
    (*named.parameter)->assign(Tensor(values.to(device)));
  }
}

// Every figure of the first pass, then those of ten steps.
void expect_agreement(const Fixture& fixture, DType dtype, Device device, double tolerance) {
  Transformer model(config_of(fixture));
  model.to(dtype);
  model.to(device);
  load(fixture, model, dtype, device);
  const auto option = [&](const std::string& name) { return fixture.number("options/" + name); };
  Adam optimizer(model, {.learning_rate = option("learning_rate"),
                         .beta1 = option("beta1"),
                         .beta2 = option("beta2"),
                         .epsilon = option("epsilon")});
  const Sequences source = packed(fixture, "inputs/source"),
                  target = packed(fixture, "inputs/target"),
                  labels = packed(fixture, "inputs/labels");
  ASSERT_EQ(labels.offsets, target.offsets);
  const Tensor label_tensor =
      Tensor::of<int32_t>({static_cast<int64_t>(labels.tokens.size())}, labels.tokens).to(device);
  std::vector<double> expected_logits;
  for (int64_t i = 0; i < source.count(); ++i) {
    const FixtureArray& own = fixture.array("logits/" + std::to_string(i));
    expected_logits.insert(expected_logits.end(), own.values.begin(), own.values.end());
  }
  for (size_t step = 0; step < 10; ++step) {
    const Tensor logits = model(source, target);
    const Loss loss =
        cross_entropy(logits, label_tensor, {.label_smoothing = option("label_smoothing")});
    const Tensor mean = loss.mean();
    mean.backward();
    if (step == 0) {
      expect_near(logits, expected_logits, tolerance);
      for (const auto& named : model.parameters()) {
        SCOPED_TRACE(named.path);
        expect_near(named.parameter->tensor().gradient(),
                    fixture.array("gradients/" + named.path).values, tolerance);
      }
    }
    const double norm = clip_gradient_norm(model, option("clip_norm"));
    EXPECT_NEAR(mean.item(), fixture.array("training/loss").values[step], tolerance) << step;
    EXPECT_NEAR(loss.negative_log_likelihood_sum.item() / static_cast<double>(loss.count),
                fixture.array("training/negative_log_likelihood").values[step], tolerance)
        << step;
    EXPECT_NEAR(norm, fixture.array("training/gradient_norm").values[step], tolerance) << step;
    optimizer.step();
  }
}

TEST(TransformerAgainstPyTorch, TrainsAlikeInSinglePrecision) {
  for (const char* name : {"pre_norm", "post_norm"}) {
    SCOPED_TRACE(name);
    const Fixture fixture = Fixture::load("transformer", name);
    test::for_each_device([&](Device d) { expect_agreement(fixture, kFloat32, d, 1e-4); });
  }
}

TEST(TransformerAgainstPyTorch, TrainsAlikeInDoublePrecision) {
  for (const char* name : {"pre_norm", "post_norm"}) {
    SCOPED_TRACE(name);
    const Fixture fixture = Fixture::load("transformer", name);
    test::for_each_device([&](Device d) { expect_agreement(fixture, kFloat64, d, 1e-9); });
  }
}

}  // namespace
}  // namespace gs
