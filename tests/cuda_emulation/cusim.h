// cusim: runs CUDA C++ kernels on the CPU, for tests. Include it first (g++ -x c++ -include cusim.h
// file.cu). The blocks of a grid run one after another; the threads of a block are fibers of one OS
// thread that switch at __syncthreads(), at warp collectives and nowhere else. The real CUDA
// headers give the types and the runtime API's declarations; cusim_exec.cpp, cusim_runtime.cpp and
// cusim_blas.cpp give its definitions.
#pragma once
#define GS_CUDA_EMULATION 1
#include <cuda_runtime.h>

#include <bit>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <functional>
#include <memory>
#include <tuple>
#include <type_traits>
#include <utility>

// Function-local `static` arrays stand for __shared__ memory. With clang they also go to one
// section, which the executor fills with NaN before each block; g++ 12 puts section attributes of
// template statics elsewhere.
#undef __shared__
#if defined(__clang__) && !defined(CUSIM_PLAIN_SHARED)
#define __shared__ static __attribute__((section("cusim_shared")))
#else
#define __shared__ static
#endif
#undef __constant__
#define __constant__
#ifndef __launch_bounds__
#define __launch_bounds__(...)
#endif

namespace cusim {

struct Thread;  // One logical CUDA thread; defined in the executor.
struct Ids {
  uint3 thread;
  uint3 block;
  dim3 block_dim;
  dim3 grid_dim;
};
extern Ids ids;  // Of the running logical thread.

// Source position of a collective, for messages.
struct At {
  const char* file;
  int line;
};
#define CUSIM_AT const char *file = __builtin_FILE(), int line = __builtin_LINE()

void block_barrier(At at);
int block_barrier_reduce(At at, int value, int op);  // op: 0 count, 1 and, 2 or.
void warp_barrier(uint32_t mask, At at);
enum class Shfl { kIdx, kUp, kDown, kXor };
uint64_t warp_shuffle(uint32_t mask, uint64_t bits, Shfl mode, int arg, int width, At at);
uint32_t warp_ballot(uint32_t mask, bool predicate, At at);
// Every lane gives `bytes` bytes, a multiple of 4 up to 32, and gets those of the 32 lanes (of
// which `mask` count).
void warp_gather(uint32_t mask, const void* value, size_t bytes, void* all, At at);
uint32_t lane_id();
uint32_t warp_active();
void fence();
void* dynamic_shared();
size_t dynamic_shared_bytes();
// cp.async: poison at the start, the copy at the wait that must precede its use.
void async_copy(void* dst, const void* src, size_t bytes, size_t src_bytes);
void async_commit();
void async_wait(int pending);

// A launch: checks the configuration, then queues or runs the grid.
cudaError_t launch(const char* name, const void* func, dim3 grid, dim3 block, size_t shared_bytes,
                   cudaStream_t stream, std::function<void()> body);
// Complains if p isn't null and isn't inside a device allocation.
void check_device_pointer(const void* p, const char* kernel, int arg);

template <class... P, class... A>
cudaError_t launch_kernel(const cudaLaunchConfig_t* config, void (*kernel)(P...), A&&... args) {
  std::tuple<std::decay_t<P>...> packed(static_cast<std::decay_t<P>>(std::forward<A>(args))...);
  int index = 0;
  std::apply(
      [&](auto&... a) {
        auto check = [&](auto& v) {
          if constexpr (std::is_pointer_v<std::remove_cvref_t<decltype(v)>>) {
            check_device_pointer(reinterpret_cast<const void*>(v), __PRETTY_FUNCTION__, index);
          }
          ++index;
        };
        (check(a), ...);
      },
      packed);
  return launch(__PRETTY_FUNCTION__, reinterpret_cast<const void*>(kernel), config->gridDim,
                config->blockDim, config->dynamicSmemBytes, config->stream,
                [kernel, packed] { std::apply([&](auto... a) { kernel(a...); }, packed); });
}

template <class T>
uint64_t to_bits(T v) {
  static_assert(sizeof(T) <= 8 && std::is_trivially_copyable_v<T>);
  uint64_t bits = 0;
  __builtin_memcpy(&bits, &v, sizeof(T));
  return bits;
}
template <class T>
T from_bits(uint64_t bits) {
  T v;
  __builtin_memcpy(&v, &bits, sizeof(T));
  return v;
}

// Atomic read-modify-write by compare-and-swap, so that ThreadSanitizer sees an atomic access.
template <class T, class F>
T atomic_update(T* p, F next) {
  using U = std::conditional_t<sizeof(T) == 8, uint64_t,
                               std::conditional_t<sizeof(T) == 4, uint32_t, uint16_t>>;
  U* u = reinterpret_cast<U*>(p);
  U old = __atomic_load_n(u, __ATOMIC_RELAXED);
  for (;;) {
    U want = static_cast<U>(to_bits<T>(next(from_bits<T>(old))));
    if (__atomic_compare_exchange_n(u, &old, want, false, __ATOMIC_RELAXED, __ATOMIC_RELAXED)) {
      return from_bits<T>(old);
    }
  }
}

}  // namespace cusim

