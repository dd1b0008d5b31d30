#pragma once

#include <functional>
#include <map>
#include <string>
#include <vector>

#include "models/translation_training.h"

namespace gs::test {

inline TranslationSettings small_settings() {
  TranslationSettings settings;
  settings.model.width = 16;
  settings.model.heads = 2;
  settings.model.feed_forward_width = 24;
  settings.model.encoder_layers = settings.model.decoder_layers = 1;
  settings.steps = 100;
  settings.warmup = 5;
  settings.batch_sentences = 4;
  return settings;
}

inline TranslationSettings with_dropout() {
  TranslationSettings settings = small_settings();
  settings.model.dropout = settings.model.attention_dropout = settings.model.activation_dropout =
      0.2;
  settings.label_smoothing = 0.1;
  return settings;
}

inline TranslationSplit toy_split(int64_t pairs) {
  return toy_translation_data(
             {.seed = 5, .level = 1, .train_pairs = pairs, .valid_pairs = 1, .test_pairs = 1})
      .train;
}

// Parameters, optimizer (as hashes of all their bits) and place.
inline std::map<std::string, std::string> bits_of(const TranslationTraining& training) {
  std::map<std::string, std::string> bits;
  const Checkpoint checkpoint = training.checkpoint({});
  for (const auto* arrays : {&checkpoint.parameters, &checkpoint.optimizer}) {
    for (const auto& [name, array] : *arrays) {
      const Array values = array.to(Device::cpu());
      const std::string_view bytes(static_cast<const char*>(values.raw()),
                                   static_cast<size_t>(values.bytes()));
      bits[name] = std::to_string(std::hash<std::string_view>()(bytes));
    }
  }
  for (const auto& [name, value] : checkpoint.training) {
    if (std::holds_alternative<int64_t>(value))
      bits[name] = std::to_string(std::get<int64_t>(value));
  }
  return bits;
}

using Figures = std::vector<double>;

inline void advance(TranslationTraining& training, int64_t steps, Figures& figures) {
  for (int64_t i = 0; i < steps; ++i) {
    const TranslationTraining::StepResult result = training.step();
    figures.insert(figures.end(),
                   {result.loss, result.gradient_norm, static_cast<double>(result.tokens)});
  }
}

}  // namespace gs::test
