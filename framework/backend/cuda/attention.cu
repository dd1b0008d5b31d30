// One pass over the keys for each tile of queries, with the softmax's maximum and sum corrected on
// the way, so that no weight is stored: Milakov and Gimelshein, "Online normalizer calculation for
// softmax", 2018; Dao et al., "FlashAttention", 2022. Bound by arithmetic.
#include "framework/backend/cuda/attention.cuh"
#include "framework/backend/cuda/upload.h"

namespace gs::backend {
namespace {

template <typename C>
__device__ C larger(C a, C b) {
  return b > a ? b : a;  // NaN never wins: the sum of powers keeps it
}

// Room for as many blocks as shared memory has, so that some compute while others load.
template <typename T>
constexpr int kForwardBlocks = sizeof(T) <= 4 ? 6 : kTileBlocks;

// One thread's part of the softmax of kTile rows, of the keys seen so far.
template <typename T>
struct OnlineSoftmax {
  using C = Compute<T>;
  using Thread = TileThread<T>;

  C largest[Thread::kRows], total[Thread::kRows];
  TileSums<T> output;

  __device__ OnlineSoftmax() {
    for (int i = 0; i < Thread::kRows; ++i) {
      largest[i] = kNoScore<C>;
      total[i] = 0;
    }
  }

  __device__ C shift(int i) const { return largest[i] == kNoScore<C> ? C{0} : largest[i]; }

  // Turns scores into powers above the new maximum, and what was summed before accordingly.
  __device__ void exponentiate(TileElements<T>& scores) {
#pragma unroll
    for (int i = 0; i < Thread::kRows; ++i) {
      C most = largest[i];
      for (const C score : scores[i]) most = larger(most, score);
      for (int distance = Thread::kLanes / 2; distance > 0; distance /= 2)
        most = larger(most, __shfl_xor_sync(kAllLanes, most, distance));
      const C before = largest[i];
      largest[i] = most;
      const C factor = power(before - shift(i));
      C sum = 0;
      for (C& score : scores[i]) {
        score = power(score - shift(i));
        sum += score;
      }
      for (int distance = Thread::kLanes / 2; distance > 0; distance /= 2)
        sum += __shfl_xor_sync(kAllLanes, sum, distance);
      // A factor of 0 hides even what is not a number.
      total[i] = factor == 0 ? sum : total[i] * factor + sum;
      for (C& value : output.sums[i]) value = factor == 0 ? C{0} : value * factor;
    }
  }

