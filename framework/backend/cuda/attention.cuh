// What the kernels of attention, forward and backward, have in common.
#pragma once

#include "framework/backend/attention.h"
#include "framework/backend/cuda/attention_tensor_cores.cuh"

namespace gs::backend {

__device__ inline float power(float x) { return expf(x); }
__device__ inline double power(double x) { return exp(x); }

template <typename C>
constexpr C kNoScore = -std::numeric_limits<C>::infinity();

// AttentionInputs and AttentionPlan, as kernels read them.
template <typename T>
struct AttentionTerms {
  const T *query, *key, *value, *scores;  // scores and mask may be null
  const bool* mask;
  const AttentionSequence* sequences;
  int64_t heads, width, value_width;
  bool causal;
  Compute<T> scale, dropout_scale;
  DropoutMask dropout;
  std::array<int64_t, 4> mask_strides, scores_strides;
};

template <typename T>
T* elements_or_null(Array& array) {
  return array.defined() ? elements_of<T>(array) : nullptr;
}
template <typename T>
const T* elements_or_null(const Array& array) {
  return array.defined() ? elements_of<T>(array) : nullptr;
}

template <typename T>
AttentionTerms<T> terms_of(const AttentionInputs& inputs, const AttentionPlan& plan) {
  return {elements_of<T>(inputs.query),
          elements_of<T>(inputs.key),
          elements_of<T>(inputs.value),
          elements_or_null<T>(inputs.scores),
          inputs.mask.defined() ? inputs.mask.data<bool>() : nullptr,
          static_cast<const AttentionSequence*>(plan.table.raw()),
          plan.heads,
          plan.width,
          plan.value_width,
          plan.causal,
          static_cast<Compute<T>>(plan.scale),
          static_cast<Compute<T>>(plan.dropout.scale),
          plan.dropout,
          plan.mask_strides,
          plan.scores_strides};
}

// The blocks of a launch: one for each tile of rows, part of the columns, head and sequence.
// Sequences shorter than the longest leave some without work.
struct AttentionGrid {
  int64_t sequences, heads, parts, tiles;

  int64_t blocks() const { return sequences * heads * parts * tiles; }
};

inline AttentionGrid attention_grid(const AttentionPlan& plan, int64_t AttentionSequence::*rows,
                                    int64_t columns, int64_t tile_width) {
  int64_t longest = 0;
  for (const AttentionSequence& sequence : plan.sequences)
    longest = std::max(longest, sequence.*rows);
  return {static_cast<int64_t>(plan.sequences.size()), plan.heads,
          std::max<int64_t>(1, (columns + tile_width - 1) / tile_width),
          (longest + kTile - 1) / kTile};
}

template <typename... Parameters, typename... Arguments>
void launch_tiles(Cuda device, const AttentionGrid& grid, int64_t shared_bytes,
                  void (*kernel)(Parameters...), Arguments&&... arguments) {
  if (grid.blocks() == 0) return;
  check(grid.blocks() <= INT32_MAX,
        "attention: too many tiles of weights, got {}; use a smaller batch", grid.blocks());
  launch("attention", device,
         Grid{dim3(static_cast<unsigned>(grid.blocks())), dim3(kTileThreads), shared_bytes}, kernel,
         std::forward<Arguments>(arguments)...);
}

// What one block computes.
struct AttentionBlock {
  AttentionSequence sequence;
  int64_t index, head;  // of the sequence, and which of its heads
  int64_t first_row, part;

