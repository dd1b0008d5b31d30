#pragma once

#include <string>
#include <vector>

#include "datasets/batches.h"
#include "framework/text/bleu.h"
#include "framework/text/chrf.h"
#include "models/translator.h"

namespace gs {

// How well a model predicts the next target token, given the right ones before it.
struct PredictionScore {
  double loss = 0;  // negative log-likelihood per token
  double perplexity = 0;
  double accuracy = 0;  // share of tokens predicted right, 0 to 1
  int64_t tokens = 0;
};
PredictionScore score_predictions(const Transformer& transformer, Batches& batches);

// How scores of translations are computed.
struct TranslationScoring {
  BleuConfig bleu = {.tokenizer = BleuTokenizer::kNone};
  ChrfConfig chrf = {};
};

// How well a model translates: shares of sentences that equal their reference, BLEU and chrF.
struct TranslationScore {
  double exact_match = 0;  // 0 to 1
  BleuScore bleu;
  double chrf = 0;  // 0 to 100
  int64_t sentences = 0;
};
TranslationScore score_translations(const std::vector<std::string>& translations,
                                    const std::vector<std::string>& references,
                                    const TranslationScoring& scoring = {});

// The best translation of each line.
std::vector<std::string> translate_best(const Translator& translator,
                                        const std::vector<std::string>& lines,
                                        const SearchConfig& config);

// In evaluation while this lives, and as before afterwards.
class Evaluating {
 public:
  explicit Evaluating(nn::Module& module) : module_(module), before_(module.training()) {
    module.evaluate();
  }
  ~Evaluating() { module_.train(before_); }
  Evaluating(const Evaluating&) = delete;
  Evaluating& operator=(const Evaluating&) = delete;

 private:
  nn::Module& module_;
  bool before_;
};

// Labels of a batch as the loss of a model on `device` takes them, int32 (N).
Tensor labels_of(const Batch& batch, Device device = Device::cpu());

}  // namespace gs
