#include "framework/backend/cross_entropy.h"

#include <gtest/gtest.h>

#include <limits>

#include "tests/backend/cuda/both_devices.h"
#include "tests/support/devices.h"

namespace gs {
namespace {

using backend::CrossEntropyOptions;
using test::Place;

constexpr double kInfinity = std::numeric_limits<double>::infinity();

using CudaCrossEntropy = test::CudaTest;

void expect_same(const Array& logits, const Array& targets, const CrossEntropyOptions& options) {
  test::expect_same_on_both(
      fmt::format("logits {}, smoothing {}", logits.shape(), options.label_smoothing),
      {logits, targets}, [&](auto on, const Place& place, const std::vector<Array>& in) {
        Array dlogits = place.empty(logits.shape()), none, same = in[0].clone();
        std::vector<Array> results;
        results.push_back(backend::cross_entropy(on, dlogits, in[0], in[1], options));
        results.push_back(backend::cross_entropy(on, none, in[0], in[1], options));
        results.push_back(backend::cross_entropy(on, same, same, in[1], options));
        results.push_back(dlogits);
        results.push_back(same);
        return results;
      });
}

TEST_F(CudaCrossEntropy, OddSizes) {
  struct Sizes {
    int64_t rows, classes;
  };
  for (const Sizes sizes : std::vector<Sizes>{{3, 1},
                                              {40, 2},
                                              {5, 31},
                                              {6, 32},
                                              {9, 33},
                                              {3, 255},
                                              {2, 1024},
                                              {2, 1025},
                                              {3, 2056},
                                              {300, 8},
                                              {0, 5}}) {
    const Array logits = test::random_array({sizes.rows, sizes.classes}, 1);
    const Array targets = test::random_indices({sizes.rows}, sizes.classes, 2);
    expect_same(logits, targets, {});
    expect_same(logits, targets, {.ignore_index = 0, .label_smoothing = 0.1});
  }
}

// The first of equal largest logits is what a row predicts.
TEST_F(CudaCrossEntropy, TiesAndRising) {
  for (const int64_t classes : {4, 200, 1500}) {
    std::vector<double> values;
    for (int64_t row = 0; row < 4; ++row) {
      for (int64_t c = 0; c < classes; ++c)
        values.push_back(row == 3 ? static_cast<double>(c % 128) : c == 1 || c == 3 ? 2 : -1);
    }
    expect_same(Array::of({4, classes}, values), Array::of({4}, std::vector<int32_t>{1, 3, 0, 3}),
                {.label_smoothing = 0.2});
  }
}

TEST_F(CudaCrossEntropy, InfinitiesAndNaN) {
  for (const int64_t classes : {5, 1100}) {
    const auto size = static_cast<size_t>(classes);
    std::vector<double> values(7 * size, 0.25);
    std::fill_n(values.begin(), classes, -kInfinity);
    std::fill_n(values.begin() + classes + 1, classes - 1, -kInfinity);  // the target alone
    std::fill_n(values.begin() + 2 * classes, classes - 1, -kInfinity);  // all but the target
    values[3 * size + 2] = kInfinity;
    values[4 * size + 1] = std::numeric_limits<double>::quiet_NaN();
    values[5 * size] = 1e30;
    values[6 * size + 3] = -kInfinity;
    const std::vector<int32_t> targets{0, 0, 0, 2, 0, 0, 0};
    for (int64_t row = 0; row < 7; ++row) {
      const auto from = values.begin() + row * classes;
      const Array one = Array::of({1, classes}, std::vector<double>(from, from + classes));
      const Array target = Array::of({1}, std::vector<int32_t>{targets[static_cast<size_t>(row)]});
      expect_same(one, target, {});
      expect_same(one, target, {.label_smoothing = 0.1});
    }
  }
}

}  // namespace
}  // namespace gs
