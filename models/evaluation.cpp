#include "models/evaluation.h"

#include "framework/train/meter.h"

namespace gs {

Tensor labels_of(const Batch& batch, Device device) {
  const std::vector<int32_t>& labels = batch.target_labels.tokens;
  const Array array = Array::of<int32_t>({static_cast<int64_t>(labels.size())}, labels);
  return Tensor(device == Device::cpu() ? array : array.to(device));
}

PredictionScore score_predictions(const Transformer& transformer, Batches& batches) {
  check(!transformer.training(), "score: the model is in training; call evaluate() first");
  const NoGrad no_grad;
  MeanMeter loss, right;
  const int64_t count = batches.count(0);
  for (int64_t i = 0; i < count; ++i) {
    const Batch batch = batches.at({.epoch = 0, .batch = i});
    const Loss result = transformer.loss(batch.target_inputs, transformer.encode(batch.source),
                                         labels_of(batch, transformer.device()));
    loss.add(result.sum.item(), result.count);
    right.add(static_cast<double>(result.correct), result.count);
  }
  return {loss.mean(), loss.perplexity(), right.mean(), loss.count()};
}

TranslationScore score_translations(const std::vector<std::string>& translations,
                                    const std::vector<std::string>& references,
                                    const TranslationScoring& scoring) {
  check(translations.size() == references.size(),
        "score: needs a reference for each translation, got {} and {}", references.size(),
        translations.size());
  TranslationScore score;
  score.sentences = static_cast<int64_t>(translations.size());
  MeanMeter exact;
  for (size_t i = 0; i < translations.size(); ++i)
    exact.add(translations[i] == references[i] ? 1 : 0, 1);
  score.exact_match = exact.count() == 0 ? 0 : exact.mean();
  score.bleu = corpus_bleu(translations, {references}, scoring.bleu);
  score.chrf = corpus_chrf(translations, {references}, scoring.chrf);
  return score;
}

std::vector<std::string> translate_best(const Translator& translator,
                                        const std::vector<std::string>& lines,
                                        const SearchConfig& config) {
  std::vector<std::string> best;
  for (auto& translations : translator.translate(lines, config))
    best.push_back(std::move(translations[0].text));
  return best;
}

}  // namespace gs
