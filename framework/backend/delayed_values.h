#pragma once

#include <deque>
#include <memory>
#include <optional>
#include <vector>

#include "framework/backend/array.h"
#include "framework/backend/transfer.h"

namespace gs {

// Reads a few numbers of each step back from a device without waiting for it: they are had, exactly
// those of that step, when they have arrived.
class DelayedValues {
 public:
  // For at most `most` readings that are under way.
  DelayedValues(Device device, int64_t values, int64_t most);

  // Reads float64 `values` as they are at this point of the device's work. Full, it is an error.
  void push(const Array& values);
  // The oldest reading, if it has arrived.
  std::optional<std::vector<double>> pop();
  // The oldest reading; waits for it.
  std::vector<double> wait();

  int64_t pending() const { return static_cast<int64_t>(readings_.size()); }
  bool full() const { return pending() == most_; }

 private:
  struct Reading {
    const double* place;
    backend::Mark arrived;
  };

  Device device_;
  int64_t values_, most_;
  int64_t next_ = 0;  // place in the ring
  std::shared_ptr<void> ring_;
  std::deque<Reading> readings_;
};

}  // namespace gs
