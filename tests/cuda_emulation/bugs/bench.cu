#include "tests/cuda_emulation/bugs/bench.h"

namespace gs::cuda_emulation {

void check_call(cudaError_t status, const char* call) {
  check(status == cudaSuccess, "{}: error {}, {}", call, static_cast<int>(status),
        cudaGetErrorString(status));
}

Bench::Bench() {
  for (int row = 0; row < kRows; ++row) {
    for (int column = 0; column < kWidth; ++column)
      host_x[static_cast<size_t>(row * kWidth + column)] = static_cast<float>(row + column);
  }
  const size_t bytes = host_x.size() * sizeof(float), row_bytes = kWidth * sizeof(float);
  check_call(cudaMalloc(&x, bytes), "cudaMalloc");
  check_call(cudaMalloc(&y, row_bytes), "cudaMalloc");
  check_call(cudaMemcpy(x, host_x.data(), bytes, cudaMemcpyHostToDevice), "cudaMemcpy");
  check_call(cudaMemset(y, 0, row_bytes), "cudaMemset");
  check_call(cudaDeviceSynchronize(), "cudaDeviceSynchronize");
  check_call(cudaStreamCreateWithFlags(&first, cudaStreamNonBlocking), "cudaStreamCreate");
  check_call(cudaStreamCreateWithFlags(&second, cudaStreamNonBlocking), "cudaStreamCreate");
}

Bench::~Bench() {
  cudaStreamDestroy(first);
  cudaStreamDestroy(second);
  cudaFree(x);
  cudaFree(y);
}

std::vector<float> Bench::reversed_sums() const {
  std::vector<float> sums(kWidth, 0.0f);
  for (size_t i = 0; i < kWidth; ++i) {
    for (size_t row = 0; row < kRows; ++row) sums[i] += host_x[row * kWidth + kWidth - 1 - i];
  }
  return sums;
}

std::vector<Bug> all_bugs() {
  std::vector<Bug> all;
  for (const auto& some :
       {shared_memory_bugs(), collective_bugs(), global_memory_bugs(), stream_bugs(), call_bugs()})
    all.insert(all.end(), some.begin(), some.end());
  return all;
}

}  // namespace gs::cuda_emulation
