#include "models/translation_settings.h"

#include <algorithm>

#include "framework/core/profiler.h"
#include "models/precision.h"

namespace gs {
namespace {

Allowed counts() { return at_least(1); }
Allowed counts_or_none() { return at_least(0); }
Allowed probability() { return at_least_and_below(0, 1); }

}  // namespace

void TranslationSettings::bind(Options& options) {
  options.group("Data");
  options.bind("train-source", files.train_source,
               "training sentences, one a line, or a TSV file; none: the toy corpus");
  options.bind("train-target", files.train_target,
               "their translations; none: the second column of the TSV file");
  options.bind("valid-source", files.valid_source,
               "validation sentences; none: pairs held out of training");
  options.bind("valid-target", files.valid_target, "their translations");
  options.bind("test-source", files.test_source,
               "files of test sentences, each scored at the end under its name");
  options.bind("test-target", files.test_target,
               "their translations, in the same order; none: TSV files");
  options.bind("maximum-words", files.maximum_words,
               "training and validation pairs with a longer side are left out", counts());
  options.bind(
      "toy-level", toy.level,
      "grammar of the toy corpus: 1 main clauses, 2 subordinate clauses, 3 relative clauses",
      between(1, 3));
  options.bind("toy-pairs", toy.train_pairs, "distinct training pairs of the toy corpus", counts());
  options.bind("toy-seed", toy.seed, "seed of the toy corpus");
  options.bind("valid-pairs", toy.valid_pairs,
               "pairs held out for validation, at least, where no file is named", counts());
  options.bind("held-out-test", files.held_out_test,
               "pairs of the training files held out as a test, at least", counts_or_none());
  options.bind("split-seed", files.split_seed,
               "chooses the source sentences that are held out, with all their translations");
  options.bind("test-pairs", toy.test_pairs, "pairs of each test split of the toy corpus",
               counts());
  tokens.bind(options);

  options.group("Model");
  options.bind("width", model.width, "width of the layers", counts());
  options.bind("heads", model.heads, "attention heads; they divide the width", counts());
  options.bind("feed-forward", model.feed_forward_width, "inner width of the feed-forward layers",
               counts());
  options.bind("encoder-layers", model.encoder_layers, "layers of the encoder", counts_or_none());
  options.bind("decoder-layers", model.decoder_layers, "layers of the decoder", counts());
  options.bind("maximum-length", model.maximum_length, "longest sentence in tokens, marks included",
               counts());
  options.bind("post-norm", post_norm, "normalise after each residual, as first published");
  options.bind("activation", activation, "of the feed-forward layers", one_of({"relu", "gelu"}));
  options.bind("share-embeddings", model.share_embeddings,
               "one vocabulary and table for both languages");
  options.bind("untied-output", untied_output,
               "an output projection of its own, not the target's table");
  options.bind("unscaled-embeddings", unscaled_embeddings,
               "embeddings as they are, not times the root of the width");
  options.bind("output-bias", model.output_bias, "a bias in the output projection");
  options.bind("learned-positions", model.learned_positions, "trained positions, not sinusoids");
  options.bind("dropout", model.dropout, "of what is added to residuals", probability());
  options.bind("embedding-dropout", embedding_dropout,
               "of embeddings with their positions; -1: that of --dropout",
               at_least_and_below(-1, 1));
  options.bind("attention-dropout", model.attention_dropout, "of attention weights", probability());
  options.bind("activation-dropout", model.activation_dropout, "inside the feed-forward layers",
               probability());

  options.group("Training");
  options.bind("init-from", init_from,
               "checkpoint to begin with, for its vocabularies and weights; the model options must "
               "be those that it was made with, but for the dropouts; none: random weights");
  options.bind("steps", steps, "optimizer steps", counts());
  options.bind("batch-sentences", batch_sentences, "most sentence pairs in a batch; 0 is no limit",
               counts_or_none());
  options.bind("batch-tokens", batch_tokens, "most target tokens in a batch; 0 is no limit",
               counts_or_none());
  options.bind("accumulate", accumulate, "batches a step", counts());
  options.bind("learning-rate", learning_rate, "at its peak; for noam a factor", above(0));
  options.bind("schedule", schedule, "of the learning rate",
               one_of({"constant", "linear", "cosine", "inverse_square_root", "noam"}));
  options.bind("warmup", warmup, "steps until the peak", counts_or_none());
  options.bind("beta1", beta1, "Adam's decay of the first moment", at_least_and_below(0, 1));
  options.bind("beta2", beta2, "Adam's decay of the second moment", at_least_and_below(0, 1));
  options.bind("epsilon", epsilon, "Adam's epsilon", above(0));
  options.bind("weight-decay", weight_decay, "decoupled; biases and norms are spared", at_least(0));
  options.bind("label-smoothing", label_smoothing, "share of the target spread over all classes",
               at_least_and_below(0, 1));
  options.bind("clip", clip, "largest norm of the gradient", above(0));
  options.bind(
      "moving-average", moving_average,
      "decay, near 1, of an exponential average of the weights, which is validated, tested "
      "and saved as the model; 0: none",
      at_least_and_below(0, 1));
  options.bind("seed", seed, "of initial values, dropout and the order of the data");
  options.bind("on-non-finite", on_non_finite, "what to do when a gradient is infinite or NaN",
               one_of({"stop", "skip"}));

  options.bind(
      "precision", precision,
      "of training and validation on CUDA devices: float32; tf32, which rounds the operands "
      "of products to 10 bits; or bfloat16, in which activations are. Weights, moments, "
      "statistics, losses and checkpoints are float32 in any case, and a run may go on in "
      "another precision",
      precisions());

  options.group("Watching");
  options.bind("validate-every", validate_every,
               "steps between validations, each followed by a checkpoint", counts());
  options.bind("keep", keep, "newest checkpoints kept, besides the best; --average may need more",
               counts());
  options.bind("beam", beam, "beam of the translations that are scored", counts());
  options.bind("alpha", alpha,
               "length penalty of the translations that are scored, by log p / length^alpha",
               at_least(0));
  options.bind(
      "bleu-tokenize", bleu_tokenize,
      "how BLEU splits translations and references: 13a, intl or char for plain text, none "
      "for text split already",
      one_of({"none", "13a", "intl", "char"}));
  options.bind("bleu-lowercase", bleu_lowercase, "BLEU and chrF take upper and lower case alike");
  options.bind("progress-seconds", progress_seconds,
               "between progress lines where the output is no terminal", above(0));

  options.group("Ending");
  options.bind("metric", metric, "of the validation, which says what the best checkpoint is",
               one_of({"loss", "perplexity", "accuracy", "bleu", "chrf"}));
  options.bind("patience", patience,
               "validations in a row without a better metric that end the training; 0: never",
               at_least(0));
  options.bind("time-limit", time_limit,
               "minutes of training and validation after which it ends in good order; 0: none",
               at_least(0));
  options.bind("average", average,
               "checkpoints whose weights are averaged into average.h5 at the end; 0: none",
               counts_or_none());
  options.bind("average-of", average_of, "which of the validated checkpoints",
               one_of({"last", "best"}));
  options.bind("test-weights", test_weights,
               "what is tested at the end; auto: the average if there is one, else with --patience "
               "the best, else the last",
               one_of({"auto", "average", "best", "last"}));
}

std::vector<std::string> TranslationSettings::fixed_options() {
  return {"toy-level",
          "toy-pairs",
          "toy-seed",
          "unit",
          "codes",
          "merges",
          "subword-size",
          "subword-model",
          "subword-normalizer",
          "minimum-count",
          "maximum-vocabulary",
          "init-from",
          "batch-sentences",
          "batch-tokens",
          "seed",
          "metric"};
}

TranslationData TranslationSettings::data() const {
  const OperationTimer timer("corpus", Phase::kOther);
  if (is_toy()) {
    std::vector<std::string> names{files.train_target, files.valid_source, files.valid_target};
    names.insert(names.end(), files.test_source.begin(), files.test_source.end());
    names.insert(names.end(), files.test_target.begin(), files.test_target.end());
    for (const std::string& name : names) {
      check(name.empty(),
            "data: {} needs --train-source beside it; without, the toy corpus is used", name);
    }
    check(files.held_out_test == 0,
          "--held-out-test: needs --train-source beside it; the toy corpus has --test-pairs");
    return toy_translation_data(toy);
  }
  FileDataConfig config = files;
  config.valid_pairs = toy.valid_pairs;
  return file_translation_data(config);
}

TransformerConfig TranslationSettings::transformer_config() const {
  TransformerConfig config = model;
  config.activation = nn::parse_activation(activation);
  config.pre_norm = !post_norm;
  config.tie_output = !untied_output;
  config.scale_embeddings = !unscaled_embeddings;
  check(embedding_dropout == -1 || embedding_dropout >= 0,
        "--embedding-dropout: out of range, got {}; use -1, or 0 or more", embedding_dropout);
  if (embedding_dropout >= 0) config.embedding_dropout = embedding_dropout;
  return config;
}

BatchConfig TranslationSettings::batch_config() const {
  check(batch_sentences > 0 || batch_tokens > 0,
        "--batch-sentences and --batch-tokens: one of them must be above 0");
  return {.maximum_tokens = batch_tokens, .maximum_sentences = batch_sentences, .seed = seed};
}

AdamConfig TranslationSettings::adam_config() const {
  return {.learning_rate = learning_rate,
          .beta1 = beta1,
          .beta2 = beta2,
          .epsilon = epsilon,
          .weight_decay = weight_decay};
}

SearchConfig TranslationSettings::search_config() const { return {.beam = beam, .alpha = alpha}; }

TranslationScoring TranslationSettings::scoring() const {
  return {.bleu = {.tokenizer = parse_bleu_tokenizer(bleu_tokenize), .lowercase = bleu_lowercase},
          .chrf = {.lowercase = bleu_lowercase}};
}

CheckpointRotation::Config TranslationSettings::rotation_config(const std::string& folder) const {
  check(average > 0 || test_weights != "average", "--test-weights: average needs --average");
  const bool best = average_of == "best";
  return {.folder = folder,
          .keep = best ? keep : std::max(keep, average),
          .keep_best = best ? std::max<int64_t>(1, average) : 1,
          .lower_is_better = lower_is_better()};
}

Schedule TranslationSettings::schedule_config() const {
  return {.kind = Schedule::parse(schedule),
          .peak = learning_rate,
          .warmup = warmup,
          .total = steps,
          .width = model.width};
}

}  // namespace gs
