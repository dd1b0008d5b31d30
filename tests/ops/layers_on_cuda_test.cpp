// The operations of layers on a CUDA device against the CPU: rows around the sizes of warps and
// blocks, products, attention, losses; the same dropout masks. What they compute at all is tested
// where they are tested.
#include <gtest/gtest.h>

#include "framework/ops/attention.h"
#include "framework/ops/cross_entropy.h"
#include "framework/ops/dropout.h"
#include "framework/ops/embedding.h"
#include "framework/ops/history_attention.h"
#include "framework/ops/layer_norm.h"
#include "framework/ops/linear.h"
#include "framework/ops/linear_cross_entropy.h"
#include "framework/ops/matmul.h"
#include "framework/ops/residual.h"
#include "framework/ops/rms_norm.h"
#include "framework/ops/softmax.h"
#include "framework/ops/top_log_softmax.h"
#include "tests/support/devices.h"
#include "tests/support/numbers.h"
#include "tests/support/operation_case.h"
#include "tests/support/support.h"

namespace gs {
namespace {

using test::check_on_cuda;
using test::OperationOptions;
using test::random_tensor;
using Tensors = std::vector<Tensor>;

using LayersOnCuda = test::CudaTest;

constexpr int64_t kWidths[] = {1, 31, 33, 257, 1025};
constexpr bool kTraining = true;
// Gradients of rows with a small deviation are large.
const OperationOptions kNormOptions{.float_tolerance = 1e-4};

Tensor random(const Shape& shape, uint64_t seed = 1) { return random_tensor<double>(shape, seed); }

Tensor indices_of(const Shape& shape, std::vector<int32_t> values) {
  return Tensor::of<int32_t>(shape, values);
}

TEST_F(LayersOnCuda, Softmax) {
  for (const int64_t width : kWidths) {
    check_on_cuda("softmax", [](const Tensors& in) { return softmax(in[0]); },
                  {random({3, width})});
    check_on_cuda("log_softmax", [](const Tensors& in) { return log_softmax(in[0]); },
                  {random({3, width})});
  }
  check_on_cuda("softmax of columns", [](const Tensors& in) { return softmax(in[0], 1); },
                {random({2, 33, 5})});
  check_on_cuda("softmax of nothing", [](const Tensors& in) { return softmax(in[0]); },
                {random({0, 4})});
}

TEST_F(LayersOnCuda, Norms) {
  for (const int64_t width : {2, 31, 33, 257, 1025}) {
    const Tensors in{random({3, width}, 1), random({width}, 2), random({width}, 3),
                     random({3, width}, 4)};
    check_on_cuda(
        "layer_norm", [](const Tensors& in) { return layer_norm(in[0], in[1], in[2]); },
        {in[0], in[1], in[2]}, kNormOptions);
    check_on_cuda(
        "rms_norm", [](const Tensors& in) { return rms_norm(in[0], in[1]); }, {in[0], in[1]},
        kNormOptions);
    check_on_cuda(
        "residual_layer_norm",
        [](const Tensors& in) {
          Generator generator(3);
          return residual_layer_norm(in[0], in[3], in[1], in[2], 1e-5, 0.3, kTraining, generator);
        },
        in, kNormOptions);
  }
  check_on_cuda(
      "layer_norm of many rows", [](const Tensors& in) { return layer_norm(in[0], in[1], in[2]); },
      {random({300, 9}, 1), random({9}, 2), random({9}, 3)}, kNormOptions);
  check_on_cuda(
      "layer_norm without weights", [](const Tensors& in) { return layer_norm(in[0]); },
      {random({5, 40})}, kNormOptions);
}

// Bit by bit: zeros stand at the same places.
TEST_F(LayersOnCuda, DropoutMasksAreThoseOfTheCpu) {
  for (const int64_t size : {0, 1, 3, 257, 1025, 5003}) {
    for (const DType dtype : {kFloat32, kFloat64}) {
      const auto drawn = [&](Device device) {
        Generator generator(9);
        generator.restore({0xFEDCBA9876543210, 0x0123456789ABCDEF});
        const Tensor x = Tensor(random({size}).value().to(dtype)).to(device);
        return dropout(x, 0.4, kTraining, generator).values<double>();
      };
      EXPECT_EQ(drawn(Device::cuda()), drawn(Device::cpu())) << size;
    }
  }
  check_on_cuda("dropout",
                [](const Tensors& in) {
                  Generator generator(2);
                  return residual(in[0], dropout(in[1], 0.5, kTraining, generator), 0.3, kTraining,
                                  generator);
                },
                {random({7, 41}, 1), random({7, 41}, 2)});
}

TEST_F(LayersOnCuda, Products) {
  const Shape sizes[] = {{1, 1, 1}, {3, 5, 2}, {33, 17, 65}, {5, 0, 3}, {0, 4, 2}, {2, 3, 0}};
  for (const Shape& size : sizes) {
    const int64_t m = size[0], k = size[1], n = size[2];
    check_on_cuda("matmul", [](const Tensors& in) { return matmul(in[0], in[1]); },
                  {random({m, k}, 1), random({k, n}, 2)});
    check_on_cuda("matmul transposed",
                  [](const Tensors& in) {
                    return matmul(in[0], in[1], {.transpose_a = true, .transpose_b = true});
                  },
                  {random({k, m}, 1), random({n, k}, 2)});
    check_on_cuda("linear", [](const Tensors& in) { return linear(in[0], in[1], in[2]); },
                  {random({m, k}, 1), random({n, k}, 2), random({n}, 3)});
    check_on_cuda("linear_relu",
                  [](const Tensors& in) {
                    Generator generator(4);
                    return linear_relu(in[0], in[1], in[2], 0.25, kTraining, generator);
                  },
                  {random({m, k}, 1), random({n, k}, 2), random({n}, 3)});
  }
  check_on_cuda("matmul of batches", [](const Tensors& in) { return matmul(in[0], in[1]); },
                {random({2, 3, 4, 5}, 1), random({3, 5, 2}, 2)});
  check_on_cuda("linear without bias", [](const Tensors& in) { return linear(in[0], in[1]); },
                {random({2, 3, 4}, 1), random({5, 4}, 2)});
}

TEST_F(LayersOnCuda, Embedding) {
  for (const int64_t width : {1, 33, 257}) {
    for (const auto padding : {std::optional<int64_t>(), std::optional<int64_t>(2)}) {
      const auto look_up = [padding](const Tensors& in) {
        return embedding(in[0], in[1], {.padding_index = padding});
      };
      check_on_cuda("embedding", look_up,
                    {random({4, width}), indices_of({3, 2}, {2, 0, 2, 2, 3, 0})});
      check_on_cuda("embedding of nothing", look_up, {random({4, width}), indices_of({0}, {})});
    }
  }
  const Tensor table = random({3, 2}).to(Device::cuda());
  EXPECT_EQ(test::error_of([&] {
              embedding(table, indices_of({2}, {0, 3}).to(Device::cuda()));
            }),
            "embedding: index 3 at position 1 is outside 0..2");
  EXPECT_EQ(test::error_of([&] {
              embedding(table, indices_of({2}, {0, 1}));
            }),
            "embedding: weight and indices are on two devices, got cuda:0 and cpu; move one");
}

TEST_F(LayersOnCuda, CrossEntropies) {
  for (const int64_t classes : {2, 31, 33, 1025}) {
    for (const double smoothing : {0.0, 0.1}) {
      std::vector<int32_t> targets;
      for (int64_t i = 0; i < 7; ++i)
        targets.push_back(i == 3 ? -7 : static_cast<int32_t>(i * 13 % classes));
      const CrossEntropyOptions options{.ignore_index = -7, .label_smoothing = smoothing};
      check_on_cuda(
          "cross_entropy",
          [options](const Tensors& in) { return cross_entropy(in[0], in[1], options).mean(); },
          {random({7, classes}), indices_of({7}, targets)});
      check_on_cuda("linear_cross_entropy",
                    [options](const Tensors& in) {
                      return linear_cross_entropy(in[0], in[1], in[2], in[3], options).mean();
                    },
                    {random({7, 5}, 1), random({classes, 5}, 2), random({classes}, 3),
                     indices_of({7}, targets)});
    }
  }
  const auto counted = [](Device device) {
    const Tensor targets = indices_of({6}, {0, 1, 2, 0, 1, 2});
    const Loss loss = cross_entropy(random({6, 3}).to(device), targets.to(device));
    return std::tuple<int64_t, int64_t>(loss.count, loss.correct);
  };
  EXPECT_EQ(counted(Device::cuda()), counted(Device::cpu()));
}

TEST_F(LayersOnCuda, TopLogSoftmax) {
  const auto expect_same = [](const auto& function) {
    const TopLogSoftmax actual = function(Device::cuda()), expected = function(Device::cpu());
    EXPECT_EQ(actual.classes.device(), Device::cuda());
    EXPECT_EQ(actual.classes.shape(), expected.classes.shape());
    EXPECT_EQ(actual.classes.values<int32_t>(), expected.classes.values<int32_t>());
    test::expect_near(actual.log_probabilities, expected.log_probabilities.values<double>(), 1e-6);
  };
  for (const int64_t width : {1, 33, 257, 1031}) {
    for (const int64_t count : {1, 7, 40}) {
      SCOPED_TRACE(std::to_string(width) + " classes, " + std::to_string(count) + " wanted");
      expect_same([&](Device device) {
        return top_log_softmax(random_tensor<float>({5, width}, 1).to(device), count);
      });
      expect_same([&](Device device) {
        return linear_top_log_softmax(random_tensor<double>({5, 6}, 1).to(device),
                                      random_tensor<double>({6, width}, 2).to(device),
                                      random_tensor<double>({width}, 3).to(device), count);
      });
    }
  }
  // Equal ones come by their place; NaN makes the row NaN.
  std::vector<float> values(3 * 300, 1);
  values[300 + 17] = NAN;
  values[600 + 255] = 2;
  expect_same([&](Device device) {
    return top_log_softmax(Tensor::of<float>({3, 300}, values).to(device), 4);
  });
}

Tensor dense(const Tensors& in, AttentionOptions options) {
  return scaled_dot_product_attention(in[0], in[1], in[2], options).output;
}

TEST_F(LayersOnCuda, DenseAttention) {
  for (const int64_t width : {1, 5, 16, 33, 64}) {
    const auto shapes = [&](int64_t queries, int64_t keys) {
      return Tensors{random({2, queries, 2 * width}, 1), random({2, keys, 2 * width}, 2),
                     random({2, keys, 2 * (width + 1)}, 3)};
    };
    for (const bool causal : {false, true}) {
      for (const auto& [queries, keys] : {std::pair<int64_t, int64_t>{1, 1}, {5, 9}, {17, 33}}) {
        check_on_cuda(
            "attention",
            [causal](const Tensors& in) {
              Generator generator(6);
              return dense(in, {.heads = 2,
                                .causal = causal,
                                .key_lengths = {0, in[1].size(1)},
                                .dropout = 0.3,
                                .training = true,
                                .generator = &generator});
            },
            shapes(queries, keys));
      }
    }
  }
}

TEST_F(LayersOnCuda, AttentionWithMasksAndScores) {
  std::vector<bool> allowed;
  for (int i = 0; i < 2 * 5 * 7; ++i) allowed.push_back(i % 3 != 0 && i / 7 % 5 != 2);
  const Tensors in{random({2, 5, 6}, 1), random({2, 7, 6}, 2), random({2, 7, 4}, 3),
                   random({2, 1, 7}, 4), Tensor::of<bool>({2, 1, 5, 7}, allowed)};
  check_on_cuda(
      "attention with a mask and scores",
      [](const Tensors& in) {
        return dense(in, {.heads = 2, .mask = in[4], .scores = in[3], .scale = 0.7});
      },
      in);
  check_on_cuda("weights of attention",
                [](const Tensors& in) {
                  return scaled_dot_product_attention(
                             in[0], in[1], in[2],
                             {.heads = 2, .mask = in[4], .scores = in[3], .return_weights = true})
                      .weights;
                },
                {in[0], in[1], in[2].detach(), in[3], in[4]}, {.has_gradient = false});
}

TEST_F(LayersOnCuda, PackedAttention) {
  const std::vector<int32_t> queries{0, 3, 3, 20, 21}, keys{0, 5, 6, 40, 41};
  for (const bool causal : {false, true}) {
    check_on_cuda("packed_attention",
                  [&](const Tensors& in) {
                    Generator generator(7);
                    return packed_attention(in[0], queries, in[1], in[2], keys,
                                            {.heads = 3,
                                             .causal = causal,
                                             .dropout = 0.2,
                                             .training = true,
                                             .generator = &generator})
                        .output;
                  },
                  {random({21, 24}, 1), random({41, 24}, 2), random({41, 24}, 3)});
  }
}

TEST_F(LayersOnCuda, HistoryAttention) {
  const std::vector<int32_t> rows{0, 0, 1, 0, 0, 1, 0, 0, 1};
  check_on_cuda("history_attention",
                [&](const Tensors& in) {
                  const Tensors keys(in.begin() + 1, in.begin() + 4),
                      values(in.begin() + 4, in.end());
                  return history_attention(in[0], keys, values, rows, 2);
                },
                {random({3, 32}, 1), random({1, 32}, 2), random({1, 32}, 3), random({2, 32}, 4),
                 random({1, 20}, 5), random({1, 20}, 6), random({2, 20}, 7)},
                {.has_gradient = false});
}

}  // namespace
}  // namespace gs