// Names of parts of one object, not macros: cudaLaunchConfig_t has members of the same names.
inline constexpr const uint3& threadIdx = cusim::ids.thread;
inline constexpr const uint3& blockIdx = cusim::ids.block;
inline constexpr const dim3& blockDim = cusim::ids.block_dim;
inline constexpr const dim3& gridDim = cusim::ids.grid_dim;
inline constexpr int warpSize = 32;

template <class... P>
cudaError_t cudaFuncSetAttribute(void (*kernel)(P...), cudaFuncAttribute a, int v) {
  return ::cudaFuncSetAttribute(reinterpret_cast<const void*>(kernel), a, v);
}
#define cudaLaunchKernelEx ::cusim::launch_kernel
#define GS_DYNAMIC_SHARED(type, name) \
  type* const name = static_cast<type*>(::cusim::dynamic_shared())

inline void __syncthreads(CUSIM_AT) { cusim::block_barrier({file, line}); }
inline int __syncthreads_count(int p, CUSIM_AT) {
  return cusim::block_barrier_reduce({file, line}, p != 0, 0);
}
inline int __syncthreads_and(int p, CUSIM_AT) {
  return cusim::block_barrier_reduce({file, line}, p != 0, 1);
}
inline int __syncthreads_or(int p, CUSIM_AT) {
  return cusim::block_barrier_reduce({file, line}, p != 0, 2);
}
inline void __syncwarp(unsigned mask = 0xffffffffu, CUSIM_AT) {
  cusim::warp_barrier(mask, {file, line});
}
inline void __threadfence() { cusim::fence(); }
inline void __threadfence_block() { cusim::fence(); }
inline unsigned __activemask() { return cusim::warp_active(); }
inline unsigned __ballot_sync(unsigned m, int p, CUSIM_AT) {
  return cusim::warp_ballot(m, p != 0, {file, line});
}
inline int __any_sync(unsigned m, int p, CUSIM_AT) {
  return cusim::warp_ballot(m, p != 0, {file, line}) != 0;
}
inline int __all_sync(unsigned m, int p, CUSIM_AT) {
  return cusim::warp_ballot(m, p == 0, {file, line}) == 0;
}
#define CUSIM_SHUFFLE(NAME, MODE, ARG)                                                           \
  template <class T>                                                                             \
  T NAME(unsigned mask, T v, ARG arg, int width = 32, CUSIM_AT) {                                \
    return cusim::from_bits<T>(cusim::warp_shuffle(mask, cusim::to_bits(v), cusim::Shfl::MODE,   \
                                                   static_cast<int>(arg), width, {file, line})); \
  }
CUSIM_SHUFFLE(__shfl_sync, kIdx, int)
CUSIM_SHUFFLE(__shfl_up_sync, kUp, unsigned)
CUSIM_SHUFFLE(__shfl_down_sync, kDown, unsigned)
CUSIM_SHUFFLE(__shfl_xor_sync, kXor, int)
#undef CUSIM_SHUFFLE
#define CUSIM_REDUCE(NAME, TYPE, EXPR)                         \
  inline TYPE NAME(unsigned mask, TYPE v, CUSIM_AT) {          \
    TYPE all[32], r{};                                         \
    cusim::warp_gather(mask, &v, sizeof v, all, {file, line}); \
    bool first = true;                                         \
    for (int i = 0; i < 32; ++i) {                             \
      if (mask >> i & 1u) {                                    \
        TYPE x = all[i];                                       \
        r = first ? x : (EXPR);                                \
        first = false;                                         \
      }                                                        \
    }                                                          \
    return r;                                                  \
  }
