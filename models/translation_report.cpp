#include "models/translation_report.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "framework/core/profiler.h"
#include "framework/io/atomic_file.h"
#include "models/split_files.h"

namespace gs {
namespace {

Batches batches_of(const Translator& translator, const TranslationSplit& split) {
  return Batches(translator.source_tokenizer().encode_lines(split.source),
                 translator.target_tokenizer().encode_lines(split.target),
                 {.maximum_tokens = 2000, .shuffle = false});
}

nlohmann::ordered_json json_of(const RunSummary& summary) {
  nlohmann::ordered_json json{{"train_seconds", summary.train_seconds},
                              {"parameters", summary.parameters},
                              {"steps", summary.steps},
                              {"stopped", summary.stopped},
                              {"weights", summary.weights},
                              {"checkpoint", summary.checkpoint},
                              {"device", summary.device.text()},
                              {"precision", summary.precision}};
  // What the checkpoint tells of itself: how good it was in validation, what it is the average of.
  for (const auto& [name, value] : load_training_values(summary.checkpoint)) {
    if (name == "metric") json["validation_metric"] = std::get<double>(value);
    if (name == "metric_name") json["validation_metric_name"] = std::get<std::string>(value);
    if (name == "averaged_files") json["averaged_files"] = std::get<std::string>(value);
  }
  return json;
}

}  // namespace

double Validation::metric(const std::string& name) const {
  if (name == "loss") return prediction.loss;
  if (name == "perplexity") return prediction.perplexity;
  if (name == "accuracy") return prediction.accuracy;
  if (name == "bleu") return translation.bleu.score;
  check(name == "chrf",
        "validation: no metric is called {}; use loss, perplexity, accuracy, bleu, chrf", name);
  return translation.chrf;
}

std::string Validation::text() const {
  return fmt::format(
      "validation loss {:.4f}, perplexity {:.3f}, token accuracy {:.2f} %, exact match {:.2f} %, "
      "BLEU {:.2f}, chrF {:.2f}",
      prediction.loss, prediction.perplexity, 100 * prediction.accuracy,
      100 * translation.exact_match, translation.bleu.score, translation.chrf);
}

MetricsLog::Fields Validation::fields(const std::string& event, int64_t step) const {
  return {{"event", event},
          {"step", step},
          {"loss", prediction.loss},
          {"perplexity", prediction.perplexity},
          {"token_accuracy", prediction.accuracy},
          {"exact_match", translation.exact_match},
          {"bleu", translation.bleu.score},
          {"chrf", translation.chrf}};
}

Validator::Validator(const Translator& translator, const TranslationSplit& split,
                     const SearchConfig& search, const TranslationScoring& scoring)
    : split_(split), search_(search), scoring_(scoring), batches_(batches_of(translator, split)) {}

Validation Validator::operator()(Translator& translator) {
  const OperationTimer timer("validation", Phase::kOther);
  const Evaluating evaluating(translator.transformer());
  return {score_predictions(translator.transformer(), batches_),
          score_translations(translate_best(translator, split_.source, search_), split_.target,
                             scoring_)};
}

void report_tests(const RunSummary& summary, const std::vector<TranslationSplit>& tests,
                  const SearchConfig& search, const TranslationScoring& scoring,
                  const std::string& folder, MetricsLog& log) {
  const OperationTimer timer("evaluation", Phase::kOther);
  const std::unique_ptr<Translator> translator =
      Translator::load(summary.checkpoint, summary.device);
  nlohmann::ordered_json json = json_of(summary);
  if (!tests.empty())
    fmt::print("\n{:<20} {:>9} {:>12} {:>8} {:>8}\n", "split", "sentences", "exact match", "BLEU",
               "chrF");
  std::string samples;
  for (const TranslationSplit& test : tests) {
    const std::vector<std::string> translations = translate_best(*translator, test.source, search);
    write_translation_file(folder, test.name, translations);
    const TranslationScore score = score_translations(translations, test.target, scoring);
    fmt::print("{:<20} {:>9} {:>10.2f} % {:>8.2f} {:>8.2f}\n", test.name, score.sentences,
               100 * score.exact_match, score.bleu.score, score.chrf);
    json["exact_match"][test.name] = score.exact_match;
    json["bleu"][test.name] = score.bleu.score;
    json["chrf"][test.name] = score.chrf;
    log.write({{"event", "test " + test.name},
               {"step", summary.steps},
               {"weights", summary.weights},
               {"exact_match", score.exact_match},
               {"bleu", score.bleu.score},
               {"chrf", score.chrf}});
    for (size_t i = 0; i < std::min<size_t>(2, translations.size()); ++i) {
      samples += fmt::format("\n  {}: {}\n  model:     {}\n  reference: {}\n", test.name,
                             test.source[i], translations[i], test.target[i]);
    }
  }
  const std::string bleu_signature = scoring.bleu.signature();
  const std::string chrf_signature = scoring.chrf.signature();
  if (!tests.empty())
    fmt::print("BLEU|{}\n{}|{}\n", bleu_signature, scoring.chrf.name(), chrf_signature);
  json["bleu_signature"] = bleu_signature;
  json["chrf_signature"] = chrf_signature;
  if (!samples.empty()) fmt::print("\nTranslations:\n{}", samples);
  write_file_atomically(folder + "/summary.json", json.dump(2) + "\n");
}

}  // namespace gs
