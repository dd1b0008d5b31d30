#include "framework/backend/permute.h"

#include "framework/backend/copy.h"
#include "framework/backend/cuda/map.cuh"
#include "framework/backend/element_size.h"
#include "framework/backend/permute_axes.h"

// Bound by memory: neighbouring threads read and write neighbouring elements.
namespace gs::backend {
namespace {

constexpr int kTile = 32, kTileRows = kThreads / kTile;
constexpr int64_t kFewest = 8;  // elements along an axis that make tiles worth while

// y's last axis `block` is x's as well; in packs of kSize elements.
template <typename T, int kSize>
__global__ void permute_blocks_kernel(T* y, const T* x, PermuteAxes axes, int64_t places,
                                      int64_t block) {
  const int64_t packs = block / kSize;
  for (int64_t i = first_element(); i < places * packs; i += element_step()) {
    const int64_t place = i / packs, column = (i - place * packs) * kSize;
    const PermuteAxes::Offsets offsets = axes.at(place);
    store_pack(y + offsets.y + column, load_pack<T, kSize>(x + offsets.x + column));
  }
}

// Each element by itself: where an axis is short, the cache serves the strided reads.
template <typename T>
__global__ void permute_elements_kernel(T* y, const T* x, PermuteAxes axes, int64_t count) {
  for (int64_t i = first_element(); i < count; i += element_step()) {
    const PermuteAxes::Offsets offsets = axes.at(i);
    y[offsets.y] = x[offsets.x];
  }
}

// `columns` is dense in y and `rows` in x: tiles of both are turned in shared memory.
template <typename T>
__global__ void permute_tiles_kernel(T* y, const T* x, PermuteAxes axes, int64_t places,
                                     Axis columns, Axis rows) {
  __shared__ T tile[kTile][kTile + 1];  // the odd length keeps columns out of one bank
  const int lane = static_cast<int>(threadIdx.x) % kTile;
  const int first = static_cast<int>(threadIdx.x) / kTile;
  const int64_t across = (columns.size + kTile - 1) / kTile, down = (rows.size + kTile - 1) / kTile;
  for (int64_t unit = blockIdx.x; unit < places * down * across; unit += gridDim.x) {
    const int64_t rest = unit / across, place = rest / down;
    const int64_t column = (unit - rest * across) * kTile, row = (rest - place * down) * kTile;
    const PermuteAxes::Offsets offsets = axes.at(place);
    for (int i = first; i < kTile; i += kTileRows) {
      if (column + i < columns.size && row + lane < rows.size)
        tile[i][lane] = x[offsets.x + (column + i) * columns.x_stride + row + lane];
    }
    __syncthreads();
    for (int i = first; i < kTile; i += kTileRows) {
      if (row + i < rows.size && column + lane < columns.size)
        y[offsets.y + (row + i) * rows.y_stride + column + lane] = tile[lane][i];
    }
    __syncthreads();
  }
}

// Whether the blocks can be copied in packs of `size` elements.
bool fits_packs(const PermuteAxes& axes, int64_t size) {
  for (size_t d = 0; d < axes.count(); ++d) {
    const bool last = d + 1 == axes.count();
    const Axis& axis = axes[d];
    if (last ? axis.size % size != 0 : (axis.y_stride | axis.x_stride) % size != 0) return false;
  }
  return true;
}

template <typename T>
void permute_as(Cuda device, T* y, const T* x, PermuteAxes axes) {
  const int64_t count = axes.places();
  if (axes.back().x_stride == 1) {
    const auto copy_in = [&](auto size) {
      const int64_t block = axes.take_last().size, places = axes.places();
      launch("permute", device, grid_of(places * (block / size)), permute_blocks_kernel<T, size>, y,
             x, axes, places, block);
    };
    constexpr int kSize = kPackSize<T>;
    if (fits_packs(axes, kSize)) return copy_in(std::integral_constant<int, kSize>());
    return copy_in(std::integral_constant<int, 1>());
  }
  PermuteAxes outer = axes;
  const Axis columns = outer.take_last();  // dense in y
  const Axis rows = outer.take_dense();    // dense in x
  if (columns.size < kFewest || rows.size < kFewest)
    return launch("permute", device, grid_of(count), permute_elements_kernel<T>, y, x, axes, count);
  const int64_t across = (columns.size + kTile - 1) / kTile, down = (rows.size + kTile - 1) / kTile;
  const Grid grid = grid_of(outer.places() * across * down * kThreads);
  launch("permute", device, grid, permute_tiles_kernel<T>, y, x, outer, outer.places(), columns,
         rows);
}

}  // namespace

void permute(Cuda device, Array& y, const Array& x, std::span<const int> order) {
  if (y.elements() == 0) return;
  const PermuteAxes axes(y.shape(), x.shape(), order);
  if (axes.count() <= 1) return copy(device, y, x);
  dispatch_element_size(y.dtype(), [&](auto zero) {
    using T = decltype(zero);
    permute_as(device, static_cast<T*>(y.raw()), static_cast<const T*>(x.raw()), axes);
  });
}

}  // namespace gs::backend