CUSIM_REDUCE(__reduce_add_sync, unsigned, r + x)
CUSIM_REDUCE(__reduce_add_sync, int, r + x)
CUSIM_REDUCE(__reduce_max_sync, int, r > x ? r : x)
CUSIM_REDUCE(__reduce_min_sync, int, r < x ? r : x)
#undef CUSIM_REDUCE

template <class T>
T atomicAdd(T* p, T v) {
  return cusim::atomic_update(p, [v](T o) { return static_cast<T>(o + v); });
}
template <class T>
T atomicSub(T* p, T v) {
  return cusim::atomic_update(p, [v](T o) { return static_cast<T>(o - v); });
}
template <class T>
T atomicMax(T* p, T v) {
  return cusim::atomic_update(p, [v](T o) { return o < v ? v : o; });
}
template <class T>
T atomicMin(T* p, T v) {
  return cusim::atomic_update(p, [v](T o) { return v < o ? v : o; });
}
template <class T>
T atomicExch(T* p, T v) {
  return cusim::atomic_update(p, [v](T) { return v; });
}
template <class T>
T atomicOr(T* p, T v) {
  return cusim::atomic_update(p, [v](T o) { return o | v; });
}
template <class T>
T atomicAnd(T* p, T v) {
  return cusim::atomic_update(p, [v](T o) { return o & v; });
}
template <class T>
T atomicCAS(T* p, T c, T v) {
  return cusim::atomic_update(p, [c, v](T o) { return o == c ? v : o; });
}
inline unsigned atomicInc(unsigned* p, unsigned l) {
  return cusim::atomic_update(p, [l](unsigned o) { return o >= l ? 0u : o + 1; });
}

template <class T>
T __ldg(const T* p) {
  return *p;
}
template <class T>
T __ldcs(const T* p) {
  return *p;
}
template <class T>
T __ldcg(const T* p) {
  return *p;
}
template <class T>
void __stcs(T* p, T v) {
  *p = v;
}
inline float rsqrtf(float x) { return 1.0f / std::sqrt(x); }
inline double rsqrt(double x) { return 1.0 / std::sqrt(x); }
#define __expf(x) ::expf(x)
#define __logf(x) ::logf(x)
#define __log2f(x) ::log2f(x)
#define __sinf(x) ::sinf(x)
#define __cosf(x) ::cosf(x)
#define __powf(x, y) ::powf(x, y)
#define __fdividef(x, y) ((x) / (y))
#define __frcp_rn(x) (1.0f / (x))
#define __fsqrt_rn(x) ::sqrtf(x)
inline float __fmaf_rn(float a, float b, float c) { return std::fma(a, b, c); }
inline float __saturatef(float x) { return x < 0 ? 0 : x > 1 ? 1 : x; }
inline int __float_as_int(float x) { return std::bit_cast<int>(x); }
inline unsigned __float_as_uint(float x) { return std::bit_cast<unsigned>(x); }
inline float __int_as_float(int x) { return std::bit_cast<float>(x); }
inline float __uint_as_float(unsigned x) { return std::bit_cast<float>(x); }
inline unsigned __umulhi(unsigned a, unsigned b) {
  return static_cast<unsigned>((uint64_t{a} * b) >> 32);
}
inline int __popc(unsigned x) { return std::popcount(x); }
inline int __clz(int x) { return std::countl_zero(static_cast<unsigned>(x)); }
inline int __ffs(int x) { return __builtin_ffs(x); }
inline int min(int a, int b) { return a < b ? a : b; }
inline int max(int a, int b) { return a > b ? a : b; }
inline unsigned min(unsigned a, unsigned b) { return a < b ? a : b; }
inline unsigned max(unsigned a, unsigned b) { return a > b ? a : b; }
inline float min(float a, float b) { return fminf(a, b); }
inline float max(float a, float b) { return fmaxf(a, b); }
inline long long clock64() { return 0; }
[[noreturn]] inline void __trap() { __builtin_trap(); }
