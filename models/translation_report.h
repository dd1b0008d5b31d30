#pragma once

#include <string>
#include <vector>

#include "datasets/batches.h"
#include "datasets/translation_data.h"
#include "framework/train/metrics_log.h"
#include "models/evaluation.h"
#include "models/translation_settings.h"
#include "models/translator.h"

namespace gs {

// How a model predicts and translates what it was not trained on.
struct Validation {
  PredictionScore prediction;
  TranslationScore translation;

  // The figure that --metric names; which of two is better says lower_is_better(name).
  double metric(const std::string& name) const;
  std::string text() const;  // "validation loss 1.2345, perplexity ..."
  MetricsLog::Fields fields(const std::string& event, int64_t step) const;
};

// Validates one model after another on the same data. `split` must outlive it.
class Validator {
 public:
  Validator(const Translator& translator, const TranslationSplit& split, const SearchConfig& search,
            const TranslationScoring& scoring);
  // The model is in evaluation while this computes, and as before afterwards.
  Validation operator()(Translator& translator);

 private:
  const TranslationSplit& split_;
  SearchConfig search_;
  TranslationScoring scoring_;
  Batches batches_;
};

// What is known of a run that has ended, for summary.json beside the scores of its tests.
struct RunSummary {
  double train_seconds = 0;
  int64_t parameters = 0;
  int64_t steps = 0;
  std::string stopped;            // why
  std::string weights;            // which were tested: "last", "best" or "average"
  std::string checkpoint;         // where they are
  Device device = Device::cpu();  // that computes
  std::string precision = "float32";
};

// Scores every test split by the weights that the summary names, prints a table with the signatures
// of its scores and some translations, logs an event "test <name>" each, and writes all
// translations (split_files.h) and summary.json into `folder`.
void report_tests(const RunSummary& summary, const std::vector<TranslationSplit>& tests,
                  const SearchConfig& search, const TranslationScoring& scoring,
                  const std::string& folder, MetricsLog& log);

}  // namespace gs