  __device__ C inverse(int i) const { return total[i] == 0 ? C{0} : 1 / total[i]; }
};

template <typename T>
__global__ void __launch_bounds__(kTileThreads, kForwardBlocks<T>)
    attention_kernel(AttentionTerms<T> a, AttentionGrid grid, T* output,
                     RowStatistics<Compute<T>>* statistics) {
  using C = Compute<T>;
  using Thread = TileThread<T>;
  GS_DYNAMIC_SHARED(T, shared);
  __shared__ uint16_t kept_bits[2 * kTile];
  const KeptWeights kept{kept_bits};
  const AttentionBlock block = block_of(grid, a.sequences);
  if (block.first_row >= block.sequence.queries) return;
  Tile<T> query{shared}, key{shared + query.kElements}, value{shared + 2 * query.kElements};
  Coefficients<T> weights{shared + 3 * query.kElements};
  const auto queries = query_rows(a.query, block, a.heads, a.width);
  const auto keys = key_rows(a.key, block, a.heads, a.width);
  const auto values = key_rows(a.value, block, a.heads, a.value_width);
  const bool drops = a.dropout.threshold > 0;
  const int64_t column = block.part * kTileWidth<T>, seen = block.visible_in_tile(a.causal);
  OnlineSoftmax<T> softmax;
  bool exact = false;
  do {
    softmax = {};
    for (int64_t first_key = 0; first_key < seen; first_key += kTile) {
      TileElements<T> x;
      tile_products(x, query, queries, block.first_row, key, keys, first_key);
      value.hold(values, first_key, column);
      if (drops) {
        kept.draw(a.dropout, block, block.first_row, first_key);
        __syncthreads();
      }
      const TileSight sight = sight_of(block, a.causal, block.first_row, first_key);
      finish_scores<ByQuery<T>>(x, a, block, sight, block.first_row, first_key);
      softmax.exponentiate(x);
      if (drops) {
        for_each_element<ByQuery<T>>(x, [&](C& weight, int row, int key_place) {
          weight = kept.at(row, key_place) ? weight * a.dropout_scale : 0;
        });
      }
      weights.hold(x, 1);
      wait_for_tiles();
      combine(softmax.output, weights, value, exact);
    }
  } while (repeat<T>(exact, softmax.output.finite()));
  for (int i = 0; i < Thread::kRows; ++i) {
    const int64_t row = block.first_row + Thread::row(i);
    for (C& element : softmax.output.sums[i]) element *= softmax.inverse(i);
    if (statistics != nullptr && block.part == 0 && Thread::lane() == 0 &&
        row < block.sequence.queries)
      statistics[(block.sequence.query_start + row) * a.heads + block.head] = {softmax.shift(i),
                                                                               softmax.inverse(i)};
  }
  softmax.output.store_rows(query_rows(output, block, a.heads, a.value_width), block.first_row,
                            column);
}

template <typename T>
__global__ void __launch_bounds__(kTileThreads, kForwardBlocks<T>)
    weights_kernel(AttentionTerms<T> a, AttentionGrid grid, T* weights,
                   const RowStatistics<Compute<T>>* statistics) {
  using C = Compute<T>;
  GS_DYNAMIC_SHARED(T, shared);
  const AttentionBlock block = block_of(grid, a.sequences);
  if (block.first_row >= block.sequence.queries) return;
  Tile<T> query{shared}, key{shared + query.kElements};
  const auto queries = query_rows(a.query, block, a.heads, a.width);
  const auto keys = key_rows(a.key, block, a.heads, a.width);
  const int64_t width = block.sequence.weights_width, seen = block.visible_in_tile(a.causal);
  for (int64_t first_key = 0; first_key < width; first_key += kTile) {
    TileElements<T> x{};
    const TileSight sight = sight_of(block, a.causal, block.first_row, first_key);
    if (first_key < seen) {
      tile_products(x, query, queries, block.first_row, key, keys, first_key);
      finish_scores<ByQuery<T>>(x, a, block, sight, block.first_row, first_key);
    }
    for_each_element<ByQuery<T>>(x, [&](C score, int row, int column) {
      if (block.first_row + row >= block.sequence.queries || first_key + column >= width) return;
      const auto known = statistics_of(statistics, block, a.heads, block.first_row + row);
      store(weights + block.weights_row(block.first_row + row) + first_key + column,
            sight.sees(row, column) ? known.weight(score) : C{0});
    });
  }
}

template <typename T>
void attend(Cuda device, AttentionResults& results, const AttentionInputs& inputs,
            const AttentionPlan& plan) {
  using Statistics = RowStatistics<Compute<T>>;
  const AttentionTerms<T> terms = terms_of<T>(inputs, plan);
  Statistics* const statistics =
      results.statistics.defined() ? static_cast<Statistics*>(results.statistics.raw()) : nullptr;
  constexpr int64_t kTileBytes = Tile<T>::kElements * sizeof(T);
  const AttentionGrid grid =
      attention_grid(plan, &AttentionSequence::queries, plan.value_width, kTileWidth<T>);
  launch_tiles(device, grid, 3 * kTileBytes + Coefficients<T>::kElements * sizeof(T),
               attention_kernel<T>, terms, grid, elements_of<T>(results.output), statistics);
  if (!results.weights.defined()) return;
  const AttentionGrid all = attention_grid(plan, &AttentionSequence::queries, 1, 1);
  launch_tiles(device, all, 2 * kTileBytes, weights_kernel<T>, terms, all,
               elements_of<T>(results.weights), statistics);
}

}  // namespace

void place_sequences(Cuda device, AttentionPlan& plan) {
  if (plan.table.defined()) return;
  plan.table = upload(device, plan.sequences.data(),
                      static_cast<int64_t>(plan.sequences.size() * sizeof(AttentionSequence)));
}

void attention(Cuda device, AttentionResults& results, const AttentionInputs& inputs,
               const AttentionPlan& plan) {
  AttentionResults all =
      results;  // weights are made from the statistics, even if nobody keeps them
  if (results.weights.defined() && !results.statistics.defined()) {
    const Shape& shape = inputs.query.shape();
    const DType dtype = inputs.query.dtype() == kFloat64 ? kFloat64 : kFloat32;
    all.statistics =
        Array::empty(shape.with(shape.rank() - 1, plan.heads * 2), dtype, inputs.query.device());
  }
  dispatch_element("attention", inputs.query.dtype(),
                   [&](auto zero) { attend<decltype(zero)>(device, all, inputs, plan); });
}

}  // namespace gs::backend
