#include "framework/train/early_stopping.h"

#include <cmath>

#include "framework/core/error.h"

namespace gs {

EarlyStopping::EarlyStopping(int64_t patience, bool lower_is_better)
    : patience_(patience), lower_is_better_(lower_is_better) {
  check(patience >= 0, "early stopping: the patience must not be negative, got {}", patience);
}

void EarlyStopping::add(double metric) {
  const bool better =
      !std::isnan(metric) && (!best_ || (lower_is_better_ ? metric < *best_ : metric > *best_));
  since_best_ = better ? 0 : since_best_ + 1;
  if (better) best_ = metric;
}

void EarlyStopping::restore(std::optional<double> best, int64_t since_best) {
  check(since_best >= 0, "early stopping: the count since the best must not be negative, got {}",
        since_best);
  best_ = best;
  since_best_ = since_best;
}

}  // namespace gs
