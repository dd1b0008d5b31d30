#pragma once

#include <vector>

#include "framework/tensor/tensor.h"

namespace gs {

// Reductions: sum(x), sum(x, {.dimensions = {0, -1}, .keep = true}). Of float32 or float64; sums
// are kept in double precision and do not depend on the number of threads.
struct ReduceOptions {
  std::vector<int64_t> dimensions = {};  // may count from the end; none means all
  bool keep = false;                     // leaves the dimensions reduced with size 1
};
struct VarianceOptions {
  std::vector<int64_t> dimensions = {};
  bool keep = false;
  bool unbiased = false;  // divides by n - 1 (a sample's variance), not by n
};

// Of no elements: sum 0, mean and variance NaN, logsumexp -infinity. The unbiased variance of one
// element is NaN.
Tensor sum(const Tensor& x, const ReduceOptions& options = {});
Tensor mean(const Tensor& x, const ReduceOptions& options = {});
Tensor variance(const Tensor& x, const VarianceOptions& options = {});

// log(sum of e^x) without overflow. Where all elements are -infinity so is the result, and the
// gradient is 0.
Tensor logsumexp(const Tensor& x, const ReduceOptions& options = {});

// The largest or smallest element, NaN where there is one; of no elements it is refused. Elements
// that tie share the gradient equally.
Tensor max(const Tensor& x, const ReduceOptions& options = {});
Tensor min(const Tensor& x, const ReduceOptions& options = {});

// The place of the largest element, int32: within one dimension, or among all elements where none
// is given. The first of several; the first NaN where there is one. Also of int32 tensors.
Tensor argmax(const Tensor& x, const ReduceOptions& options = {});

}  // namespace gs
