#include "framework/backend/linear_cross_entropy.h"

#include <algorithm>

#include "framework/backend/copy.h"
#include "framework/backend/cuda/linear_cross_entropy_chunks.h"
#include "framework/backend/cuda/linear_rows.h"
#include "framework/backend/gemm.h"
#include "framework/backend/sum_to.h"

// Bound by arithmetic, three products of N x C x V. Rows are taken in chunks whose logits stay
// within a limit: they are computed, turned into their gradient in place and used up.
namespace gs::backend {
namespace {

// So few rows that their logits stay within the limit, unless the products then became slow.
int64_t rows_per_chunk(int64_t row_bytes) {
  constexpr int64_t kBytes = int64_t{256} << 20, kFewest = 128;
  return std::max(kFewest, kBytes / std::max<int64_t>(1, row_bytes) / kFewest * kFewest);
}

// The rows first, ..., first + count - 1 of x.
struct Chunk {
  int64_t first, count, width, classes;
};

Array targets_of(Cuda device, const Array& targets, Chunk chunk) {
  if (chunk.count == targets.elements()) return targets;
  Array part = Array::empty({chunk.count}, targets.dtype(), targets.device());
  copy_blocks(device, part, targets,
              {.rows = 1,
               .length = chunk.count,
               .y_start = 0,
               .y_stride = chunk.count,
               .x_start = chunk.first,
               .x_stride = chunk.count});
  return part;
}

// The logits of a chunk (count, classes).
Array logits_of(Cuda device, Chunk chunk, const Array& x, const Array& weight, const Array& bias) {
  Array logits = Array::empty({chunk.count, chunk.classes}, x.dtype(), x.device());
  const int64_t start = chunk.first * chunk.width * size_of(x.dtype());
  linear_rows(device,
              {.y = logits.raw(),
               .x = static_cast<const char*>(x.raw()) + start,
               .weight = weight.raw(),
               .bias = bias.defined() ? bias.raw() : nullptr,
               .rows = chunk.count,
               .in = chunk.width,
               .out = chunk.classes,
               .dtype = x.dtype()},
              {});
  return logits;
}

// dx = dlogits weight
template <typename T>
void write_dx(Cuda device, Array& dx, Chunk chunk, const Array& dlogits, const Array& weight) {
  const int64_t stride = std::max<int64_t>(1, chunk.width);
  gemm(device,
       {.m = chunk.count,
        .n = chunk.width,
        .k = chunk.classes,
        .a_stride = std::max<int64_t>(1, chunk.classes),
        .b_stride = stride,
        .c_stride = stride},
       dlogits.data<T>(), weight.data<T>(), dx.data<T>() + chunk.first * chunk.width);
}

// dweight += dlogits^T x; the first chunk assigns.
template <typename T, typename Out>
void add_dweight(Cuda device, Array& dweight, Chunk chunk, const Array& dlogits, const Array& x) {
  const int64_t stride = std::max<int64_t>(1, chunk.width);
  gemm(device,
       {.m = chunk.classes,
        .n = chunk.width,
        .k = chunk.count,
        .transpose_a = true,
        .a_stride = std::max<int64_t>(1, chunk.classes),
        .b_stride = stride,
        .c_stride = stride,
        .beta = chunk.first == 0 ? 0.0 : 1.0},
       dlogits.data<T>(), x.data<T>() + chunk.first * chunk.width, dweight.data<Out>());
}

// dbias += the sum of the rows of dlogits; the first chunk assigns.
void add_dbias(Cuda device, Array& dbias, Chunk chunk, const Array& dlogits) {
  Array sum = Array::like(dbias);
  sum_to(device, sum, dlogits);
  chunk.first == 0 ? copy(device, dbias, sum) : accumulate(device, dbias, sum);
}

// What `wanted` is summed in: bfloat16 is too narrow for more than one addition.
Array total_of(const Array& wanted, bool one_chunk) {
  if (!wanted.defined() || one_chunk || wanted.dtype() != kBFloat16) return wanted;
  return Array::empty(wanted.shape(), kFloat32, wanted.device());
}

template <typename T>
Array take_chunks(Cuda device, LinearCrossEntropyGradients& gradients, const Array& x,
                  const Array& weight, const Array& bias, const Array& targets,
                  const CrossEntropyOptions& options, int64_t most_rows) {
  const int64_t rows = targets.elements(), classes = weight.shape()[0], width = weight.shape()[1];
  const int64_t most = std::min(rows, most_rows);
  const bool needed =
      gradients.dx.defined() || gradients.dweight.defined() || gradients.dbias.defined();
  Array dweight = total_of(gradients.dweight, most == rows);
  Array dbias = total_of(gradients.dbias, most == rows);
  Array sums;
  for (int64_t first = 0; first < rows; first += most) {
    const Chunk chunk{first, std::min(most, rows - first), width, classes};
    const Array logits = logits_of(device, chunk, x, weight, bias);
    Array dlogits = needed ? logits : Array();
    const Array part =
        cross_entropy(device, dlogits, logits, targets_of(device, targets, chunk), options);
    first == 0 ? void(sums = part) : accumulate(device, sums, part);
    if (gradients.dx.defined()) write_dx<T>(device, gradients.dx, chunk, dlogits, weight);
    if (dbias.defined()) add_dbias(device, dbias, chunk, dlogits);
    if (!dweight.defined()) continue;
    if constexpr (std::is_same_v<T, BFloat16>) {
      if (dweight.dtype() == kFloat32) {
        add_dweight<T, float>(device, dweight, chunk, dlogits, x);
        continue;
      }
    }
    add_dweight<T, T>(device, dweight, chunk, dlogits, x);
  }
  for (auto& [total, wanted] :
       {std::pair{&dweight, &gradients.dweight}, {&dbias, &gradients.dbias}}) {
    if (total->defined() && !total->shares_memory(*wanted)) cast(device, *wanted, *total);
  }
  return sums;
}

}  // namespace

Array linear_cross_entropy_in_chunks(Cuda device, LinearCrossEntropyGradients& gradients,
                                     const Array& x, const Array& weight, const Array& bias,
                                     const Array& targets, const CrossEntropyOptions& options,
                                     int64_t most_rows) {
  if (targets.elements() == 0) {
    for (Array* gradient : {&gradients.dweight, &gradients.dbias})
      if (gradient->defined()) fill(device, *gradient, 0);
    return Array::zeros({kCrossEntropySums}, kFloat64, x.device());
  }
  const auto take = [&](auto zero) {
    return take_chunks<decltype(zero)>(device, gradients, x, weight, bias, targets, options,
                                       most_rows);
  };
  if (x.dtype() == kBFloat16) return take(BFloat16{});
  return dispatch_floating("linear_cross_entropy", x.dtype(), take);
}

Array linear_cross_entropy(Cuda device, LinearCrossEntropyGradients& gradients, const Array& x,
                           const Array& weight, const Array& bias, const Array& targets,
                           const CrossEntropyOptions& options) {
  return linear_cross_entropy_in_chunks(device, gradients, x, weight, bias, targets, options,
                                        rows_per_chunk(weight.shape()[0] * size_of(x.dtype())));
}

}  // namespace gs::backend
