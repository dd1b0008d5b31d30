#include "framework/train/meter.h"

#include <cmath>
#include <limits>

#include "framework/core/error.h"

namespace gs {

void MeanMeter::add(double sum, int64_t count) {
  check(count >= 0, "mean meter: negative count, got {}; use 0 or more", count);
  sum_ += sum;
  count_ += count;
}

double MeanMeter::mean() const {
  return count_ == 0 ? std::numeric_limits<double>::quiet_NaN()
                     : sum_ / static_cast<double>(count_);
}

double MeanMeter::perplexity() const { return std::exp(mean()); }

RateMeter::RateMeter(double window, Clock::time_point start) : window_(window) {
  check(window > 0, "rate meter: window of {} seconds; use a positive one", window);
  restart(start);
}

void RateMeter::restart(Clock::time_point now) { totals_.assign(1, {now, total_}); }

void RateMeter::add(int64_t amount, Clock::time_point now) {
  total_ += amount;
  totals_.emplace_back(now, total_);
  // The front is the window's left edge: the newest mark that is old enough.
  while (totals_.size() > 2 && now - totals_[1].first >= window_) totals_.pop_front();
}

double RateMeter::per_second() const {
  const std::chrono::duration<double> elapsed = totals_.back().first - totals_.front().first;
  const auto amount = static_cast<double>(totals_.back().second - totals_.front().second);
  return elapsed.count() > 0 ? amount / elapsed.count() : 0;
}

}  // namespace gs
