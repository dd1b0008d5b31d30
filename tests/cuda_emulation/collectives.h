// Barriers, shuffles, votes and reductions of kernels under their CUDA names.
#pragma once

#include <cstdint>
#include <type_traits>

#include "tests/cuda_emulation/place.h"

namespace gs::cuda_emulation {

void block_barrier(Place place);
bool block_any(bool value, Place place);

enum class Shuffle { kIndex, kUp, kDown, kXor };
void warp_barrier(uint32_t mask, Place place);
uint64_t warp_shuffle(uint32_t mask, uint64_t bits, Shuffle kind, int argument, int width,
                      Place place);
uint32_t warp_ballot(uint32_t mask, bool predicate, Place place);
// Each lane gives `bytes` bytes, a multiple of 4 up to 32, and gets those of all 32 lanes; those
// of lanes outside the mask mean nothing.
void warp_gather(uint32_t mask, const void* value, size_t bytes, void* all, Place place);
uint32_t lane();

template <typename T>
T shuffle(uint32_t mask, T value, Shuffle kind, int argument, int width, Place place) {
  static_assert(sizeof(T) <= 8 && std::is_trivially_copyable_v<T>);
  uint64_t bits = 0;
  __builtin_memcpy(&bits, &value, sizeof(T));
  bits = warp_shuffle(mask, bits, kind, argument, width, place);
  __builtin_memcpy(&value, &bits, sizeof(T));
  return value;
}

}  // namespace gs::cuda_emulation

inline void __syncthreads(gs::cuda_emulation::Place place = gs::cuda_emulation::here()) {
  gs::cuda_emulation::block_barrier(place);
}
inline int __syncthreads_or(int predicate,
                            gs::cuda_emulation::Place place = gs::cuda_emulation::here()) {
  return gs::cuda_emulation::block_any(predicate != 0, place);
}
inline void __syncwarp(unsigned mask = 0xffffffffu,
                       gs::cuda_emulation::Place place = gs::cuda_emulation::here()) {
  gs::cuda_emulation::warp_barrier(mask, place);
}
inline unsigned __ballot_sync(unsigned mask, int predicate,
                              gs::cuda_emulation::Place place = gs::cuda_emulation::here()) {
  return gs::cuda_emulation::warp_ballot(mask, predicate != 0, place);
}
inline int __any_sync(unsigned mask, int predicate,
                      gs::cuda_emulation::Place place = gs::cuda_emulation::here()) {
  return gs::cuda_emulation::warp_ballot(mask, predicate != 0, place) != 0;
}
// The lanes of the mask that give the same value.
template <typename T>
unsigned __match_any_sync(unsigned mask, T value,
                          gs::cuda_emulation::Place place = gs::cuda_emulation::here()) {
  T all[32];
  gs::cuda_emulation::warp_gather(mask, &value, sizeof(T), all, place);
  unsigned same = 0;
  for (unsigned i = 0; i < 32; ++i) {
    if ((mask >> i & 1u) != 0 && all[i] == value) same |= 1u << i;
  }
  return same;
}

template <typename T>
T __shfl_sync(unsigned mask, T value, int source, int width = 32,
              gs::cuda_emulation::Place place = gs::cuda_emulation::here()) {
  return gs::cuda_emulation::shuffle(mask, value, gs::cuda_emulation::Shuffle::kIndex, source,
                                     width, place);
}
template <typename T>
T __shfl_up_sync(unsigned mask, T value, unsigned distance, int width = 32,
                 gs::cuda_emulation::Place place = gs::cuda_emulation::here()) {
  return gs::cuda_emulation::shuffle(mask, value, gs::cuda_emulation::Shuffle::kUp,
                                     static_cast<int>(distance), width, place);
}
template <typename T>
T __shfl_down_sync(unsigned mask, T value, unsigned distance, int width = 32,
                   gs::cuda_emulation::Place place = gs::cuda_emulation::here()) {
  return gs::cuda_emulation::shuffle(mask, value, gs::cuda_emulation::Shuffle::kDown,
                                     static_cast<int>(distance), width, place);
}
template <typename T>
T __shfl_xor_sync(unsigned mask, T value, int lanes, int width = 32,
                  gs::cuda_emulation::Place place = gs::cuda_emulation::here()) {
  return gs::cuda_emulation::shuffle(mask, value, gs::cuda_emulation::Shuffle::kXor, lanes, width,
                                     place);
}
