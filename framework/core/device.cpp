#include "framework/core/device.h"

#include <charconv>

#include "framework/core/error.h"

namespace gs {

Device Device::parse(std::string_view text) {
  if (text == "cpu") return cpu();
  if (text == "cuda") return cuda();
  constexpr std::string_view prefix = "cuda:";
  int index = -1;
  if (text.starts_with(prefix)) {
    const char* end = text.data() + text.size();
    const auto result = std::from_chars(text.data() + prefix.size(), end, index);
    if (result.ec != std::errc() || result.ptr != end) index = -1;
  }
  check(index >= 0, "device: unknown device, got '{}'; use cpu, cuda or cuda:1", text);
  return cuda(index);
}

std::string Device::text() const {
  return kind == Kind::kCpu ? "cpu" : fmt::format("cuda:{}", index);
}

}  // namespace gs
