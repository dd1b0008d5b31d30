#pragma once

#include <chrono>
#include <cstdint>
#include <deque>
#include <utility>

namespace gs {

// A mean over tokens from sums over batches: averages are never averaged, so the batching does not
// change the result.
class MeanMeter {
 public:
  void add(double sum, int64_t count);
  void reset() { *this = MeanMeter(); }

  double sum() const { return sum_; }
  int64_t count() const { return count_; }
  double mean() const;        // NaN where nothing was counted
  double perplexity() const;  // exp(mean)

 private:
  double sum_ = 0;
  int64_t count_ = 0;
};

// Amounts (tokens) per second over the last `window` seconds. Without an explicit time it takes the
// present one.
class RateMeter {
 public:
  using Clock = std::chrono::steady_clock;

  explicit RateMeter(double window = 5, Clock::time_point start = Clock::now());

  void add(int64_t amount, Clock::time_point now = Clock::now());
  // Starts anew: what was done between the last add and now (a validation) is not counted.
  void restart(Clock::time_point now = Clock::now());
  double per_second() const;  // up to the last add; 0 before the first

 private:
  std::chrono::duration<double> window_;
  int64_t total_ = 0;
  std::deque<std::pair<Clock::time_point, int64_t>> totals_;  // never empty
};

}  // namespace gs
