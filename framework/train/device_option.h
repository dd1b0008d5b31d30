#pragma once

#include <string>

#include "framework/core/device.h"
#include "framework/train/options.h"

namespace gs {

// The option --device of programs that compute. It belongs to one call: what was trained on one
// device goes on, or is used, on any other.
class DeviceOption {
 public:
  // `options` must not outlive it.
  void bind(Options& options);

  // The device that was chosen: auto is the first CUDA device where one can be used, else the CPU.
  // One that the build or the machine does not have is refused, with the way out.
  Device device() const;

 private:
  std::string text_ = "auto";
};

// What computes there, for the first lines of a program: "cuda:0, NVIDIA H200", or on the CPU the
// number of threads and compute_title().
std::string device_title(Device device);

}  // namespace gs
