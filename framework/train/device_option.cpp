#include "framework/train/device_option.h"

#include "framework/backend/device_title.h"
#include "framework/core/parallel.h"

namespace gs {

void DeviceOption::bind(Options& options) {
  options.bind("device", text_,
               "where to compute: cpu, cuda, cuda:1, ..., or auto, a CUDA device where one can be "
               "used and else the CPU");
  options.leave_out({"device"});
}

Device DeviceOption::device() const {
  const int count = cuda_device_count();
  if (text_ == "auto") return count > 0 ? Device::cuda() : Device::cpu();
  Device device;
  try {
    device = Device::parse(text_);
  } catch (const Error&) {
    fail("--device: must be auto, cpu, cuda or cuda:1, 2, ..., got '{}'", text_);
  }
  if (device == Device::cpu()) return device;
  check(kWithCuda,
        "--device: {} is wanted, and this build has no CUDA; use cpu, or build with "
        "-DGS_WITH_CUDA=ON",
        text_);
  if constexpr (kWithCuda) {
    if (count == 0)
      fail("--device: {} is wanted, and {}", text_, backend::no_device_reason(Cuda{device.index}));
  }
  check(device.index < count,
        "--device: {} is wanted, and the visible CUDA devices are cuda:0 to cuda:{}; use one of "
        "them",
        text_, count - 1);
  return device;
}

std::string device_title(Device device) {
  const std::string title = on_device(device, [](auto on) { return backend::device_title(on); });
  return device == Device::cpu() ? fmt::format("{} threads; {}", threads(), title)
                                 : fmt::format("{}, {}", device, title);
}

}  // namespace gs
