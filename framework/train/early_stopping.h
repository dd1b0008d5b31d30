#pragma once

#include <cstdint>
#include <optional>

namespace gs {

// Notices when a metric has stopped getting better. A metric that is NaN or only as good as the
// best is not better.
class EarlyStopping {
 public:
  // Stops after `patience` metrics in a row without a better one; 0: never.
  EarlyStopping(int64_t patience, bool lower_is_better);

  void add(double metric);
  bool should_stop() const { return patience_ > 0 && since_best_ >= patience_; }

  std::optional<double> best() const { return best_; }
  int64_t since_best() const { return since_best_; }  // metrics added after the best one
  // Goes on from what best() and since_best() gave.
  void restore(std::optional<double> best, int64_t since_best);

 private:
  int64_t patience_;
  bool lower_is_better_;
  std::optional<double> best_;
  int64_t since_best_ = 0;
};

}  // namespace gs
