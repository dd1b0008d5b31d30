#include "framework/backend/linear_cross_entropy.h"

#include <algorithm>

#include "framework/backend/copy.h"
#include "framework/backend/cpu/cross_entropy_rows.h"
#include "framework/backend/cpu/data_or_null.h"
#include "framework/backend/gemm.h"
#include "framework/backend/reduce.h"

// Bound by arithmetic, three products of N x C x V. Rows are taken in chunks whose logits stay in
// the last cache: there they are computed, turned into their gradient and used up.
namespace gs::backend {
namespace {

// So many rows that the products run at full speed and that reading and writing dweight, once a
// chunk, is little beside them.
int64_t rows_per_chunk(int64_t rows, int64_t classes) {
  constexpr int64_t kElements = 3 << 20, kFewest = 128, kMost = 1024;
  return std::min(rows, std::clamp(kElements / std::max<int64_t>(1, classes), kFewest, kMost));
}

// The rows first, ..., first + count - 1 of x, with their logits in the first rows of `logits`.
struct Chunk {
  int64_t first, count, width, classes;
};

template <typename T>
void write_products(Array& logits, Chunk chunk, const Array& x, const Array& weight) {
  const auto [first, count, width, classes] = chunk;
  gemm(Cpu{},
       {.m = count,
        .n = classes,
        .k = width,
        .transpose_b = true,
        .a_stride = std::max<int64_t>(1, width),
        .b_stride = std::max<int64_t>(1, width),
        .c_stride = std::max<int64_t>(1, classes)},
       x.data<T>() + first * width, weight.data<T>(), logits.data<T>());
}

// Turns the products into the gradient of the logits, and adds the sum of its rows to dbias.
template <typename T>
CrossEntropySums write_gradient(Array& logits, Array& dbias, Chunk chunk, const Array& bias,
                                const Array& targets, const CrossEntropyOptions& options) {
  CrossEntropyRows<T> rows{.logits = logits.data<T>(),
                           .targets = targets.data<int32_t>() + chunk.first,
                           .rows = chunk.count,
                           .classes = chunk.classes,
                           .dlogits = logits.data<T>(),
                           .bias = data_or_null<T>(bias)};
  if (!dbias.defined()) return cross_entropy_rows(rows, options);
  Array block_sums = Array::empty({rows.blocks(), chunk.classes}, dbias.dtype());
  rows.block_sums = block_sums.data<T>();
  const CrossEntropySums sums = cross_entropy_rows(rows, options);
  Array sum_of_rows = Array::like(dbias);
  sum(Cpu{}, sum_of_rows, block_sums, {1, rows.blocks(), chunk.classes});
  accumulate(Cpu{}, dbias, sum_of_rows);
  return sums;
}

// dx = dlogits weight, dweight += dlogits^T x
template <typename T>
void use_gradient(LinearCrossEntropyGradients& gradients, Chunk chunk, const Array& dlogits,
                  const Array& x, const Array& weight) {
  const auto [first, count, width, classes] = chunk;
  const int64_t stride = std::max<int64_t>(1, width), class_stride = std::max<int64_t>(1, classes);
  if (gradients.dx.defined()) {
    gemm(Cpu{},
         {.m = count,
          .n = width,
          .k = classes,
          .a_stride = class_stride,
          .b_stride = stride,
          .c_stride = stride},
         dlogits.data<T>(), weight.data<T>(), gradients.dx.data<T>() + first * width);
  }
  if (gradients.dweight.defined()) {
    gemm(Cpu{},
         {.m = classes,
          .n = width,
          .k = count,
          .transpose_a = true,
          .a_stride = class_stride,
          .b_stride = stride,
          .c_stride = stride,
          .beta = first == 0 ? 0.0 : 1.0},
         dlogits.data<T>(), x.data<T>() + first * width, gradients.dweight.data<T>());
  }
}

template <typename T>
CrossEntropySums take_chunks(LinearCrossEntropyGradients& gradients, const Array& x,
                             const Array& weight, const Array& bias, const Array& targets,
                             const CrossEntropyOptions& options) {
  const int64_t rows = targets.elements(), classes = weight.shape()[0], width = weight.shape()[1];
  const int64_t most = rows_per_chunk(rows, classes);
  Array logits = Array::empty({most, classes}, x.dtype());
  CrossEntropySums sums;
  for (int64_t first = 0; first < rows; first += most) {
    const Chunk chunk{first, std::min(most, rows - first), width, classes};
    write_products<T>(logits, chunk, x, weight);
    sums += write_gradient<T>(logits, gradients.dbias, chunk, bias, targets, options);
    use_gradient<T>(gradients, chunk, logits, x, weight);
  }
  return sums;
}

}  // namespace

Array linear_cross_entropy(Cpu, LinearCrossEntropyGradients& gradients, const Array& x,
                           const Array& weight, const Array& bias, const Array& targets,
                           const CrossEntropyOptions& options) {
  // The first chunk assigns dweight, where there is one.
  if (gradients.dweight.defined() && targets.elements() == 0) fill(Cpu{}, gradients.dweight, 0);
  if (gradients.dbias.defined()) fill(Cpu{}, gradients.dbias, 0);
  return dispatch_floating("linear_cross_entropy", x.dtype(), [&](auto zero) {
    return take_chunks<decltype(zero)>(gradients, x, weight, bias, targets, options).array();
  });
}

}  // namespace gs::backend
