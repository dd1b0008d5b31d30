#pragma once

#include <string>
#include <utility>
#include <vector>

#include "framework/core/error.h"
#include "tests/cuda_emulation/emulation.h"

namespace gs::cuda_emulation {

// Device memory and streams for one small program.
struct Bench {
  static constexpr int kRows = 4, kWidth = 128;

  std::vector<float> host_x = std::vector<float>(kRows * kWidth);  // row + column
  float* x = nullptr;                                              // in device memory, the same
  float* y = nullptr;                                              // kWidth zeros in device memory
  cudaStream_t first = nullptr, second = nullptr;

  Bench();
  ~Bench();
  Bench(const Bench&) = delete;
  Bench& operator=(const Bench&) = delete;

  // Sums of x over its rows, columns from the last to the first.
  std::vector<float> reversed_sums() const;
};

// Throws Error where the runtime reports one.
void check_call(cudaError_t status, const char* call);

template <typename... Parameters, typename... Arguments>
void start(void (*kernel)(Parameters...), unsigned blocks, unsigned threads, size_t shared_bytes,
           cudaStream_t stream, Arguments&&... arguments) {
  cudaLaunchConfig_t config{};
  config.gridDim = dim3(blocks);
  config.blockDim = dim3(threads);
  config.dynamicSmemBytes = shared_bytes;
  config.stream = stream;
  check_call(launch_kernel(&config, kernel, std::forward<Arguments>(arguments)...), "launch");
}

// A planted bug. It computes y and returns what should stand there; nothing where there is nothing
// to compare.
struct Bug {
  const char* name;
  const char* what;
  std::vector<float> (*run)(Bench& bench);
};
std::vector<Bug> sound_programs();  // without a bug: nothing may be found in any mode
std::vector<Bug> shared_memory_bugs();
std::vector<Bug> collective_bugs();
std::vector<Bug> global_memory_bugs();
std::vector<Bug> stream_bugs();
std::vector<Bug> call_bugs();
std::vector<Bug> all_bugs();

}  // namespace gs::cuda_emulation
