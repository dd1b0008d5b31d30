#pragma once

#include <algorithm>
#include <numeric>
#include <vector>

#include "framework/ops/top_log_softmax.h"

namespace gs::test {

// The `count` largest of each row of log-probabilities, by sorting.
inline TopLogSoftmax top_of(const std::vector<std::vector<double>>& rows, int64_t count) {
  const size_t kept = rows.empty() ? 0 : std::min(static_cast<size_t>(count), rows[0].size());
  std::vector<double> values;
  std::vector<int32_t> classes;
  for (const std::vector<double>& row : rows) {
    std::vector<int32_t> order(row.size());
    std::iota(order.begin(), order.end(), 0);
    std::stable_sort(order.begin(), order.end(), [&](int32_t a, int32_t b) {
      return row[static_cast<size_t>(a)] > row[static_cast<size_t>(b)];
    });
    for (size_t i = 0; i < kept; ++i) {
      classes.push_back(order[i]);
      values.push_back(row[static_cast<size_t>(order[i])]);
    }
  }
  const Shape shape{static_cast<int64_t>(rows.size()), static_cast<int64_t>(kept)};
  return {Tensor::of<double>(shape, values), Tensor::of<int32_t>(shape, classes)};
}

}  // namespace gs::test