  // Where the weights of query i start.
  __device__ int64_t weights_row(int64_t i) const {
    return sequence.weights_start + (head * sequence.queries + i) * sequence.weights_width;
  }
  // How many keys, from the first on, query i may see at most; none if there is no such query.
  __device__ int64_t visible(bool causal, int64_t i) const {
    if (i >= sequence.queries) return 0;
    if (!causal) return sequence.keys;
    const int64_t seen = sequence.weights_width - sequence.queries + i + 1;
    return seen < 0 ? 0 : seen < sequence.keys ? seen : sequence.keys;
  }
  // How many keys any query from the first row of a tile on may see.
  __device__ int64_t visible_in_tile(bool causal) const {
    const int64_t last = first_row + kTile;
    return visible(causal, (last < sequence.queries ? last : sequence.queries) - 1);
  }
  // The first query that may see key j.
  __device__ int64_t first_query(bool causal, int64_t j) const {
    const int64_t first = j - sequence.weights_width + sequence.queries;
    return !causal || first < 0 ? 0 : first < sequence.queries ? first : sequence.queries;
  }
};

__device__ inline AttentionBlock block_of(const AttentionGrid& grid,
                                          const AttentionSequence* sequences) {
  const int64_t block = blockIdx.x;
  const int64_t head = block / (grid.tiles * grid.parts);
  const int64_t index = head / grid.heads;
  return {sequences[index], index, head % grid.heads, block % grid.tiles * kTile,
          block / grid.tiles % grid.parts};
}

// The rows of the block's head.
template <typename T>
__device__ HeadRows<T> query_rows(T* x, const AttentionBlock& block, int64_t heads, int64_t width) {
  return head_rows(x, block.sequence.query_start, block.sequence.queries, block.head, heads, width);
}
template <typename T>
__device__ HeadRows<T> key_rows(T* x, const AttentionBlock& block, int64_t heads, int64_t width) {
  return head_rows(x, block.sequence.key_start, block.sequence.keys, block.head, heads, width);
}

// Which keys the queries of a tile see, by their places in the tile.
struct TileSight {
  int queries, keys, diagonal;

  __device__ bool sees(int query, int key) const {
    return query < queries && key < keys && key - query <= diagonal;
  }
};
__device__ inline int within_tile(int64_t x) {
  return static_cast<int>(x < -kTile ? -kTile : x > kTile ? kTile : x);
}
__device__ inline TileSight sight_of(const AttentionBlock& block, bool causal, int64_t first_query,
                                     int64_t first_key) {
  const AttentionSequence& sequence = block.sequence;
  const int64_t diagonal = sequence.weights_width - sequence.queries + first_query - first_key;
  return {within_tile(sequence.queries - first_query), within_tile(sequence.keys - first_key),
          causal ? within_tile(diagonal) : kTile};
}

// sums = the products of rows of x from x_row on and rows of y from y_row on, over all columns. All
// threads of the block call it; it begins with a barrier.
template <typename T>
__device__ void tile_products(TileElements<T>& sums, Tile<T>& a, const HeadRows<const T>& x,
                              int64_t x_row, Tile<T>& b, const HeadRows<const T>& y,
                              int64_t y_row) {
  for (auto& row : sums)
    for (auto& sum : row) sum = 0;
  int64_t column = 0;
  do {
    __syncthreads();
    a.hold(x, x_row, column);
    b.hold(y, y_row, column);
    wait_for_tiles();
    multiply(sums, a, b);
    column += kTileWidth<T>;
  } while (column < x.width);
}

// Whether a block has to form its sums once more and exactly: see combine. All threads call it at
// the end, with whether theirs are finite.
template <typename T>
__device__ bool repeat(bool& exact, bool finite) {
  if (exact || !std::is_same_v<T, __nv_bfloat16>) return false;
  exact = __syncthreads_or(!finite) != 0;
  return exact;
}

// A thread's part of a tile whose rows are queries and whose columns are keys, or the other way
// round.
template <typename T>
struct ByQuery {
  using Thread = TileThread<T>;
  static constexpr int kQueries = Thread::kRows, kKeys = Thread::kColumns;
  __device__ static int query(int q) { return Thread::row(q); }
  __device__ static int key(int k) { return Thread::column(k); }
  __device__ static Compute<T>& at(TileElements<T>& x, int q, int k) { return x[q][k]; }
};
template <typename T>
struct ByKey {
  using Thread = TileThread<T>;
  static constexpr int kQueries = Thread::kColumns, kKeys = Thread::kRows;
  __device__ static int query(int q) { return Thread::column(q); }
  __device__ static int key(int k) { return Thread::row(k); }
  __device__ static Compute<T>& at(TileElements<T>& x, int q, int k) { return x[k][q]; }
};

// Calls function(element, query, key) for a thread's elements of a tile, with their places there.
template <typename Places, typename Elements, typename Function>
__device__ void for_each_element(Elements& x, const Function& function) {
#pragma unroll
  for (int q = 0; q < Places::kQueries; ++q) {
#pragma unroll
    for (int k = 0; k < Places::kKeys; ++k)
      function(Places::at(x, q, k), Places::query(q), Places::key(k));
  }
}

// Turns products of queries and keys into scores, -infinity for what is hidden.
template <typename Places, typename T, typename C = Compute<T>>
__device__ void finish_scores(TileElements<T>& x, const AttentionTerms<T>& a,
                              const AttentionBlock& block, const TileSight& sight,
                              int64_t first_query, int64_t first_key) {
  // Not relative to the tile: what all tiles have in common would be kept in registers.
  const auto place = [&](const std::array<int64_t, 4>& strides, int query, int key) {
    return block.index * strides[0] + block.head * strides[1] + (first_query + query) * strides[2] +
           (first_key + key) * strides[3];
  };
  for_each_element<Places>(x, [&](C& score, int, int) { score *= a.scale; });
  if (a.scores != nullptr) {
    for_each_element<Places>(x, [&](C& score, int query, int key) {
      if (sight.sees(query, key)) score += load(a.scores + place(a.scores_strides, query, key));
    });
  }
  if (a.mask != nullptr) {
    for_each_element<Places>(x, [&](C& score, int query, int key) {
      if (sight.sees(query, key) && !a.mask[place(a.mask_strides, query, key)]) score = kNoScore<C>;
    });
  }
  for_each_element<Places>(x, [&](C& score, int query, int key) {
    if (!sight.sees(query, key)) score = kNoScore<C>;
  });
}

// What is kept of a row: see AttentionResults.
template <typename C>
struct RowStatistics {
  C largest = 0, inverse = 0;

