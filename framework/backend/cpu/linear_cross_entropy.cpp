#include "framework/backend/linear_cross_entropy.h"

#include <algorithm>

#include "framework/backend/copy.h"
#include "framework/backend/cpu/cross_entropy_rows.h"
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
void write_logits(Array& logits, Chunk chunk, const Array& x, const Array& weight,
                  const Array& bias) {
  const auto [first, count, width, classes] = chunk;
  // The product adds to the bias, which stands in every row.
  if (bias.defined()) copy_blocks(Cpu{}, logits, bias, {count, classes, 0, classes, 0, 0});
  gemm(Cpu{},
       {.m = count,
        .n = classes,
        .k = width,
        .transpose_b = true,
        .a_stride = std::max<int64_t>(1, width),
        .b_stride = std::max<int64_t>(1, width),
        .c_stride = std::max<int64_t>(1, classes),
        .beta = bias.defined() ? 1.0 : 0.0},
       x.data<T>() + first * width, weight.data<T>(), logits.data<T>());
}

// dx = dlogits weight, dweight += dlogits^T x, dbias += sum of the rows of dlogits
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
  if (gradients.dbias.defined()) {
    Array part = Array::like(gradients.dbias);
    sum(Cpu{}, part, dlogits, {1, count, classes});
    accumulate(Cpu{}, gradients.dbias, part);
  }
}

template <typename T>
CrossEntropySums take_chunks(LinearCrossEntropyGradients& gradients, const Array& x,
                             const Array& weight, const Array& bias, const Array& targets,
                             const CrossEntropyOptions& options) {
  const int64_t rows = targets.elements(), classes = weight.shape()[0], width = weight.shape()[1];
  const int64_t most = rows_per_chunk(rows, classes);
  Array logits = Array::empty({most, classes}, x.dtype());
  const bool has_gradient =
      gradients.dx.defined() || gradients.dweight.defined() || gradients.dbias.defined();
  CrossEntropySums sums;
  for (int64_t first = 0; first < rows; first += most) {
    const Chunk chunk{first, std::min(most, rows - first), width, classes};
    write_logits<T>(logits, chunk, x, weight, bias);
    sums += cross_entropy_rows(has_gradient ? logits.data<T>() : nullptr, logits.data<T>(),
                               targets.data<int32_t>() + first, chunk.count, classes, options);
    if (has_gradient) use_gradient<T>(gradients, chunk, logits, x, weight);
  }
  return sums;
}

}  // namespace

CrossEntropySums linear_cross_entropy(Cpu, LinearCrossEntropyGradients& gradients, const Array& x,
                                      const Array& weight, const Array& bias, const Array& targets,
                                      const CrossEntropyOptions& options) {
  // The first chunk assigns dweight, where there is one.
  if (gradients.dweight.defined() && targets.elements() == 0) fill(Cpu{}, gradients.dweight, 0);
  if (gradients.dbias.defined()) fill(Cpu{}, gradients.dbias, 0);
  return dispatch_floating("linear_cross_entropy", x.dtype(), [&](auto zero) {
    return take_chunks<decltype(zero)>(gradients, x, weight, bias, targets, options);
  });
}

}  // namespace gs::backend
