// Runs CUDA C++ on the CPU, for tests: given to the compiler before each .cu file,
// g++ -x c++ -include emulation.h file.cu, and to nothing else. The real CUDA headers give the
// types and declare the runtime; this folder defines it. The blocks of a grid run one after the
// other; the threads of a block are fibers of one system thread that switch at barriers and warp
// collectives alone. README.md here says what is found in which mode, and what can't be.
#pragma once
#define GS_CUDA_EMULATION 1
#include <cuda_runtime.h>

#include <cstddef>
#include <functional>
#include <tuple>
#include <type_traits>
#include <utility>

#include "tests/cuda_emulation/place.h"

// Static shared memory is a static variable: blocks run one after the other. With clang all of it
// lies in one section, which is filled with NaN before each block; g++ 12 ignores the section of
// variables in templates.
#undef __shared__
#if defined(__clang__)
#define __shared__ static __attribute__((section("gs_cuda_shared")))
#else
#define __shared__ static
#endif
#undef __constant__
#define __constant__

// Leaves the bound in the program: as many nops, a byte a warp, at the begin of the kernel, whose
// address is kept in a section. clang takes no template parameter there.
#undef __launch_bounds__
#if defined(__clang__)
#define __launch_bounds__(...)
#else
#define __launch_bounds__(threads, ...) \
  __attribute__((patchable_function_entry(((threads) + 31) / 32)))
#endif

namespace gs::cuda_emulation {

// Where the running thread stands in its grid.
struct Coordinates {
  uint3 thread, block;
  dim3 block_size, grid_size;
};
extern Coordinates coordinates;

void* dynamic_shared_memory();

// Queues the grid on its stream if the hardware would take it.
cudaError_t launch(const char* kernel_name, const void* kernel, const cudaLaunchConfig_t& config,
                   std::function<void()> thread);

// Stops the program if the pointer is not null and points to no device memory.
void check_device_pointer(const void* pointer, const char* user, int argument);

// What cudaLaunchKernelEx does: arguments are converted to the parameters' types and copied.
template <typename... Parameters, typename... Arguments>
cudaError_t launch_kernel(const cudaLaunchConfig_t* config, void (*kernel)(Parameters...),
                          Arguments&&... arguments) {
  const char* const name = __PRETTY_FUNCTION__;
  std::tuple<std::decay_t<Parameters>...> values(
      static_cast<std::decay_t<Parameters>>(std::forward<Arguments>(arguments))...);
  int index = 0;
  const auto check = [&](const auto& value) {
    if constexpr (std::is_pointer_v<std::remove_cvref_t<decltype(value)>>)
      check_device_pointer(reinterpret_cast<const void*>(value), name, index);
    ++index;
  };
  std::apply([&](const auto&... each) { (check(each), ...); }, values);
  return launch(name, reinterpret_cast<const void*>(kernel), *config,
                [kernel, values] { std::apply([&](auto... each) { kernel(each...); }, values); });
}

}  // namespace gs::cuda_emulation

// Objects, not macros: cudaLaunchConfig_t has members of the same names.
inline constexpr const uint3& threadIdx = gs::cuda_emulation::coordinates.thread;
inline constexpr const uint3& blockIdx = gs::cuda_emulation::coordinates.block;
inline constexpr const dim3& blockDim = gs::cuda_emulation::coordinates.block_size;
inline constexpr const dim3& gridDim = gs::cuda_emulation::coordinates.grid_size;
inline constexpr int warpSize = 32;

#define cudaLaunchKernelEx ::gs::cuda_emulation::launch_kernel
#define GS_DYNAMIC_SHARED(type, name) \
  type* const name = static_cast<type*>(::gs::cuda_emulation::dynamic_shared_memory())

// What nvcc's headers give as a template over the kernel's type.
template <typename... Parameters>
cudaError_t cudaFuncSetAttribute(void (*kernel)(Parameters...), cudaFuncAttribute attribute,
                                 int value) {
  return ::cudaFuncSetAttribute(reinterpret_cast<const void*>(kernel), attribute, value);
}

#include "tests/cuda_emulation/atomics.h"
#include "tests/cuda_emulation/collectives.h"
#include "tests/cuda_emulation/device_math.h"
#include "tests/cuda_emulation/tensor_core.h"
