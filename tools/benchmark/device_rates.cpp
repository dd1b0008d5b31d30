// Rates of the kernels that training spends its time in, each beside the device's limit, as JSON
// lines: device_rates --device cuda; tools/benchmark/device_table.py makes a table of them.
#include "tools/benchmark/device_rates.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <nlohmann/json.hpp>

#include "framework/backend/memory.h"
#include "framework/backend/transfer.h"
#include "framework/core/random.h"
#include "framework/train/device_option.h"
#include "framework/train/program.h"

namespace gs {
namespace {

double seconds_now() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

// The device's work is done in order: once the last of it is read, all of it is done.
void wait(const Array& probe) { probe.to(Device::cpu()); }

}  // namespace

double DeviceRates::time(const std::function<void()>& body) const {
  const Array probe = Array::zeros({1}, kFloat32).to(device_);
  const auto timed = [&](int64_t count) {
    const double start = seconds_now();
    for (int64_t i = 0; i < count; ++i) body();
    wait(probe);
    return seconds_now() - start;
  };
  timed(1);
  constexpr int kBatches = 5;
  const double once = std::max(timed(1), 1e-7);
  const auto count = std::max<int64_t>(1, std::lround(seconds_ / kBatches / once));
  std::vector<double> times;
  for (int i = 0; i < kBatches; ++i) times.push_back(timed(count) / static_cast<double>(count));
  std::sort(times.begin(), times.end());
  return times[kBatches / 2];
}

void DeviceRates::measure(const std::string& kernel, const std::string& shape,
                          const std::string& type, const Work& work,
                          const std::function<std::function<void()>()>& prepare) {
  nlohmann::ordered_json line{
      {"part", "kernel"}, {"kernel", kernel}, {"shape", shape}, {"type", type}};
  try {
    const double seconds = time(prepare());
    const double traffic = work.bytes / limits_.bandwidth;
    const double arithmetic = work.limit > 0 ? work.operations / work.limit : 0;
    line["microseconds"] = std::round(1e9 * seconds) / 1e3;
    line["gigabytes_per_second"] = std::round(work.bytes / seconds / 1e8) / 10;
    if (work.operations > 0) line["tflops"] = std::round(work.operations / seconds / 1e9) / 1e3;
    line["bound"] = traffic > arithmetic ? "memory" : "arithmetic";
    line["share_of_limit"] = std::round(1e4 * std::max(traffic, arithmetic) / seconds) / 1e4;
  } catch (const std::exception& error) {
    line["error"] = error.what();
    failed_ = true;
  }
  std::printf("%s\n", line.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace).c_str());
  std::fflush(stdout);
}

std::vector<DType> DeviceRates::types() const {
  if (device_.kind == Device::Kind::kCuda) return {kFloat32, kBFloat16};
  return {kFloat32};
}

Array DeviceRates::random(const Shape& shape, DType dtype) const {
  constexpr int64_t kDifferent = 1 << 18;  // then they come again
  const RandomStream stream{1, 1};
  const int64_t count = shape.elements(), different = std::min(count, kDifferent);
  std::vector<float> numbers(static_cast<size_t>(different));
  for (int64_t i = 0; i < different; ++i)
    numbers[static_cast<size_t>(i)] =
        2 * unit_float(stream.words(static_cast<uint64_t>(i / 4))[static_cast<size_t>(i % 4)]) - 1;
  std::vector<uint16_t> halves;  // the upper halves of float32 are bfloat16, rounded towards 0
  if (dtype == kBFloat16) {
    for (const float number : numbers) {
      uint32_t bits = 0;
      std::memcpy(&bits, &number, sizeof bits);
      halves.push_back(static_cast<uint16_t>(bits >> 16));
    }
  }
  const void* const from = dtype == kBFloat16 ? static_cast<const void*>(halves.data())
                                              : static_cast<const void*>(numbers.data());
  Array values = Array::empty(shape, dtype, device_);
  const int64_t all = values.bytes(), first = different * size_of(dtype);
  on_device(device_, [&](auto on) {
    backend::copy_from_host(on, values.raw(), from, first);
    char* const data = static_cast<char*>(values.raw());
    for (int64_t done = first; done < all; done *= 2)
      backend::copy_in_order(on, data + done, data, std::min(done, all - done));
  });
  return values;
}

Array DeviceRates::indices(int64_t count, int64_t bound) const {
  const RandomStream stream{1, 2};
  Array values = Array::empty({count}, kInt32);
  for (int64_t i = 0; i < count; ++i)
    values.data<int32_t>()[i] = static_cast<int32_t>(stream.words(static_cast<uint64_t>(i))[0] %
                                                     static_cast<uint64_t>(bound));
  return values.to(device_);
}

namespace {

struct Group {
  const char* name;
  void (*rate)(DeviceRates&);
};
constexpr Group kGroups[] = {
    {"products", rate_products},     {"attention", rate_attention}, {"losses", rate_losses},
    {"elements", rate_elements},     {"rows", rate_rows},           {"embeddings", rate_embeddings},
    {"optimizers", rate_optimizers},
};

int run(int argc, char** argv) {
  DeviceLimits limits;
  DeviceSizes sizes;
  DeviceOption device;
  std::string group = "all";
  double seconds = 0.1;
  std::vector<std::string> names{"all"};
  for (const Group& g : kGroups) names.push_back(g.name);
  Options options("device_rates", "Times the kernels of training beside the limits of a device.");
  device.bind(options);
  options.bind("group", group, "the kernels to time", one_of(names));
  options.bind("tokens", sizes.tokens, "in a batch", at_least(1));
  options.bind("widths", sizes.widths, "of the model, multiples of 16", at_least(16));
  options.bind("vocabulary", sizes.vocabulary, "classes of the loss", at_least(2));
  options.bind("seconds", seconds, "to time each kernel for; 0: five calls", at_least(0));
  options.bind("bandwidth", limits.bandwidth, "limit in bytes/s", above(0));
  options.bind("float32", limits.float32, "limit of float32 in FLOP/s", above(0));
  options.bind("tf32", limits.tf32, "limit of TF32 in FLOP/s", above(0));
  options.bind("bfloat16", limits.bfloat16, "limit of bfloat16 in FLOP/s", above(0));
  if (!options.parse(argc, argv)) return 0;
  for (const int64_t width : sizes.widths)
    check(width % 16 == 0, "--widths: must be multiples of 16, got {}", width);
  DeviceRates rates(device.device(), limits, sizes, seconds);
  for (const Group& g : kGroups) {
    if (group == "all" || group == g.name) g.rate(rates);
  }
  return rates.failed() ? 1 : 0;
}

}  // namespace
}  // namespace gs

int main(int argc, char** argv) { return gs::run_program(argc, argv, gs::run); }
