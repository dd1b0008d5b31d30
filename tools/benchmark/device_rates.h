#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "framework/backend/array.h"
#include "framework/core/device.h"

namespace gs {

// What the device can do at most, in bytes and operations a second: the defaults are those of an
// H200, the copy and the bfloat16 products as measured, the others by its data sheet.
struct DeviceLimits {
  double bandwidth = 4.3e12;
  double float32 = 67e12, tf32 = 494e12, bfloat16 = 788e12;
};

// Sizes of a model and of its batch.
struct DeviceSizes {
  int64_t tokens = 25000, vocabulary = 32768;
  std::vector<int64_t> widths = {512, 1024};
};

// Times kernels one after another and prints a JSON line for each: its time, and the share that
// the time at the limit, of its traffic or its operations, whichever takes longer, has of it. A
// kernel that throws has a line with the error, and the next comes.
class DeviceRates {
 public:
  DeviceRates(Device device, DeviceLimits limits, DeviceSizes sizes, double seconds)
      : device_(device), limits_(limits), sizes_(std::move(sizes)), seconds_(seconds) {}

  // Every array read or written once, and the operations at their limit.
  struct Work {
    double bytes = 0, operations = 0, limit = 0;
  };
  // `prepare` makes the arrays and gives what is timed.
  void measure(const std::string& kernel, const std::string& shape, const std::string& type,
               const Work& work, const std::function<std::function<void()>()>& prepare);

  Device device() const { return device_; }
  const DeviceLimits& limits() const { return limits_; }
  const DeviceSizes& sizes() const { return sizes_; }
  bool failed() const { return failed_; }
  // What training computes in there: float32, and bfloat16 on CUDA devices.
  std::vector<DType> types() const;

  // Numbers in [-1, 1), float32 or bfloat16, and int32 numbers in [0, bound), on the device.
  Array random(const Shape& shape, DType dtype = kFloat32) const;
  Array indices(int64_t count, int64_t bound) const;
  Array empty(const Shape& shape, DType dtype = kFloat32) const {
    return Array::empty(shape, dtype, device_);
  }

 private:
  // Seconds of one call.
  double time(const std::function<void()>& body) const;

  Device device_;
  DeviceLimits limits_;
  DeviceSizes sizes_;
  double seconds_;  // to measure for
  bool failed_ = false;
};

// The groups of kernels; an error of the device ends what can be measured in a process.
void rate_products(DeviceRates& rates);
void rate_attention(DeviceRates& rates);
void rate_losses(DeviceRates& rates);
void rate_elements(DeviceRates& rates);
void rate_rows(DeviceRates& rates);
void rate_embeddings(DeviceRates& rates);
void rate_optimizers(DeviceRates& rates);

}  // namespace gs
