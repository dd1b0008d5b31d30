#include "models/translation_training.h"

#include <cmath>

#include "datasets/fitting_pairs.h"
#include "framework/core/profiler.h"
#include "framework/core/random.h"
#include "framework/io/module_checkpoint.h"
#include "framework/optim/clip.h"
#include "models/evaluation.h"
#include "models/precision.h"
#include "models/transformer_config.h"

namespace gs {
namespace {

// The model of a checkpoint and its tokens cannot be changed by options, but for the dropouts where
// a new training begins with it.
enum class Use { kResume, kBegin };
void check_same_model(const TranslationSettings& settings, const Translator& translator,
                      const std::string& path, Use use) {
  const bool begins = use == Use::kBegin;
  const Tokenizer& tokenizer = translator.source_tokenizer();
  const auto changed = [&](const char* name, const auto& before, const auto& now) {
    check(before == now, "{}: the model in {} has {} {}, the options say {}; {}",
          begins ? "--init-from" : "resume", path, name, before, now,
          begins ? "give the same" : "leave that option out");
  };
  changed("unit", tokenizer.unit(), settings.tokens.unit);
  if (tokenizer.unit() == "sentencepiece")
    changed("subword_size", tokenizer.size(), settings.tokens.subword_size);
  const TransformerConfig& saved = translator.transformer().config;
  TransformerConfig wanted = settings.transformer_config();
  wanted.source_vocabulary = saved.source_vocabulary;
  wanted.target_vocabulary = saved.target_vocabulary;
  const std::map<std::string, std::string> before = config_to_text(saved);
  for (const auto& [name, value] : config_to_text(wanted)) {
    if (!begins || !name.ends_with("dropout")) changed(name.c_str(), before.at(name), value);
  }
}

// With the vocabularies and weights of another model.
std::unique_ptr<Translator> translator_from(const std::string& path,
                                            const TranslationSettings& settings) {
  const Checkpoint checkpoint = load_model_checkpoint(path);
  const std::unique_ptr<Translator> saved = Translator::from_checkpoint(checkpoint, path);
  check_same_model(settings, *saved, path, Use::kBegin);
  auto translator = std::make_unique<Translator>(
      settings.transformer_config(), saved->source_tokenizer(), saved->target_tokenizer());
  load_parameters(translator->transformer(), checkpoint, path);
  return translator;
}

std::unique_ptr<Translator> new_translator(const TranslationSettings& settings,
                                           const TranslationSplit& train) {
  if (!settings.init_from.empty()) return translator_from(settings.init_from, settings);
  const TransformerConfig config = settings.transformer_config();
  auto [source, target] =
      settings.tokens.tokenizers(train.source, train.target, config.share_embeddings);
  return std::make_unique<Translator>(config, std::move(source), std::move(target));
}

template <typename T>
std::optional<T> optional_value(const Checkpoint& checkpoint, const std::string& name) {
  const auto found = checkpoint.training.find(name);
  if (found == checkpoint.training.end() || !std::holds_alternative<T>(found->second)) return {};
  return std::get<T>(found->second);
}

template <typename T>
T training_value(const Checkpoint& checkpoint, const std::string& name, const std::string& path) {
  const std::optional<T> value = optional_value<T>(checkpoint, name);
  check(value.has_value(), "resume: {} has no {}; it was not made by train_translation", path,
        name);
  return *value;
}

std::string pair_numbers(const std::vector<Batch>& batches, const std::vector<int64_t>& numbers) {
  std::string text;
  for (const Batch& batch : batches) {
    for (const int64_t pair : batch.pairs) {
      if (text.size() > 200) return text + " ...";
      text += (text.empty() ? "" : ", ") + std::to_string(numbers[static_cast<size_t>(pair)]);
    }
  }
  return text;
}

}  // namespace

TranslationTraining::TranslationTraining(const TranslationSettings& settings,
                                         const TranslationSplit& train, Device device)
    : stopping(settings.patience, settings.lower_is_better()),
      settings_(settings),
      schedule_(settings.schedule_config()) {
  set_seed(settings.seed);
  translator_ = new_translator(settings, train);
  if (device != Device::cpu()) translator_->transformer().to(device);
  set_precision(translator_->transformer(), settings.precision);
  optimizer_ = std::make_unique<Adam>(translator_->transformer(), settings.adam_config());
  if (settings.moving_average > 0) {
    average_ = std::make_unique<MovingAverage>(translator_->transformer(), settings.moving_average);
  }
  start_batches(train);
}

TranslationTraining::TranslationTraining(const TranslationSettings& settings,
                                         const TranslationSplit& train,
                                         const Checkpoint& checkpoint, const std::string& path,
                                         Device device)
    : stopping(settings.patience, settings.lower_is_better()),
      settings_(settings),
      schedule_(settings.schedule_config()),
      translator_(Translator::from_checkpoint(checkpoint, path, device)) {
  check_same_model(settings, *translator_, path, Use::kResume);
  translator_->transformer().train();
  set_precision(translator_->transformer(), settings.precision);
  optimizer_ = std::make_unique<Adam>(translator_->transformer(), settings.adam_config());
  optimizer_->restore(checkpoint.optimizer,
                      training_value<int64_t>(checkpoint, "optimizer_steps", path));
  restore_average(checkpoint);
  start_batches(train);
  const int64_t pairs = training_value<int64_t>(checkpoint, "pairs", path);
  check(pairs == batches_->pairs(),
        "resume: {} was trained on {} pairs, the data has {}; use the same data", path, pairs,
        batches_->pairs());
  const auto fingerprint = optional_value<int64_t>(checkpoint, "data_fingerprint");
  check(!fingerprint || *fingerprint == data_fingerprint_,
        "resume: {} was trained on other pairs than these {}; use the same files, and the same "
        "options for what is held out or left out",
        path, pairs);
  steps_ = training_value<int64_t>(checkpoint, "step", path);
  skipped_before_ = training_value<int64_t>(checkpoint, "skipped_steps", path);
  position_ = {training_value<int64_t>(checkpoint, "epoch", path),
               training_value<int64_t>(checkpoint, "batch", path)};
  seconds = training_value<double>(checkpoint, "train_seconds", path);
  const std::string metric =
      optional_value<std::string>(checkpoint, "metric_name").value_or("loss");
  check(metric == settings.metric,
        "resume: the checkpoints of {} are rated by {}, --metric says {}; leave it out", path,
        metric, settings.metric);
  stopping.restore(optional_value<double>(checkpoint, "best_metric"),
                   optional_value<int64_t>(checkpoint, "validations_since_best").value_or(0));
  default_generator().restore(
      {static_cast<uint64_t>(training_value<int64_t>(checkpoint, "random_seed", path)),
       static_cast<uint64_t>(training_value<int64_t>(checkpoint, "random_next_stream", path))});
}

void TranslationTraining::start_batches(const TranslationSplit& train) {
  const OperationTimer timer("encode corpus", Phase::kOther);
  const int64_t longest = translator_->longest_line();
  FittingPairs fitting =
      fitting_pairs(translator_->source_tokenizer().encode_lines(train.source),
                    translator_->target_tokenizer().encode_lines(train.target), longest);
  if (!fitting.left_out.empty()) {
    notes_.push_back(long_pairs_note(train, fitting, longest));
    check(!fitting.pairs.empty(), "training: no pair fits; {}", notes_.back());
  }
  batches_ = std::make_unique<Batches>(std::move(fitting.source), std::move(fitting.target),
                                       settings_.batch_config());
  data_fingerprint_ = static_cast<int64_t>(batches_->fingerprint());
  if (device() != Device::cpu()) {
    recorded_ = std::make_unique<RecordedSteps>(
        translator_->transformer(), *optimizer_, average_.get(),
        RecordedSteps::Config{.label_smoothing = settings_.label_smoothing,
                              .maximum_norm = settings_.clip,
                              .halts = settings_.on_non_finite == "stop"});
  }
  numbers_.clear();
  for (const int64_t pair : fitting.pairs) {
    numbers_.push_back(train.lines.empty() ? pair + 1 : train.lines[static_cast<size_t>(pair)]);
  }
}

// The model of a checkpoint with a moving average is that; the weights to train on stand beside it,
// even where no average is wanted any more. Without one an average starts here.
void TranslationTraining::restore_average(const Checkpoint& checkpoint) {
  const std::optional<int64_t> updates =
      optional_value<int64_t>(checkpoint, "moving_average_updates");
  const bool wanted = settings_.moving_average > 0;
  if (!updates && !wanted) return;
  constexpr double kUnused = 0.5;
  average_ = std::make_unique<MovingAverage>(translator_->transformer(),
                                             wanted ? settings_.moving_average : kUnused);
  if (updates) average_->restore(checkpoint.optimizer, *updates);
  if (!wanted) average_.reset();
}

void TranslationTraining::swap_average() {
  if (average_) average_->swap();
}

std::string TranslationTraining::stop_reason() const {
  if (steps_ >= settings_.steps) return fmt::format("all {} steps are done", settings_.steps);
  if (stopping.should_stop()) {
    return fmt::format("no better {} in {} validations{}", settings_.metric, stopping.since_best(),
                       stopping.best() ? fmt::format(" than {:.6g}", *stopping.best()) : "");
  }
  if (settings_.time_limit > 0 && seconds >= 60 * settings_.time_limit)
    return fmt::format("the time limit of {} minutes is over", settings_.time_limit);
  return "";
}

int64_t TranslationTraining::epochs() {
  const int64_t batches = settings_.steps * settings_.accumulate;
  const int64_t in_epoch = batches_->count(position_.epoch);
  return (batches + in_epoch - 1) / in_epoch;
}

// Forward, loss and backward of each batch; returns the summed loss.
double TranslationTraining::accumulate_gradients(const std::vector<Batch>& batches,
                                                 int64_t tokens) {
  double sum = 0;
  for (const Batch& batch : batches) {
    const Transformer& transformer = translator_->transformer();
    const Loss loss = transformer.loss(batch.target_inputs, transformer.encode(batch.source),
                                       labels_of(batch, device()),
                                       {.label_smoothing = settings_.label_smoothing});
    loss.sum.backward(
        Tensor(Array::full({}, 1 / static_cast<double>(tokens), loss.sum.dtype(), device())));
    sum += loss.sum.item();
  }
  return sum;
}

TranslationTraining::Started TranslationTraining::take_batches() {
  Started started{.place = position_, .random = default_generator().state()};
  for (int64_t i = 0; i < settings_.accumulate; ++i) {
    started.batches.push_back(batches_->at(position_));
    started.tokens += static_cast<int64_t>(started.batches.back().target_labels.tokens.size());
    position_ = batches_->after(position_);
  }
  return started;
}

TranslationTraining::StepResult TranslationTraining::step() {
  check(started_.empty(), "training: {} steps are under way; settle them first", started_.size());
  if (recorded_ == nullptr) return step_at_once();
  start();
  return finish(recorded_->wait());
}

std::vector<TranslationTraining::StepResult> TranslationTraining::advance() {
  if (recorded_ == nullptr) return {step_at_once()};
  std::vector<StepResult> results;
  if (recorded_->full()) results.push_back(finish(recorded_->wait()));
  start();
  while (const auto outcome = recorded_->pop()) results.push_back(finish(*outcome));
  return results;
}

std::vector<TranslationTraining::StepResult> TranslationTraining::settle() {
  std::vector<StepResult> results;
  while (!started_.empty()) results.push_back(finish(recorded_->wait()));
  return results;
}

TranslationTraining::StepResult TranslationTraining::step_at_once() {
  const Started started = take_batches();
  StepResult result{.tokens = started.tokens};
  result.loss = accumulate_gradients(started.batches, started.tokens);
  result.gradient_norm = gradient_norm(translator_->transformer());
  result.skipped = !std::isfinite(result.gradient_norm);
  if (result.skipped && settings_.on_non_finite == "stop") refuse(result, started);
  optimizer_->set_learning_rate(schedule_.rate(steps_ + 1));
  optimizer_->step({.gradient_scale = clip_factor(result.gradient_norm, settings_.clip)});
  if (average_ && !result.skipped) average_->update();
  ++steps_;
  return result;
}

void TranslationTraining::start() {
  Started started = take_batches();
  try {
    recorded_->start(started.batches, schedule_.rate(steps_ + 1));
  } catch (...) {
    position_ = started.place;
    default_generator().restore(started.random);
    throw;
  }
  ++steps_;
  started_.push_back(std::move(started));
}

TranslationTraining::StepResult TranslationTraining::finish(const RecordedSteps::Result& outcome) {
  const Started started = std::move(started_.front());
  started_.pop_front();
  const StepResult result{.loss = outcome.loss,
                          .tokens = started.tokens,
                          .gradient_norm = outcome.gradient_norm,
                          .skipped = outcome.skipped};
  if (!result.skipped || settings_.on_non_finite != "stop") return result;
  // The device has moved nothing in this step and in those behind it.
  steps_ -= 1 + static_cast<int64_t>(started_.size());
  while (recorded_->pending() > 0) recorded_->wait();
  started_.clear();
  optimizer_->resume();
  refuse(result, started);
}

void TranslationTraining::refuse(const StepResult& result, const Started& started) {
  const std::string reason = blame(started);
  position_ = started.place;
  const double norm = std::abs(result.gradient_norm);  // NaN may come with a sign
  fail(
      "training: the gradient norm is {} at step {}: {}; in the training pairs {}; lower the "
      "learning rate, or go on with --on-non-finite skip",
      norm, steps_ + 1, reason, pair_numbers(started.batches, numbers_));
}

// Looks at every parameter, runs the step once more with the same random numbers and looks at every
// result. Gradients and random state are left as before the step.
std::string TranslationTraining::blame(const Started& started) {
  Transformer& transformer = translator_->transformer();
  std::string reason;
  const auto look = [&](const auto& body) {
    try {
      body();
    } catch (const Error& error) {
      reason += (reason.empty() ? "" : "; ") + std::string(error.what());
    }
  };
  const AnomalyMode anomaly;
  look([&] {
    for (const auto& named : transformer.parameters()) {
      check_finite("parameter " + named.path, named.parameter->tensor().value());
    }
  });
  default_generator().restore(started.random);
  look([&] { accumulate_gradients(started.batches, started.tokens); });
  default_generator().restore(started.random);
  transformer.clear_gradients();
  return reason.empty() ? "no single operation is to blame" : reason;
}

Checkpoint TranslationTraining::checkpoint(const Options::Values& options) const {
  check(started_.empty(), "training: {} steps are under way; settle them first", started_.size());
  Checkpoint checkpoint;
  translator_->store(checkpoint);
  checkpoint.optimizer = optimizer_->state();
  const RandomState random = default_generator().state();
  checkpoint.training = {{"step", steps_},
                         {"epoch", position_.epoch},
                         {"batch", position_.batch},
                         {"pairs", batches_->pairs()},
                         {"data_fingerprint", data_fingerprint_},
                         {"optimizer_steps", optimizer_->steps()},
                         {"skipped_steps", skipped_steps()},
                         {"train_seconds", seconds},
                         {"metric_name", settings_.metric},
                         {"validations_since_best", stopping.since_best()},
                         {"random_seed", static_cast<int64_t>(random.seed)},
                         {"random_next_stream", static_cast<int64_t>(random.next_stream)}};
  if (average_) {
    average_->store(checkpoint.parameters, checkpoint.optimizer);
    checkpoint.training["moving_average_updates"] = average_->updates();
  }
  if (stopping.best()) checkpoint.training["best_metric"] = *stopping.best();
  for (const auto& [name, value] : options) checkpoint.config[kRunOptions + name] = value;
  return checkpoint;
}

Options::Values stored_options(const Checkpoint& checkpoint) {
  Options::Values values;
  const std::string prefix = kRunOptions;
  for (const auto& [name, value] : checkpoint.config) {
    if (name.starts_with(prefix)) values.emplace_back(name.substr(prefix.size()), value);
  }
  return values;
}

}  // namespace gs
