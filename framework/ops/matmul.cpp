#include "framework/ops/matmul.h"

#include <vector>

#include "framework/backend/copy.h"
#include "framework/backend/gemm.h"
#include "framework/core/profiler.h"

namespace gs {
namespace {

using backend::GemmBatch;
using backend::GemmSizes;

void check_pair(const char* operation, const Tensor& a, const Tensor& b) {
  check(a.dtype() == b.dtype(), "{}: needs one type, got {} and {}; cast one", operation, a.dtype(),
        b.dtype());
  check(a.device() == b.device(), "{}: needs one device, got {} and {}; move one", operation,
        a.device(), b.device());
}

// Stored rows and columns of the matrices in the last two dimensions.
struct Matrix {
  explicit Matrix(const Shape& shape)
      : rows(shape[shape.rank() - 2]), columns(shape[shape.rank() - 1]) {}
  int64_t rows, columns;
};

Shape batch_shape(const Shape& shape) {
  return Shape(std::span<const int64_t>(shape.begin(), shape.end() - 2));
}

// Where each matrix of the broadcast batch starts in an operand.
std::vector<int64_t> batch_offsets(const Shape& operand, const Shape& batch) {
  const Matrix matrix(operand);
  const Shape own = batch_shape(operand);
  const auto rank = static_cast<size_t>(batch.rank());
  std::vector<int64_t> strides(rank, 0);
  int64_t stride = matrix.rows * matrix.columns;
  for (int d = own.rank() - 1; d >= 0; --d) {
    if (own[d] != 1) strides[rank - static_cast<size_t>(own.rank() - d)] = stride;
    stride *= own[d];
  }
  std::vector<int64_t> offsets(static_cast<size_t>(batch.elements()));
  for (size_t i = 0; i < offsets.size(); ++i) {
    int64_t rest = static_cast<int64_t>(i);
    for (int d = batch.rank() - 1; d >= 0; --d) {
      offsets[i] += rest % batch[d] * strides[static_cast<size_t>(d)];
      rest /= batch[d];
    }
  }
  return offsets;
}

// c = op(a) op(b) over a broadcast batch. Where several products fall onto one matrix of c, as in
// the gradient of a broadcast operand, they are summed one after another.
void multiply(Array& c, const Array& a, bool transpose_a, const Array& b, bool transpose_b,
              const Shape& batch) {
  const Matrix a_matrix(a.shape()), b_matrix(b.shape()), c_matrix(c.shape());
  GemmSizes sizes{.m = c_matrix.rows,
                  .n = c_matrix.columns,
                  .k = transpose_a ? a_matrix.rows : a_matrix.columns,
                  .transpose_a = transpose_a,
                  .transpose_b = transpose_b,
                  .a_stride = std::max<int64_t>(1, a_matrix.columns),
                  .b_stride = std::max<int64_t>(1, b_matrix.columns),
                  .c_stride = std::max<int64_t>(1, c_matrix.columns)};
  const GemmBatch all{batch.elements(), batch_offsets(a.shape(), batch),
                      batch_offsets(b.shape(), batch), batch_offsets(c.shape(), batch)};
  const bool summed = batch_shape(c.shape()).elements() != batch.elements();
  if (summed) sizes.beta = 1;
  on_device(c.device(), [&](auto on) {
    const auto multiply_all = [&](auto zero, Array& y, auto y_zero) {
      const auto *const from = a.data<decltype(zero)>(), *const by = b.data<decltype(zero)>();
      auto* const to = y.data<decltype(y_zero)>();
      if (!summed) return gemm_batch(on, sizes, all, from, by, to);
      backend::fill(on, y, 0);
      for (size_t i = 0; i < all.a.size(); ++i)
        gemm(on, sizes, from + all.a[i], by + all.b[i], to + all.c[i]);
    };
    if constexpr (std::is_same_v<decltype(on), Cuda>) {
      if (c.dtype() == kBFloat16 && !summed) return multiply_all(BFloat16{}, c, BFloat16{});
      if (c.dtype() == kBFloat16) {  // too narrow to add up in
        Array sum = Array::empty(c.shape(), kFloat32, c.device());
        multiply_all(BFloat16{}, sum, float{});
        return backend::cast(on, c, sum);
      }
    }
    dispatch_floating("matmul", c.dtype(), [&](auto zero) { multiply_all(zero, c, zero); });
  });
}

}  // namespace

Tensor matmul(const Tensor& a, const Tensor& b, const MatmulOptions& options) {
  const OperationTimer timer("matmul");
  check(a.rank() >= 2 && b.rank() >= 2,
        "matmul: needs at least two dimensions each, got {} and {}; unsqueeze a vector", a.shape(),
        b.shape());
  check_pair("matmul", a, b);
  const Matrix a_matrix(a.shape()), b_matrix(b.shape());
  const int64_t m = options.transpose_a ? a_matrix.columns : a_matrix.rows;
  const int64_t k = options.transpose_a ? a_matrix.rows : a_matrix.columns;
  const int64_t n = options.transpose_b ? b_matrix.rows : b_matrix.columns;
  check((options.transpose_b ? b_matrix.columns : b_matrix.rows) == k,
        "matmul: inner sizes differ, got {}{} and {}{}; transpose the second?", a.shape(),
        options.transpose_a ? " transposed" : "", b.shape(),
        options.transpose_b ? " transposed" : "");
  const Shape batch = broadcast_shapes("matmul", batch_shape(a.shape()), batch_shape(b.shape()));
  std::vector<int64_t> sizes(batch.begin(), batch.end());
  sizes.insert(sizes.end(), {m, n});

  Array y = Array::empty(Shape(sizes), a.dtype(), a.device());
  multiply(y, a.value(), options.transpose_a, b.value(), options.transpose_b, batch);
  // y = op(a) op(b): d op(a) = dy op(b)^T, d op(b) = op(a)^T dy, each transposed where the operand
  // is.
  return record("matmul", y, {a, b},
                [a = Saved(a.value()), b = Saved(b.value()), options, batch](const Array& dy,
                                                                             const Needs& needs) {
                  Gradients gradients(2);
                  if (needs[0]) {
                    Array& da = gradients[0] = Array::like(a.value());
                    if (options.transpose_a) {
                      multiply(da, b.value(), options.transpose_b, dy, true, batch);
                    } else {
                      multiply(da, dy, false, b.value(), !options.transpose_b, batch);
                    }
                  }
                  if (needs[1]) {
                    Array& db = gradients[1] = Array::like(b.value());
                    if (options.transpose_b) {
                      multiply(db, dy, true, a.value(), options.transpose_a, batch);
                    } else {
                      multiply(db, a.value(), !options.transpose_a, dy, false, batch);
                    }
                  }
                  return gradients;
                });
}

}  // namespace gs
