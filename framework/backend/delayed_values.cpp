#include "framework/backend/delayed_values.h"

namespace gs {

DelayedValues::DelayedValues(Device device, int64_t values, int64_t most)
    : device_(device), values_(values), most_(most) {
  check(values >= 1 && most >= 1,
        "delayed values: needs at least 1 value and 1 reading, got {} and {}", values, most);
  const int64_t bytes = values * most * int64_t{sizeof(double)};
  ring_ = on_device(device, [&](auto on) { return backend::new_pinned_memory(on, bytes); });
}

void DelayedValues::push(const Array& values) {
  check(values.elements() == values_ && values.device() == device_,
        "delayed values: needs {} values on {}, got {} on {}", values_, device_, values.elements(),
        values.device());
  check(!full(), "delayed values: {} readings are under way, got one more; take some out", most_);
  double* const place = static_cast<double*>(ring_.get()) + next_ * values_;
  const double* const from = values.data<double>();
  Reading reading{place, nullptr};
  on_device(device_, [&](auto on) {
    backend::copy_in_order(on, place, from, values.bytes());
    reading.arrived = backend::mark(on);
  });
  readings_.push_back(std::move(reading));
  next_ = (next_ + 1) % most_;
}

std::optional<std::vector<double>> DelayedValues::pop() {
  if (readings_.empty()) return std::nullopt;
  const bool arrived =
      on_device(device_, [&](auto on) { return backend::reached(on, readings_.front().arrived); });
  if (!arrived) return std::nullopt;
  return wait();
}

std::vector<double> DelayedValues::wait() {
  check(!readings_.empty(), "delayed values: nothing is under way; push something first");
  const Reading reading = readings_.front();
  on_device(device_, [&](auto on) { backend::wait_for(on, reading.arrived); });
  readings_.pop_front();
  return {reading.place, reading.place + values_};
}

}  // namespace gs
