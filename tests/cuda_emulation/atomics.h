// Atomic functions of kernels under their CUDA names. Compare-and-swap, though only one thread runs
// at a time, so that ThreadSanitizer takes them for atomic.
#pragma once

#include <cstdint>
#include <type_traits>

namespace gs::cuda_emulation {

template <typename To, typename From>
To bits_as(From value) {
  To result{};
  __builtin_memcpy(&result, &value, sizeof(To) < sizeof(From) ? sizeof(To) : sizeof(From));
  return result;
}

template <typename T, typename Next>
T atomic_update(T* place, Next next) {
  static_assert(sizeof(T) == 2 || sizeof(T) == 4 || sizeof(T) == 8);
  using Word = std::conditional_t<sizeof(T) == 8, uint64_t,
                                  std::conditional_t<sizeof(T) == 4, uint32_t, uint16_t>>;
  Word* const word = reinterpret_cast<Word*>(place);
  Word old = __atomic_load_n(word, __ATOMIC_RELAXED);
  while (!__atomic_compare_exchange_n(word, &old, bits_as<Word>(T(next(bits_as<T>(old)))), false,
                                      __ATOMIC_RELAXED, __ATOMIC_RELAXED)) {
  }
  return bits_as<T>(old);
}

}  // namespace gs::cuda_emulation

template <typename T>
T atomicAdd(T* place, T value) {
  return gs::cuda_emulation::atomic_update(place,
                                           [value](T old) { return static_cast<T>(old + value); });
}
template <typename T>
T atomicMin(T* place, T value) {
  return gs::cuda_emulation::atomic_update(place,
                                           [value](T old) { return value < old ? value : old; });
}
