#pragma once

#include <limits>
#include <memory>
#include <optional>
#include <vector>

#include "framework/backend/captured_steps.h"
#include "framework/backend/delayed_values.h"
#include "framework/backend/staged_upload.h"
#include "framework/optim/adam.h"
#include "framework/optim/moving_average.h"
#include "models/placed_batch.h"
#include "models/transformer.h"

namespace gs {

// Optimizer steps of a Transformer that leave the host free: a batch is sent to the device, the
// whole step is recorded and replayed where the device can (see CapturedSteps), and its results are
// read some steps later. All numbers are exactly those of the step.
class RecordedSteps {
 public:
  struct Config {
    double label_smoothing = 0;
    double maximum_norm = std::numeric_limits<double>::infinity();
    // After a norm that is not finite nothing moves any more until Adam::resume; else that step
    // alone is skipped.
    bool halts = true;
    int64_t most_ahead = 8;  // steps whose results have not been read
  };
  struct Result {
    double loss = 0;  // summed over the labels
    double gradient_norm = 0;
    bool skipped = false;
  };

  // The average may be null; it follows the steps that moved.
  RecordedSteps(const Transformer& transformer, Adam& optimizer, MovingAverage* average,
                Config config);

  // Starts a step over batches, whose gradient is that of the mean over all their labels. With as
  // many results under way as allowed it is an error: take one out.
  void start(const std::vector<Batch>& batches, double learning_rate);
  // The oldest step's result, if it has come; `wait` waits for it.
  std::optional<Result> pop();
  Result wait();

  int64_t pending() const { return results_.pending(); }
  bool full() const { return results_.full(); }
  int64_t recorded() const { return steps_ == nullptr ? 0 : steps_->recorded(); }
  int64_t replays() const { return steps_ == nullptr ? 0 : steps_->replays(); }

 private:
  void send(const std::vector<Batch>& batches, const std::vector<BatchForm>& forms);
  void run(const std::vector<BatchForm>& forms);

  const Transformer& transformer_;
  Adam& optimizer_;
  MovingAverage* average_;
  Config config_;
  std::unique_ptr<StagedUpload> upload_;  // null before the first step
  std::unique_ptr<CapturedSteps> steps_;  // they know where the upload ends
  Array outcome_;                         // of the step: loss, gradient norm, gradient scale
  DelayedValues results_;
};

}  // namespace gs
