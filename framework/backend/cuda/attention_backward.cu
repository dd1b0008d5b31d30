// Two kernels, one for the queries' gradients and one for those of keys and values, so that each
// sum is formed by one block in a fixed order. Both compute the weights again. Bound by arithmetic.
// Dao, "FlashAttention-2", 2023.
#include "framework/backend/cuda/attention.cuh"

namespace gs::backend {
namespace {

// What comes from above; dweights is null where dy counts, which may be empty. `delta` is, of each
// row and head, the sum of its weights times their gradients.
template <typename T>
struct Upstream {
  const T *dy, *dweights;
  const RowStatistics<Compute<T>>* statistics;
  const Compute<T>* delta;

  __device__ bool from_output() const { return dweights == nullptr; }
};

// delta = sum(dy * y), which is the sum over the weights after dropout. A warp for each row's head.
template <typename T>
__global__ void delta_kernel(Compute<T>* delta, const T* dy, const T* y, int64_t rows,
                             int64_t width) {
  const int64_t lane = threadIdx.x % kWarp;
  for (int64_t row = first_element() / kWarp; row < rows; row += element_step() / kWarp) {
    Compute<T> sum = 0;
    for (int64_t i = row * width + lane; i < (row + 1) * width; i += kWarp)
      sum += load(dy + i) * load(y + i);
    sum = warp_sum(sum);
    if (lane == 0) delta[row] = sum;
  }
}

// delta = sum(weights * dweights), where a weight of 0 hides what it meets. A warp for every other
// row of a tile.
template <typename T>
__global__ void weights_delta_kernel(Compute<T>* delta, const T* dweights, const T* weights,
                                     const AttentionSequence* sequences, AttentionGrid grid) {
  const AttentionBlock block = block_of(grid, sequences);
  const int64_t lane = threadIdx.x % kWarp, width = block.sequence.weights_width;
  for (int64_t row = threadIdx.x / kWarp; row < kTile; row += kTileThreads / kWarp) {
    const int64_t query = block.first_row + row;
    if (query >= block.sequence.queries) return;
    const int64_t start = block.weights_row(query);
    Compute<T> sum = 0;
    for (int64_t j = start + lane; j < start + width; j += kWarp) {
      const Compute<T> weight = load(weights + j);
      if (weight != 0) sum += weight * load(dweights + j);
    }
    sum = warp_sum(sum);
    if (lane == 0) delta[(block.sequence.query_start + query) * grid.heads + block.head] = sum;
  }
}

// One thread's part of a tile: the weights after dropout and the gradients of the scores.
template <typename T>
struct TileGradients {
  TileElements<T> weights, scores;
};

// Turns scores and the gradients of the weights after dropout (before it, if dweights is what comes
// from above) into the weights after dropout and the gradients of the scores: with p the weights
// before dropout, p * (dp - delta), 0 where p is 0, whatever dp is.
template <typename Places, typename T, typename C = Compute<T>>
__device__ void softmax_backward(TileGradients<T>& tile, const AttentionTerms<T>& a,
                                 const Upstream<T>& upstream, const AttentionBlock& block,
                                 const TileSight& sight, int64_t first_query,
                                 const KeptWeights& kept) {
  const bool drops = a.dropout.threshold > 0;
#pragma unroll
  for (int q = 0; q < Places::kQueries; ++q) {
    const int query = Places::query(q);
    RowStatistics<C> known;
    C delta = 0;
    if (query < sight.queries) {
      const int64_t row = (block.sequence.query_start + first_query + query) * a.heads + block.head;
      known = upstream.statistics[row];
      delta = upstream.delta[row];
    }
#pragma unroll
    for (int k = 0; k < Places::kKeys; ++k) {
      const int key = Places::key(k);
      C &element = Places::at(tile.weights, q, k), &gradient = Places::at(tile.scores, q, k);
      const C weight = sight.sees(query, key) ? known.weight(element) : C{0};
      const C factor = !drops ? C{1} : kept.at(query, key) ? a.dropout_scale : C{0};
      if (drops && upstream.from_output()) gradient = factor == 0 ? C{0} : gradient * factor;
      gradient = weight == 0 ? C{0} : weight * (gradient - delta);
      element = factor == 0 ? C{0} : weight * factor;
    }
  }
}

// The gradients of a tile's weights, where they come from above.
template <typename Places, typename T, typename C = Compute<T>>
__device__ void load_dweights(TileElements<T>& x, const T* dweights, const AttentionBlock& block,
                              const TileSight& sight, int64_t first_query, int64_t first_key) {
  const T* const start = dweights + block.weights_row(first_query) + first_key;
  for_each_element<Places>(x, [&](C& element, int query, int key) {
    element =
        sight.sees(query, key) ? load(start + query * block.sequence.weights_width + key) : C{0};
  });
}

template <typename T>
__device__ void store_dscores(T* dscores, TileElements<T>& x, const AttentionBlock& block,
                              int64_t first_key) {
  const int64_t width = block.sequence.weights_width;
  T* const start = dscores + block.weights_row(block.first_row) + first_key;
  for_each_element<ByQuery<T>>(x, [&](Compute<T> element, int query, int key) {
    if (block.first_row + query < block.sequence.queries && first_key + key < width)
      store(start + query * width + key, element);
  });
}

template <typename T>
__global__ void __launch_bounds__(kTileThreads, kTileBlocks)
    query_gradient_kernel(AttentionTerms<T> a, Upstream<T> upstream, AttentionGrid grid, T* dquery,
                          T* dscores) {
  GS_DYNAMIC_SHARED(T, shared);
  __shared__ uint16_t kept_bits[2 * kTile];
  const KeptWeights kept{kept_bits};
  const AttentionBlock block = block_of(grid, a.sequences);
  const int64_t first_query = block.first_row;
  if (first_query >= block.sequence.queries) return;
  Tile<T> query{shared}, key{shared + query.kElements}, dy{shared + 2 * query.kElements},
      value{shared + 3 * query.kElements};
  Coefficients<T> coefficients{shared + 4 * query.kElements};
  const auto queries = query_rows(a.query, block, a.heads, a.width);
  const auto keys = key_rows(a.key, block, a.heads, a.width);
  const int64_t column = block.part * kTileWidth<T>, seen = block.visible_in_tile(a.causal);
  TileSums<T> sums;
  bool exact = false;
  do {
    sums = {};
    for (int64_t first_key = 0; first_key < seen; first_key += kTile) {
      TileGradients<T> tile;
      const TileSight sight = sight_of(block, a.causal, first_query, first_key);
      tile_products(tile.weights, query, queries, first_query, key, keys, first_key);
      finish_scores<ByQuery<T>>(tile.weights, a, block, sight, first_query, first_key);
      if (a.dropout.threshold > 0) kept.draw(a.dropout, block, first_query, first_key);
      if (upstream.from_output()) {
        tile_products(tile.scores, dy, query_rows(upstream.dy, block, a.heads, a.value_width),
                      first_query, value, key_rows(a.value, block, a.heads, a.value_width),
                      first_key);
      } else {
        load_dweights<ByQuery<T>>(tile.scores, upstream.dweights, block, sight, first_query,
                                  first_key);
        __syncthreads();
      }
      softmax_backward<ByQuery<T>>(tile, a, upstream, block, sight, first_query, kept);
      if (dscores != nullptr && block.part == 0)
        store_dscores(dscores, tile.scores, block, first_key);
      key.hold(keys, first_key, column);
      coefficients.hold(tile.scores, a.scale);
      wait_for_tiles();
      combine(sums, coefficients, key, exact);
    }
  } while (repeat<T>(exact, sums.finite()));
  if (dquery != nullptr)
    sums.store_rows(query_rows(dquery, block, a.heads, a.width), first_query, column);
  if (dscores == nullptr || block.part != 0) return;
  TileElements<T> none{};
  const int64_t first_hidden = (seen + kTile - 1) / kTile * kTile;
  for (int64_t j = first_hidden; j < block.sequence.weights_width; j += kTile)
    store_dscores(dscores, none, block, j);
}

template <typename T>
__global__ void __launch_bounds__(kTileThreads, kTileBlocks)
    key_gradient_kernel(AttentionTerms<T> a, Upstream<T> upstream, AttentionGrid grid, T* dkey,
                        T* dvalue) {
  GS_DYNAMIC_SHARED(T, shared);
  __shared__ uint16_t kept_bits[2 * kTile];
  const KeptWeights kept{kept_bits};
  const AttentionBlock block = block_of(grid, a.sequences);
  const int64_t first_key = block.first_row, column = block.part * kTileWidth<T>;
  if (first_key >= block.sequence.weights_width) return;
  Tile<T> query{shared}, key{shared + query.kElements}, dy{shared + 2 * query.kElements},
      value{shared + 3 * query.kElements};
  Coefficients<T> weights{shared + 4 * query.kElements},
      coefficients{shared + 4 * query.kElements + Coefficients<T>::kElements};
  const auto queries = query_rows(a.query, block, a.heads, a.width);
  HeadRows<const T> outputs{};
  if (upstream.dy != nullptr) outputs = query_rows(upstream.dy, block, a.heads, a.value_width);
  TileSums<T> key_sums, value_sums;
  bool exact = false;
  do {
    key_sums = value_sums = {};
    for (int64_t first_query = block.first_query(a.causal, first_key);
         first_key < block.sequence.keys && first_query < block.sequence.queries;
         first_query += kTile) {
      TileGradients<T> tile;
      const TileSight sight = sight_of(block, a.causal, first_query, first_key);
      tile_products(tile.weights, key, key_rows(a.key, block, a.heads, a.width), first_key, query,
                    queries, first_query);
      finish_scores<ByKey<T>>(tile.weights, a, block, sight, first_query, first_key);
      if (a.dropout.threshold > 0) kept.draw(a.dropout, block, first_query, first_key);
      if (upstream.from_output()) {
        tile_products(tile.scores, value, key_rows(a.value, block, a.heads, a.value_width),
                      first_key, dy, outputs, first_query);
      } else {
        load_dweights<ByKey<T>>(tile.scores, upstream.dweights, block, sight, first_query,
                                first_key);
        __syncthreads();
      }
      softmax_backward<ByKey<T>>(tile, a, upstream, block, sight, first_query, kept);
      if (a.width > query.kWidth || a.value_width > query.kWidth)
        __syncthreads();  // others may still multiply
      query.hold(queries, first_query, column);
      if (upstream.from_output()) dy.hold(outputs, first_query, column);
      weights.hold(tile.weights, 1);
      coefficients.hold(tile.scores, a.scale);
      wait_for_tiles();
      if (dvalue != nullptr) combine(value_sums, weights, dy, exact);
      if (dkey != nullptr) combine(key_sums, coefficients, query, exact);
    }
  } while (repeat<T>(exact, key_sums.finite() && value_sums.finite()));
  // Padding has rows, too.
  const AttentionSequence& sequence = block.sequence;
  const auto all_rows = [&](T* x, int64_t width) {
    return head_rows(x, sequence.key_start, sequence.weights_width, block.head, a.heads, width);
  };
  if (dkey != nullptr) key_sums.store_rows(all_rows(dkey, a.width), first_key, column);
  if (dvalue != nullptr) value_sums.store_rows(all_rows(dvalue, a.value_width), first_key, column);
}

template <typename T>
void compute_delta(Cuda device, Array& delta, const Array& dy, const Array& dweights,
                   const AttentionResults& results, const AttentionPlan& plan) {
  using C = Compute<T>;
  if (dy.defined()) {
    if (delta.elements() == 0) return;
    launch("attention", device, grid_of(delta.elements() * kWarp), delta_kernel<T>,
           elements_of<C>(delta), elements_of<T>(dy), elements_of<T>(results.output),
           delta.elements(), plan.value_width);
    return;
  }
  const AttentionGrid grid = attention_grid(plan, &AttentionSequence::queries, 1, 1);
  launch_tiles(device, grid, 0, weights_delta_kernel<T>, elements_of<C>(delta),
               elements_of<T>(dweights), elements_of<T>(results.weights),
               static_cast<const AttentionSequence*>(plan.table.raw()), grid);
}

template <typename T>
void attend_backward(Cuda device, AttentionGradients& gradients, const Upstream<T>& upstream,
                     const AttentionInputs& inputs, const AttentionPlan& plan) {
  const AttentionTerms<T> terms = terms_of<T>(inputs, plan);
  constexpr int64_t kTileBytes = 4 * Tile<T>::kElements * sizeof(T);
  constexpr int64_t kCoefficientBytes = Coefficients<T>::kElements * sizeof(T);
  if (gradients.dquery.defined() || gradients.dscores.defined()) {
    const AttentionGrid grid =
        attention_grid(plan, &AttentionSequence::queries, plan.width, kTileWidth<T>);
    launch_tiles(device, grid, kTileBytes + kCoefficientBytes, query_gradient_kernel<T>, terms,
                 upstream, grid, elements_or_null<T>(gradients.dquery),
                 elements_or_null<T>(gradients.dscores));
  }
  if (gradients.dkey.defined() || gradients.dvalue.defined()) {
    const AttentionGrid grid =
        attention_grid(plan, &AttentionSequence::weights_width,
                       std::max(plan.width, plan.value_width), kTileWidth<T>);
    launch_tiles(device, grid, kTileBytes + 2 * kCoefficientBytes, key_gradient_kernel<T>, terms,
                 upstream, grid, elements_or_null<T>(gradients.dkey),
                 elements_or_null<T>(gradients.dvalue));
  }
}

}  // namespace

void attention_backward(Cuda device, AttentionGradients& gradients, const Array& dy,
                        const Array& dweights, const AttentionInputs& inputs,
                        const AttentionResults& results, const AttentionPlan& plan) {
  dispatch_element("attention", inputs.query.dtype(), [&](auto zero) {
    using T = decltype(zero);
    using Statistics = RowStatistics<Compute<T>>;
    const int64_t rows = results.statistics.elements() / 2;
    Array delta = Array::empty({rows}, results.statistics.dtype(), results.statistics.device());
    compute_delta<T>(device, delta, dy, dweights, results, plan);
    const Upstream<T> upstream{elements_or_null<T>(dy), elements_or_null<T>(dweights),
                               static_cast<const Statistics*>(results.statistics.raw()),
                               elements_of<Compute<T>>(delta)};
    attend_backward(device, gradients, upstream, inputs, plan);
  });
}

}  // namespace gs::backend
