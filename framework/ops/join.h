#pragma once

#include <initializer_list>
#include <span>
#include <vector>

#include "framework/tensor/tensor.h"

namespace gs {

// The tensors one after another in an existing dimension. All have one type, device and rank, and
// equal sizes in the other dimensions; at least one tensor is needed.
Tensor concat(std::span<const Tensor> tensors, int64_t dimension = 0);
Tensor concat(std::initializer_list<Tensor> tensors, int64_t dimension = 0);

// The tensors, all of one shape, side by side in a new dimension: n of (...) -> (..., n, ...).
Tensor stack(std::span<const Tensor> tensors, int64_t dimension = 0);
Tensor stack(std::initializer_list<Tensor> tensors, int64_t dimension = 0);

// Consecutive slices of the sizes given, which add up to the dimension's, or `parts` slices of
// equal size. Copies.
std::vector<Tensor> split(const Tensor& x, std::span<const int64_t> sizes, int64_t dimension = 0);
std::vector<Tensor> split(const Tensor& x, std::initializer_list<int64_t> sizes,
                          int64_t dimension = 0);
std::vector<Tensor> split(const Tensor& x, int64_t parts, int64_t dimension = 0);

}  // namespace gs
