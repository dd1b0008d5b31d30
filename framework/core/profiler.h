#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <string>
#include <vector>

namespace gs {

// The direction that time is spent in: forward or backward through operations, or in the rest of a
// program (optimizers, batches, files).
enum class Phase : uint8_t { kForward, kBackward, kOther };

// Measures the time from here to the end of its scope as one call of the operation `name`, which
// must outlive it. What is called in a backward function counts as backward. While profiling is
// off, this is one load and one branch. For any thread.
class OperationTimer {
 public:
  explicit OperationTimer(const char* name, Phase phase = Phase::kForward) {
    if (active_session.load(std::memory_order_relaxed) != 0) [[unlikely]]
      begin(name, phase);
  }
  ~OperationTimer() {
    if (session_ != 0) [[unlikely]]
      end();
  }
  OperationTimer(const OperationTimer&) = delete;
  OperationTimer& operator=(const OperationTimer&) = delete;

 private:
  friend class Profiler;
  void begin(const char* name, Phase phase);
  void end() noexcept;

  static std::atomic<uint32_t> active_session;  // 0 while profiling is off

  uint32_t session_ = 0;  // 0 where nothing is measured
  uint32_t operation_;
  Phase phase_;
  int64_t start_, inside_;  // nanoseconds; inside_: spent in operations that this one has called
  OperationTimer* outer_;
};

// What was measured. Times are nanoseconds. `self` is without the operations called inside, so
// that it adds up; `total` is with them. Scopes that are still open are not counted.
struct Profile {
  struct Cost {
    int64_t calls = 0, self = 0, total = 0;
  };
  struct Operation {
    std::string name;
    std::array<Cost, 3> costs = {};
    const Cost& operator[](Phase phase) const { return costs[static_cast<size_t>(phase)]; }
    int64_t self() const { return costs[0].self + costs[1].self + costs[2].self; }
  };
  struct Event {
    int64_t start, duration;
    uint32_t operation, thread;
    Phase phase;
  };

  int64_t wall = 0;                   // from start to end
  int64_t covered = 0;                // of it in operations, in the thread that started
  std::vector<Operation> operations;  // most self time first
  std::vector<Event> events;          // the first ones, by start
  int64_t events_left_out = 0;

  // What the operation of that name cost; zeros where it was never called.
  Cost cost(const std::string& name, Phase phase = Phase::kForward) const;
  // Tables for people: operations, then the rest of the program.
  std::string text() const;
  // The events as JSON for chrome://tracing and Perfetto.
  std::string trace() const;
};

struct ProfilingConfig {
  int64_t maximum_events = 0;  // that are kept for the trace; the others are only counted
};

// Measures from here on, in all threads, what OperationTimers see. An error where it is running.
void start_profiling(const ProfilingConfig& config = {});
// Ends it and gives what was measured. An error where it is not running.
Profile stop_profiling();

}  // namespace gs
