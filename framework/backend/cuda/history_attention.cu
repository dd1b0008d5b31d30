// Bound by memory: each key and value is read once. A warp for each row's head and part of the
// value's columns; a lane scores a token, then all lanes sum up the values together.
#include "framework/backend/history_attention.h"

#include <cmath>
#include <cstddef>
#include <cstring>
#include <limits>
#include <vector>

#include "framework/backend/cuda/block.cuh"
#include "framework/backend/cuda/element.cuh"
#include "framework/backend/cuda/upload.h"

namespace gs::backend {
namespace {

constexpr int kLaneColumns = 2;
constexpr int kPartColumns = kLaneColumns * kWarp;

template <typename T>
struct HistoryTerms {
  const T* query;
  const T* const* keys;  // (T) each
  const T* const* values;
  const int32_t* rows;  // (R, T)
  int64_t queries, tokens, heads, width, value_width;
  Compute<T> scale;
};

__device__ inline float power(float x) { return expf(x); }
__device__ inline double power(double x) { return exp(x); }

// The score of token t, -infinity beyond the last.
template <typename T, typename C = Compute<T>>
__device__ C score_token(const HistoryTerms<T>& a, int64_t row, int64_t head, int64_t t) {
  if (t >= a.tokens) return -std::numeric_limits<C>::infinity();
  const int64_t columns = a.heads * a.width;
  const T* const query = a.query + row * columns + head * a.width;
  const T* const key = a.keys[t] + a.rows[row * a.tokens + t] * columns + head * a.width;
  C sum = 0;
#pragma unroll 4
  for (int64_t c = 0; c < a.width; ++c) sum += load(query + c) * load(key + c);
  return sum * a.scale;
}

template <typename T>
__global__ void history_attention_kernel(HistoryTerms<T> a, T* output, int64_t parts) {
  using C = Compute<T>;
  const int64_t lane = threadIdx.x % kWarp, count = a.queries * a.heads * parts;
  const int64_t columns = a.heads * a.value_width;
  for (int64_t item = first_element() / kWarp; item < count; item += element_step() / kWarp) {
    const int64_t part = item % parts, head = item / parts % a.heads, row = item / parts / a.heads;
    const int64_t first_column = part * kPartColumns + lane;
    C largest = -std::numeric_limits<C>::infinity(), total = 0, sums[kLaneColumns] = {};
    for (int64_t first = 0; first < a.tokens; first += kWarp) {
      const C score = score_token(a, row, head, first + lane);
      const C most = warp_reduce(score > largest ? score : largest, Larger{});
      const C factor = largest == most ? C{1} : power(largest - most);
      const C weight = first + lane < a.tokens ? power(score - most) : C{0};
      largest = most;
      total = total * factor + warp_sum(weight);
      for (C& sum : sums) sum *= factor;
      for (int t = 0; t < kWarp && first + t < a.tokens; ++t) {
        const C token_weight = __shfl_sync(kAllLanes, weight, t);
        const T* const value = a.values[first + t] + a.rows[row * a.tokens + first + t] * columns +
                               head * a.value_width;
#pragma unroll
        for (int c = 0; c < kLaneColumns; ++c) {
          const int64_t column = first_column + c * kWarp;
          if (column < a.value_width) sums[c] += token_weight * load(value + column);
        }
      }
    }
#pragma unroll
    for (int c = 0; c < kLaneColumns; ++c) {
      const int64_t column = first_column + c * kWarp;
      if (column < a.value_width)
        store(output + row * columns + head * a.value_width + column, sums[c] / total);
    }
  }
}

// The addresses of keys and values and the rows, in one table in the device's memory.
Array table_of(Cuda device, const History& history) {
  const size_t tokens = history.keys.size();
  std::vector<std::byte> table(2 * tokens * sizeof(void*) + history.rows.size_bytes());
  std::vector<const void*> places;
  for (const Array& key : history.keys) places.push_back(key.raw());
  for (const Array& value : history.values) places.push_back(value.raw());
  std::memcpy(table.data(), places.data(), places.size() * sizeof(void*));
  if (!history.rows.empty())
    std::memcpy(table.data() + places.size() * sizeof(void*), history.rows.data(),
                history.rows.size_bytes());
  return upload(device, table.data(), static_cast<int64_t>(table.size()));
}

}  // namespace

void history_attention(Cuda device, Array& output, const Array& query, const History& history) {
  if (output.elements() == 0) return;
  const Array table = table_of(device, history);
  const int64_t tokens = static_cast<int64_t>(history.keys.size());
  dispatch_element("history_attention", output.dtype(), [&](auto zero) {
    using T = decltype(zero);
    const auto* const places = static_cast<const T* const*>(table.raw());
    const int64_t width = query.shape()[1] / history.heads;
    const int64_t value_width = output.shape()[1] / history.heads;
    const int64_t parts = (value_width + kPartColumns - 1) / kPartColumns;
    const HistoryTerms<T> terms{
        elements_of<T>(query), places,
        places + tokens,       reinterpret_cast<const int32_t*>(places + 2 * tokens),
        query.shape()[0],      tokens,
        history.heads,         width,
        value_width,           static_cast<Compute<T>>(1 / std::sqrt(static_cast<double>(width)))};
    launch("history_attention", device, grid_of(terms.queries * terms.heads * parts * kWarp),
           history_attention_kernel<T>, terms, elements_of<T>(output), parts);
  });
}

}  // namespace gs::backend
