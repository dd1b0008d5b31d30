#include "framework/backend/indexing.h"

#include "framework/backend/convert.h"
#include "framework/backend/copy.h"
#include "framework/backend/cuda/block.cuh"
#include "framework/backend/cuda/positions.cuh"

// Bound by memory, and by the latency of scattered reads.
namespace gs::backend {
namespace {

// Calls run(zero) with an unsigned number of so many bytes, up to 16.
template <typename Run>
void dispatch_bytes(int64_t bytes, Run run) {
  switch (bytes) {
    case 1:
      return run(uint8_t{});
    case 2:
      return run(uint16_t{});
    case 4:
      return run(uint32_t{});
    case 8:
      return run(uint64_t{});
    default:
      return run(Pack<uint64_t, 2>{});
  }
}

// Units of any type; `rows` counts them.
template <typename Unit>
__global__ void index_select_kernel(Unit* y, const Unit* x, const int32_t* indices, int64_t count,
                                    Rows rows) {
  const int64_t units = rows.outer * count * rows.inner;
  for (int64_t i = first_element(); i < units; i += element_step()) {
    const int64_t line = i / rows.inner, column = i - line * rows.inner;
    const int64_t outer = line / count, k = line - outer * count;
    y[i] = x[(outer * rows.length + indices[k]) * rows.inner + column];
  }
}

template <typename Unit>
__global__ void gather_kernel(Unit* y, const Unit* x, const int32_t* indices, int64_t elements,
                              int64_t count, Rows rows) {
  for (int64_t i = first_element(); i < elements; i += element_step()) {
    const int64_t line = i / rows.inner, column = i - line * rows.inner;
    y[i] = x[(line / count * rows.length + indices[i]) * rows.inner + column];
  }
}

// A thread has a column (o, i) of dx, which holds zeros.
template <typename Sum, typename T>
__global__ void gather_columns_kernel(Sum* dx, const T* dy, const int32_t* indices, int64_t count,
                                      Rows rows) {
  const int64_t columns = rows.outer * rows.inner;
  for (int64_t c = first_element(); c < columns; c += element_step()) {
    const int64_t outer = c / rows.inner, column = c - outer * rows.inner;
    Sum* const y = dx + outer * rows.length * rows.inner + column;
    for (int64_t k = 0; k < count; ++k) {
      const int64_t i = (outer * count + k) * rows.inner + column;
      y[indices[i] * rows.inner] += load(dy + i);
    }
  }
}

// A warp has a row of dx, which holds zeros, and takes 32 elements at a time; the first of those
// that go to one place adds them all.
template <typename Sum, typename T>
__global__ void gather_rows_kernel(Sum* dx, const T* dy, const int32_t* indices, int64_t count,
                                   Rows rows) {
  const int lane = static_cast<int>(threadIdx.x % kWarp);
  for (int64_t row = first_element() / kWarp; row < rows.outer; row += element_step() / kWarp) {
    for (int64_t at = 0; at < count; at += kWarp) {
      const int64_t i = row * count + at + lane;
      const bool exists = at + lane < count;
      const int32_t index = exists ? indices[i] : -1;
      const Sum value = exists ? load(dy + i) : Sum{0};
      const unsigned same = __match_any_sync(kAllLanes, index);
      const bool first = exists && (same & ((1u << lane) - 1)) == 0;
      Sum* const place = dx + row * rows.length + index;
      Sum sum = first ? *place : Sum{0};
      if (__any_sync(kAllLanes, exists && (same & (same - 1)) != 0)) {
        for (int other = 0; other < kWarp; ++other) {
          const Sum term = __shfl_sync(kAllLanes, value, other);
          if ((same >> other & 1u) != 0) sum += term;
        }
      } else {
        sum += value;
      }
      if (first) *place = sum;
      __syncwarp();  // the next elements may go to the same places
    }
  }
}

template <typename T>
__global__ void one_hot_kernel(T* y, const int32_t* indices, int64_t count, int64_t classes,
                               T one) {
  for (int64_t n = first_element(); n < count; n += element_step())
    y[n * classes + indices[n]] = one;
}

// sums (outer, length, inner) += the gradients at their places.
template <typename Sum, typename T>
void add_gathered(Cuda device, Array& sums, const Array& dy, const Array& indices, Rows rows) {
  const int64_t count = indices.elements() / rows.count();
  const bool dense = rows.inner == 1;
  launch("gather", device, grid_of(rows.count() * (dense ? kWarp : 1)),
         dense ? gather_rows_kernel<Sum, T> : gather_columns_kernel<Sum, T>, sums.data<Sum>(),
         elements_of<T>(dy), indices.data<int32_t>(), count, rows);
}

}  // namespace

void index_select(Cuda device, Array& y, const Array& x, const Array& indices, Rows rows) {
  if (y.elements() == 0) return;
  const int64_t element = size_of(x.dtype()), bytes = rows.inner * element;
  const int64_t unit = bytes % 16 == 0 ? 16 : element;
  dispatch_bytes(unit, [&](auto zero) {
    using Unit = decltype(zero);
    launch("index_select", device, grid_of(y.bytes() / unit), index_select_kernel<Unit>,
           static_cast<Unit*>(y.raw()), static_cast<const Unit*>(x.raw()), indices.data<int32_t>(),
           indices.elements(), Rows{rows.outer, rows.length, bytes / unit});
  });
}

void index_select_backward(Cuda device, Array& dx, const Array& dy, const Array& indices,
                           Rows rows) {
  if (dx.elements() == 0) return;
  const Positions positions = positions_by_row("index_select", device, indices, rows.length);
  dispatch_element("index_select", dx.dtype(), [&](auto zero) {
    using T = decltype(zero);
    sum_positions<Compute<T>>("index_select", device, elements_of<T>(dx), elements_of<T>(dy),
                              positions, rows, false);
  });
}

void gather(Cuda device, Array& y, const Array& x, const Array& indices, Rows rows) {
  const int64_t elements = y.elements();
  if (elements == 0) return;
  dispatch_bytes(size_of(x.dtype()), [&](auto zero) {
    using Unit = decltype(zero);
    launch("gather", device, grid_of(elements), gather_kernel<Unit>, static_cast<Unit*>(y.raw()),
           static_cast<const Unit*>(x.raw()), indices.data<int32_t>(), elements,
           elements / rows.count(), rows);
  });
}

void gather_backward(Cuda device, Array& dx, const Array& dy, const Array& indices, Rows rows) {
  if (dx.elements() == 0) return;
  if (dx.dtype() == kBFloat16) {  // sums of many elements would lose theirs
    Array sums = Array::empty(dx.shape(), kFloat32, dx.device());
    fill(device, sums, 0);
    if (dy.elements() > 0) add_gathered<float, __nv_bfloat16>(device, sums, dy, indices, rows);
    return cast(device, dx, sums);
  }
  fill(device, dx, 0);
  if (dy.elements() == 0) return;
  dispatch_floating("gather", dx.dtype(), [&](auto zero) {
    using T = decltype(zero);
    add_gathered<T, T>(device, dx, dy, indices, rows);
  });
}

void one_hot(Cuda device, Array& y, const Array& indices, int64_t classes) {
  const int64_t count = indices.elements();
  if (count == 0) return;
  dispatch_stored(y.dtype(), [&](auto zero) {
    using T = decltype(zero);
    launch("one_hot", device, grid_of(count), one_hot_kernel<T>, y.data<T>(),
           indices.data<int32_t>(), count, classes, convert<T>(1.0));
  });
}

}  // namespace gs::backend