  // Before dropout, of a key that is seen.
  __device__ C weight(C score) const { return power(score - largest) * inverse; }
};
template <typename C>
__device__ RowStatistics<C> statistics_of(const RowStatistics<C>* statistics,
                                          const AttentionBlock& block, int64_t heads, int64_t i) {
  if (i >= block.sequence.queries) return {};
  return statistics[(block.sequence.query_start + i) * heads + block.head];
}

// Which weights of kTile queries and kTile keys dropout keeps: a bit each, of kept[2 * i] and
// kept[2 * i + 1] for query i. Each thread makes half a row, which shares the random words.
struct KeptWeights {
  static constexpr int kHalf = kTile / 2;
  uint16_t* kept;  // shared, 2 * kTile

  __device__ void draw(const DropoutMask& mask, const AttentionBlock& block, int64_t first_query,
                       int64_t first_key) const {
    const int row = static_cast<int>(threadIdx.x) / 2, half = static_cast<int>(threadIdx.x) % 2;
    const uint64_t first =
        static_cast<uint64_t>(block.weights_row(first_query + row) + first_key + half * kHalf);
    unsigned bits = 0;
    for (uint64_t words = first / 4; words * 4 < first + kHalf; ++words) {
      const std::array<uint32_t, 4> random = mask.stream.words(words);
#pragma unroll
      for (unsigned w = 0; w < 4; ++w) {
        const uint64_t place = words * 4 + w - first;  // wraps around before the first
        if (place < kHalf && mask.keeps_word(random[w])) bits |= 1u << place;
      }
    }
    kept[threadIdx.x] = static_cast<uint16_t>(bits);
  }

  __device__ bool at(int query, int key) const {
    return (kept[query * 2 + key / kHalf] >> (key % kHalf) & 1) != 0;
  }
};
static_assert(kTileThreads == 2 * kTile);

}  // namespace gs::backend
