#include <algorithm>
#include <vector>

#include "framework/backend/attention.h"

namespace gs::backend {

void sum_scores(Cpu, Array& y, const Array& x, const AttentionPlan& plan) {
  std::vector<double> sums(static_cast<size_t>(y.elements()));
  dispatch_floating("attention", y.dtype(), [&](auto zero) {
    using T = decltype(zero);
    const auto& [b_stride, h_stride, i_stride, j_stride] = plan.scores_strides;
    for (size_t b = 0; b < plan.sequences.size(); ++b) {
      const AttentionSequence& sequence = plan.sequences[b];
      const T* row = x.data<T>() + sequence.weights_start;
      for (int64_t h = 0; h < plan.heads; ++h) {
        for (int64_t i = 0; i < sequence.queries; ++i, row += sequence.weights_width) {
          double* const out =
              sums.data() + static_cast<int64_t>(b) * b_stride + h * h_stride + i * i_stride;
          for (int64_t j = 0; j < sequence.weights_width; ++j)
            out[j * j_stride] += static_cast<double>(row[j]);
        }
      }
    }
    std::transform(sums.begin(), sums.end(), y.data<T>(),
                   [](double sum) { return static_cast<T>(sum); });
  });
}

bool zeros_and_ones(Cpu, const Array& x) {
  return dispatch_floating("attention", x.dtype(), [&](auto zero) {
    using T = decltype(zero);
    const T* const begin = x.data<T>();
    const T* const end = begin + x.elements();
    return std::all_of(begin, end, [](T value) { return value == 0 || value == 1; }) &&
           std::find(begin, end, T{1}) != end;
  });
}

}  // namespace gs::backend
