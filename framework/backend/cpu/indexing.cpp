#include "framework/backend/indexing.h"

#include <algorithm>
#include <cstring>

#include "framework/core/parallel.h"

// Bound by memory, and by the latency of scattered reads.
namespace gs::backend {
namespace {

constexpr int64_t kGrain = 1 << 14;

int64_t grain_for(int64_t elements_each) {
  return std::max<int64_t>(1, kGrain / std::max<int64_t>(1, elements_each));
}

}  // namespace

void index_select(Cpu, Array& y, const Array& x, const Array& indices, Rows rows) {
  const int32_t* const index = indices.data<int32_t>();
  const int64_t count = indices.elements();
  const int64_t bytes = rows.inner * size_of(x.dtype());
  char* const out = static_cast<char*>(y.raw());
  const char* const in = static_cast<const char*>(x.raw());
  if (y.elements() == 0) return;
  parallel_for(0, rows.outer * count, grain_for(rows.inner), [&](int64_t first, int64_t last) {
    for (int64_t row = first; row < last; ++row) {
      const int64_t from = row / count * rows.length + index[row % count];
      std::memcpy(out + row * bytes, in + from * bytes, static_cast<size_t>(bytes));
    }
  });
}

// A thread owns rows of dx and adds what is meant for them: no two write the same row, and the
// order of the additions is that of the indices for any number of threads.
void index_select_backward(Cpu, Array& dx, const Array& dy, const Array& indices, Rows rows) {
  if (dx.elements() == 0) return;
  const int32_t* const index = indices.data<int32_t>();
  const int64_t count = indices.elements(), inner = rows.inner;
  dispatch_floating("index_select", dx.dtype(), [&](auto zero) {
    using T = decltype(zero);
    T* const out = dx.data<T>();
    const T* const in = dy.data<T>();
    const int64_t work = inner * (1 + count / rows.length);
    parallel_for(0, rows.outer * rows.length, grain_for(work), [&](int64_t first, int64_t last) {
      std::fill(out + first * inner, out + last * inner, T(0));
      for (int64_t o = first / rows.length; o * rows.length < last; ++o) {
        for (int64_t k = 0; k < count; ++k) {
          const int64_t row = o * rows.length + index[k];
          if (row < first || row >= last) continue;
          const T* const source = in + (o * count + k) * inner;
          for (int64_t i = 0; i < inner; ++i) out[row * inner + i] += source[i];
        }
      }
    });
  });
}

void gather(Cpu, Array& y, const Array& x, const Array& indices, Rows rows) {
  if (y.elements() == 0) return;
  const int32_t* const index = indices.data<int32_t>();
  const int64_t lines = indices.elements() / rows.inner, count = lines / rows.outer;
  dispatch_any("gather", x.dtype(), [&](auto zero) {
    using T = decltype(zero);
    T* const out = y.data<T>();
    const T* const in = x.data<T>();
    parallel_for(0, lines, grain_for(rows.inner), [&](int64_t first, int64_t last) {
      for (int64_t line = first; line < last; ++line) {
        const T* const block = in + line / count * rows.length * rows.inner;
        for (int64_t i = 0; i < rows.inner; ++i)
          out[line * rows.inner + i] = block[index[line * rows.inner + i] * rows.inner + i];
      }
    });
  });
}

// A thread owns columns (o, i) of dx.
void gather_backward(Cpu, Array& dx, const Array& dy, const Array& indices, Rows rows) {
  if (dx.elements() == 0) return;
  const int32_t* const index = indices.data<int32_t>();
  const int64_t inner = rows.inner, columns = rows.outer * inner;
  const int64_t count = indices.elements() / columns;
  dispatch_floating("gather", dx.dtype(), [&](auto zero) {
    using T = decltype(zero);
    T* const out = dx.data<T>();
    const T* const in = dy.data<T>();
    parallel_for(0, columns, grain_for(rows.length + count), [&](int64_t first, int64_t last) {
      for (int64_t o = first / inner; o * inner < last; ++o) {
        const int64_t from = std::max<int64_t>(0, first - o * inner);
        const int64_t to = std::min(inner, last - o * inner);
        T* const block = out + o * rows.length * inner;
        for (int64_t r = 0; r < rows.length; ++r)
          std::fill(block + r * inner + from, block + r * inner + to, T(0));
        for (int64_t line = o * count; line < (o + 1) * count; ++line) {
          for (int64_t i = from; i < to; ++i)
            block[index[line * inner + i] * inner + i] += in[line * inner + i];
        }
      }
    });
  });
}

void one_hot(Cpu, Array& y, const Array& indices, int64_t classes) {
  const int32_t* const index = indices.data<int32_t>();
  dispatch_any("one_hot", y.dtype(), [&](auto zero) {
    using T = decltype(zero);
    T* const out = y.data<T>();
    for (int64_t n = 0; n < indices.elements(); ++n) out[n * classes + index[n]] = T(1);
  });
}

}  // namespace gs::backend
