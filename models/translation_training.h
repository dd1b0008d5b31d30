#pragma once

#include <deque>
#include <memory>
#include <string>
#include <vector>

#include "datasets/batches.h"
#include "framework/optim/adam.h"
#include "framework/optim/moving_average.h"
#include "framework/train/early_stopping.h"
#include "models/recorded_steps.h"
#include "models/translation_settings.h"
#include "models/translator.h"

namespace gs {

// All that changes while a translation model is trained, and how it goes into a checkpoint and
// back: a run that is resumed continues bit for bit.
class TranslationTraining {
 public:
  // Starts anew: sets the seed, builds vocabularies and the model. The initial values are the same
  // on each device.
  TranslationTraining(const TranslationSettings& settings, const TranslationSplit& train,
                      Device device = Device::cpu());
  // Goes on from a checkpoint of the same training data, made on this or another device.
  TranslationTraining(const TranslationSettings& settings, const TranslationSplit& train,
                      const Checkpoint& checkpoint, const std::string& path,
                      Device device = Device::cpu());

  struct StepResult {
    double loss = 0;           // summed over the labels, smoothed if so chosen
    int64_t tokens = 0;        // labels
    double gradient_norm = 0;  // before clipping
    bool skipped = false;      // the norm was not finite, and nothing moved
  };
  // One optimizer step over the next `accumulate` batches; the gradient is that of the mean over
  // all their labels. A norm that is not finite is an Error that names the parameter, the operation
  // and the sentence pairs (by line where they are from files), and leaves everything as before the
  // step; or the step is skipped, as the settings say.
  StepResult step();

  // The same without waiting for a device: starts a step and gives the results that have come since
  // the last call, in order; on the CPU always that of the step. They are those of step(), but an
  // Error may come some steps late: everything is as before the step that it is about, then, since
  // nothing has moved from there on.
  std::vector<StepResult> advance();
  // Waits for all steps that were started and gives their results. To be called before anything
  // else is done with the training.
  std::vector<StepResult> settle();

  // Exchanges the weights for their moving average, if there is one, and back: to validate.
  void swap_average();

  // Model, optimizer, place in the data, random state and `options` together.
  Checkpoint checkpoint(const Options::Values& options) const;

  Translator& translator() { return *translator_; }
  Device device() const { return translator_->transformer().device(); }
  int64_t pairs() const { return batches_->pairs(); }  // those that are trained on
  int64_t parameter_count() const { return translator_->transformer().parameter_count(); }
  int64_t steps() const { return steps_; }
  int64_t epoch() const { return position_.epoch; }  // from 0
  int64_t epochs();                                  // all that settings.steps will touch, about
  int64_t skipped_steps() const { return skipped_before_ + optimizer_->skipped_steps(); }
  std::string optimizer_summary() const { return optimizer_->summary(); }
  // What was left out of the training data because it is longer than the model takes; for the user.
  const std::vector<std::string>& notes() const { return notes_; }
  // Why no step should follow: all are done, the metric has stopped getting better, or the time is
  // over; empty while it should go on.
  std::string stop_reason() const;

  double seconds = 0;      // spent in training so far, over all resumes
  EarlyStopping stopping;  // knows the metrics of all validations

 private:
  void start_batches(const TranslationSplit& train);
  void restore_average(const Checkpoint& checkpoint);
  // What a step has used up, to go back there.
  struct Started {
    DataPosition place = {};
    RandomState random = {};
    std::vector<Batch> batches = {};
    int64_t tokens = 0;
  };
  Started take_batches();
  StepResult step_at_once();
  void start();
  StepResult finish(const RecordedSteps::Result& outcome);
  [[noreturn]] void refuse(const StepResult& result, const Started& started);
  double accumulate_gradients(const std::vector<Batch>& batches, int64_t tokens);
  std::string blame(const Started& started);

  TranslationSettings settings_;
  Schedule schedule_;
  std::unique_ptr<Translator> translator_;
  std::unique_ptr<Adam> optimizer_;
  std::unique_ptr<MovingAverage> average_;  // none where none is wanted
  std::unique_ptr<Batches> batches_;
  int64_t data_fingerprint_ = 0;
  std::vector<int64_t> numbers_;  // of the pairs in batches_: their lines, else places in the split
  std::vector<std::string> notes_;
  DataPosition position_;
  std::unique_ptr<RecordedSteps> recorded_;  // none on the CPU
  std::deque<Started> started_;              // whose results are under way
  int64_t steps_ = 0;
  int64_t skipped_before_ = 0;  // in the runs that this one resumes
};

// The translator with the weights that checkpoints have, averaged ones if so chosen, while this
// lives.
class AveragedTranslator {
 public:
  explicit AveragedTranslator(TranslationTraining& training) : training_(training) {
    training_.swap_average();
  }
  ~AveragedTranslator() { training_.swap_average(); }
  AveragedTranslator(const AveragedTranslator&) = delete;
  AveragedTranslator& operator=(const AveragedTranslator&) = delete;

  Translator& operator*() const { return training_.translator(); }

 private:
  TranslationTraining& training_;
};

// The options that a checkpoint of a training run was made with.
Options::Values stored_options(const Checkpoint& checkpoint);

}  // namespace gs
