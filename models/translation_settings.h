#pragma once

#include <string>
#include <vector>

#include "datasets/batches.h"
#include "datasets/translation_data.h"
#include "framework/io/checkpoint_rotation.h"
#include "framework/optim/adam.h"
#include "framework/optim/schedule.h"
#include "framework/train/options.h"
#include "models/evaluation.h"
#include "models/search.h"
#include "models/tokenizer_settings.h"
#include "models/transformer.h"

namespace gs {

// Everything that can be chosen about the training of a translation model. The defaults are those
// of the toy run.
struct TranslationSettings {
  // Data: the toy corpus where no training file is named.
  ToyDataConfig toy;
  FileDataConfig files;
  TokenizerSettings tokens;
  // Model.
  TransformerConfig model;
  std::string activation = "relu";
  double embedding_dropout = -1;
  bool post_norm = false, untied_output = false, unscaled_embeddings = false;
  // Training.
  std::string init_from;
  int64_t steps = 6000;
  int64_t batch_sentences = 32, batch_tokens = 0, accumulate = 1;
  std::string schedule = "linear";
  double learning_rate = 3e-3;
  int64_t warmup = 400;
  double beta1 = 0.9, beta2 = 0.98, epsilon = 1e-9, weight_decay = 0;
  double label_smoothing = 0, clip = 1, moving_average = 0;
  uint64_t seed = 1;
  std::string on_non_finite = "stop", precision = "float32";
  // Watching and keeping.
  int64_t validate_every = 1000, keep = 3, beam = 1;
  double alpha = 1;
  std::string bleu_tokenize = "none";
  bool bleu_lowercase = false;
  double progress_seconds = 10;
  // When to end, and with which weights.
  std::string metric = "loss";
  int64_t patience = 0;
  double time_limit = 0;  // minutes
  int64_t average = 0;
  std::string average_of = "last", test_weights = "auto";

  // Binds every field to an option, which then shows its default in the help.
  void bind(Options& options);
  // Those that make the data, their order and the meaning of what is kept: a run that is resumed
  // cannot change them.
  static std::vector<std::string> fixed_options();

  bool is_toy() const { return files.train_source.empty(); }
  TranslationData data() const;
  TransformerConfig transformer_config() const;
  BatchConfig batch_config() const;
  AdamConfig adam_config() const;
  SearchConfig search_config() const;  // of the translations that are scored
  TranslationScoring scoring() const;
  Schedule schedule_config() const;
  bool lower_is_better() const { return metric == "loss" || metric == "perplexity"; }
  // Keeps more than --keep says where --average needs it.
  CheckpointRotation::Config rotation_config(const std::string& folder) const;
};

}  // namespace gs
