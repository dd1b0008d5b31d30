#include "framework/backend/dropout.h"

#include "framework/backend/cuda/block.cuh"
#include "framework/backend/cuda/map.cuh"

// Bound by memory; ten rounds of two products make the random numbers of four elements.
namespace gs::backend {
namespace {

// y = dropout(x) where `kAdds` is false, else y = x + dropout(branch).
template <typename T, int kSize, bool kAdds>
__device__ void drop_pack(T* y, const T* x, const T* branch, const DropoutMask& mask,
                          int64_t first) {
  const Compute<T> scale = static_cast<Compute<T>>(mask.scale);
  Pack<T, kSize> pack = load_pack<T, kSize>(branch + first), base{};
  if constexpr (kAdds) base = load_pack<T, kSize>(x + first);
#pragma unroll
  for (int start = 0; start < kSize; start += 4) {
    const auto words = mask.stream.words(static_cast<uint64_t>((first + start) / 4));
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      const bool kept = mask.keeps_word(words[static_cast<size_t>(i)]);
      Compute<T> value = kept ? load(pack.values + start + i) * scale : Compute<T>(0);
      if constexpr (kAdds) value += load(base.values + start + i);
      store(pack.values + start + i, value);
    }
  }
  store_pack(y + first, pack);
}

template <typename T, bool kAdds>
__global__ void drop_kernel(T* y, const T* x, const T* branch, DropoutMask mask, int64_t count) {
  constexpr int kSize = std::max(4, kPackSize<T>);  // blocks of words are whole
  const int64_t packs = count / kSize;
  for (int64_t i = first_element(); i < packs; i += element_step())
    drop_pack<T, kSize, kAdds>(y, x, branch, mask, i * kSize);
  const Compute<T> scale = static_cast<Compute<T>>(mask.scale);
  for (int64_t i = packs * kSize + first_element(); i < count; i += element_step()) {
    Compute<T> value = mask.keeps(static_cast<uint64_t>(i)) ? load(branch + i) * scale : 0;
    if constexpr (kAdds) value += load(x + i);
    store(y + i, value);
  }
}

}  // namespace

void dropout(Cuda device, Array& y, const Array& x, const DropoutMask& mask) {
  if (y.elements() == 0) return;
  dispatch_element("dropout", y.dtype(), [&](auto zero) {
    using T = decltype(zero);
    const T* const none = nullptr;
    launch("dropout", device, grid_of(y.elements(), 4), drop_kernel<T, false>, elements_of<T>(y),
           none, elements_of<T>(x), mask, y.elements());
  });
}

void residual(Cuda device, Array& y, const Array& x, const Array& branch, const DropoutMask& mask) {
  if (y.elements() == 0) return;
  dispatch_element("residual", y.dtype(), [&](auto zero) {
    using T = decltype(zero);
    if (mask.threshold == 0) {
      return map("residual", device, y.elements(), elements_of<T>(y), Add(), elements_of<T>(x),
                 elements_of<T>(branch));
    }
    launch("residual", device, grid_of(y.elements(), 4), drop_kernel<T, true>, elements_of<T>(y),
           elements_of<T>(x), elements_of<T>(branch), mask, y.elements());
  });
}

}  // namespace gs::backend
