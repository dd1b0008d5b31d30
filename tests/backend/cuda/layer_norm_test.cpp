#include "framework/backend/layer_norm.h"

#include <gtest/gtest.h>

#include "tests/backend/cuda/both_devices.h"
#include "tests/support/devices.h"

namespace gs {
namespace {

using test::Place;

using CudaLayerNorm = test::CudaTest;

struct Sizes {
  int64_t rows, width;
};
// Packs and single elements, parts of a warp, whole ones, blocks; more columns than the sums of a
// block of rows have room for; more rows than the blocks take at a time; no rows, no columns.
const std::vector<Sizes> kSizes = {{5, 1},     {37, 3},     {3, 31},   {40, 32},  {9, 33},
                                   {18, 64},   {3, 1023},   {9, 1024}, {2, 1025}, {3, 2048},
                                   {2, 13000}, {110000, 1}, {0, 8},    {3, 0}};

const backend::DropoutMask kDropout = backend::DropoutMask::of(0.3, {7, 5});

DType statistics_type(const Place& place) {
  return place.dtype == kBFloat16 ? kFloat32 : place.dtype;
}

// With a large mean, which must not cost digits.
std::vector<Array> inputs_of(Sizes sizes, double mean) {
  std::vector<double> x = test::random_array({sizes.rows, sizes.width}, 1).values<double>();
  for (double& value : x) value += mean;
  return {Array::of({sizes.rows, sizes.width}, x), test::random_array({sizes.width}, 2),
          test::random_array({sizes.width}, 3), test::random_array({sizes.rows, sizes.width}, 4),
          test::random_array({sizes.rows, sizes.width}, 5)};
}

std::string name_of(Sizes sizes) { return fmt::format("({}, {})", sizes.rows, sizes.width); }

TEST_F(CudaLayerNorm, NormAndGradients) {
  for (const Sizes sizes : kSizes) {
    for (const bool centered : {true, false}) {
      test::expect_same_on_both(
          name_of(sizes), inputs_of(sizes, centered ? 3 : 0),
          [&](auto on, const Place& place, const std::vector<Array>& in) {
            const backend::NormOptions options{.centered = centered, .epsilon = 1e-3};
            Array y = place.empty(in[0].shape());
            Array statistics = place.empty({sizes.rows, 2}, statistics_type(place));
            backend::layer_norm(on, y, statistics, in[0], in[1], in[2], options);
            backend::NormGradients gradients{.dx = place.empty(in[0].shape()),
                                             .dweight = place.empty({sizes.width}),
                                             .dbias = place.empty({sizes.width})};
            backend::layer_norm_backward(on, gradients, in[3], in[0], statistics, in[1], options);
            std::vector<Array> all{y, gradients.dx, gradients.dweight, gradients.dbias};
            if (sizes.width > 0) all.push_back(statistics);
            return all;
          },
          1e-4);
    }
  }
}

TEST_F(CudaLayerNorm, ResidualWithDropout) {
  for (const Sizes sizes : kSizes) {
    test::expect_same_on_both(
        name_of(sizes), inputs_of(sizes, 0),
        [&](auto on, const Place& place, const std::vector<Array>& in) {
          Array y = place.empty(in[0].shape()), sum = place.empty(in[0].shape());
          Array statistics = place.empty({sizes.rows, 2}, statistics_type(place));
          backend::residual_layer_norm(on, y, sum, statistics, in[0], in[4], kDropout, in[1], in[2],
                                       {.epsilon = 1e-2});
          backend::NormGradients gradients{.dx = place.empty(in[0].shape()),
                                           .dbias = place.empty({sizes.width}),
                                           .dbranch = place.empty(in[0].shape())};
          backend::layer_norm_backward(on, gradients, in[3], sum, statistics, in[1],
                                       {.epsilon = 1e-2}, kDropout);
          return std::vector<Array>{y, sum, gradients.dx, gradients.dbias, gradients.dbranch};
        },
        // The gradient of the rounded sum in bfloat16 is that of another sum.
        3e-4);
  }
}

TEST_F(CudaLayerNorm, GradientsThatAreNotWantedAndNoParameters) {
  const Sizes sizes{7, 20};
  test::expect_same_on_both(
      "without parameters", inputs_of(sizes, 0),
      [&](auto on, const Place& place, const std::vector<Array>& in) {
        Array y = place.empty(in[0].shape());
        Array statistics = place.empty({sizes.rows, 2}, statistics_type(place));
        backend::layer_norm(on, y, statistics, in[0], {}, {}, {});
        backend::NormGradients dx{.dx = place.empty(in[0].shape())};
        backend::layer_norm_backward(on, dx, in[3], in[0], statistics, {}, {});
        backend::NormGradients dweight{.dweight = place.empty({sizes.width})};
        backend::layer_norm_backward(on, dweight, in[3], in[0], statistics, {}, {});
        return std::vector<Array>{y, dx.dx, dweight.dweight};
      },
      1e-4);
}

}  // namespace
}  // namespace gs
