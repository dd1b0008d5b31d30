#pragma once

#include <cstddef>
#include <utility>
#include <vector>

#include "tests/cuda_emulation/bugs/bench.h"

namespace gs::cuda_emulation {

// Values in device memory, for as long as it lives.
template <typename T>
class DeviceArray {
 public:
  explicit DeviceArray(size_t count) : count_(count) {
    check_call(cudaMalloc(&data_, count * sizeof(T)), "cudaMalloc");
  }
  explicit DeviceArray(const std::vector<T>& values) : DeviceArray(values.size()) {
    check_call(cudaMemcpy(data_, values.data(), count_ * sizeof(T), cudaMemcpyHostToDevice),
               "cudaMemcpy");
  }
  ~DeviceArray() { cudaFree(data_); }
  DeviceArray(const DeviceArray&) = delete;
  DeviceArray& operator=(const DeviceArray&) = delete;

  T* data() const { return data_; }
  std::vector<T> values() const {
    std::vector<T> values(count_);
    check_call(cudaDeviceSynchronize(), "cudaDeviceSynchronize");
    check_call(cudaMemcpy(values.data(), data_, count_ * sizeof(T), cudaMemcpyDeviceToHost),
               "cudaMemcpy");
    return values;
  }

 private:
  T* data_ = nullptr;
  size_t count_;
};

}  // namespace gs::cuda_emulation
