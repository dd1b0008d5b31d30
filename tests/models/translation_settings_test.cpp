#include "models/translation_settings.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/support/support.h"

namespace gs {
namespace {

using test::error_of;
using testing::HasSubstr;

// Every option with a value that is not its default.
const std::vector<std::pair<std::string, std::string>> kArguments{
    {"train-source", "a.en"},
    {"train-target", "a.de"},
    {"valid-source", "b.en"},
    {"valid-target", "b.de"},
    {"test-source", "c.en,d.en"},
    {"test-target", "c.de,d.de"},
    {"maximum-words", "99"},
    {"toy-level", "3"},
    {"toy-pairs", "1234"},
    {"toy-seed", "18446744073709551615"},
    {"valid-pairs", "77"},
    {"held-out-test", "66"},
    {"split-seed", "9"},
    {"test-pairs", "88"},
    {"unit", "character"},
    {"codes", "merges"},
    {"merges", "500"},
    {"subword-size", "1000"},
    {"subword-model", "bpe"},
    {"subword-normalizer", "nmt_nfkc"},
    {"minimum-count", "2"},
    {"maximum-vocabulary", "5000"},
    {"width", "96"},
    {"heads", "6"},
    {"feed-forward", "200"},
    {"encoder-layers", "0"},
    {"decoder-layers", "7"},
    {"maximum-length", "100"},
    {"post-norm", "true"},
    {"activation", "gelu"},
    {"share-embeddings", "true"},
    {"untied-output", "true"},
    {"unscaled-embeddings", "true"},
    {"output-bias", "true"},
    {"learned-positions", "true"},
    {"dropout", "0.1"},
    {"embedding-dropout", "0.15"},
    {"attention-dropout", "0.2"},
    {"activation-dropout", "0.3"},
    {"init-from", "old.h5"},
    {"steps", "321"},
    {"batch-sentences", "0"},
    {"batch-tokens", "4096"},
    {"accumulate", "3"},
    {"learning-rate", "0.5"},
    {"schedule", "noam"},
    {"warmup", "40"},
    {"beta1", "0.8"},
    {"beta2", "0.95"},
    {"epsilon", "1e-06"},
    {"weight-decay", "0.01"},
    {"label-smoothing", "0.15"},
    {"clip", "2.5"},
    {"moving-average", "0.999"},
    {"seed", "42"},
    {"on-non-finite", "skip"},
    {"precision", "bfloat16"},
    {"validate-every", "50"},
    {"keep", "9"},
    {"beam", "4"},
    {"alpha", "0.6"},
    {"bleu-tokenize", "13a"},
    {"bleu-lowercase", "true"},
    {"progress-seconds", "1.5"},
    {"metric", "bleu"},
    {"patience", "6"},
    {"time-limit", "20.5"},
    {"average", "12"},
    {"average-of", "best"},
    {"test-weights", "best"}};

struct Bound {
  TranslationSettings settings;
  Options options{"train", "Trains."};
  Bound() { settings.bind(options); }

  bool parse(const std::vector<std::pair<std::string, std::string>>& arguments) {
    std::vector<std::string> words{"train"};
    for (const auto& [name, value] : arguments) words.push_back("--" + name + "=" + value);
    std::vector<const char*> pointers;
    for (const std::string& word : words) pointers.push_back(word.c_str());
    return options.parse(static_cast<int>(pointers.size()), pointers.data());
  }
};

void expect_changed(const TranslationSettings& s) {
  EXPECT_EQ(s.files.train_source, "a.en");
  EXPECT_EQ(s.files.train_target, "a.de");
  EXPECT_EQ(s.files.valid_source, "b.en");
  EXPECT_EQ(s.files.valid_target, "b.de");
  EXPECT_EQ(s.files.test_source, (std::vector<std::string>{"c.en", "d.en"}));
  EXPECT_EQ(s.files.test_target, (std::vector<std::string>{"c.de", "d.de"}));
  EXPECT_EQ(s.files.maximum_words, 99);
  EXPECT_EQ(s.toy.level, 3);
  EXPECT_EQ(s.toy.train_pairs, 1234);
  EXPECT_EQ(s.toy.seed, 18446744073709551615u);
  EXPECT_EQ(s.toy.valid_pairs, 77);
  EXPECT_EQ(s.files.held_out_test, 66);
  EXPECT_EQ(s.files.split_seed, 9u);
  EXPECT_EQ(s.toy.test_pairs, 88);
  EXPECT_EQ(s.tokens.unit, "character");
  EXPECT_EQ(s.tokens.codes, "merges");
  EXPECT_EQ(s.tokens.merges, 500);
  EXPECT_EQ(s.tokens.subword_size, 1000);
  EXPECT_EQ(s.tokens.subword_model, "bpe");
  EXPECT_EQ(s.tokens.subword_normalizer, "nmt_nfkc");
  EXPECT_EQ(s.tokens.minimum_count, 2);
  EXPECT_EQ(s.tokens.maximum_vocabulary, 5000);
  EXPECT_EQ(s.init_from, "old.h5");
  EXPECT_EQ(s.steps, 321);
  EXPECT_EQ(s.accumulate, 3);
  EXPECT_EQ(s.label_smoothing, 0.15);
  EXPECT_EQ(s.clip, 2.5);
  EXPECT_EQ(s.on_non_finite, "skip");
  EXPECT_EQ(s.precision, "bfloat16");
  EXPECT_EQ(s.validate_every, 50);
  EXPECT_EQ(s.keep, 9);
  EXPECT_EQ(s.search_config().beam, 4);
  EXPECT_EQ(s.search_config().alpha, 0.6);
  EXPECT_EQ(s.scoring().bleu.tokenizer, BleuTokenizer::k13a);
  EXPECT_TRUE(s.scoring().bleu.lowercase && s.scoring().chrf.lowercase);
  EXPECT_EQ(s.progress_seconds, 1.5);
  EXPECT_EQ(s.metric, "bleu");
  EXPECT_FALSE(s.lower_is_better());
  EXPECT_EQ(s.patience, 6);
  EXPECT_EQ(s.time_limit, 20.5);
  EXPECT_EQ(s.average, 12);
  EXPECT_EQ(s.average_of, "best");
  EXPECT_EQ(s.test_weights, "best");
  EXPECT_FALSE(s.is_toy());

  const TransformerConfig model = s.transformer_config();
  EXPECT_EQ(model.width, 96);
  EXPECT_EQ(model.heads, 6);
  EXPECT_EQ(model.feed_forward_width, 200);
  EXPECT_EQ(model.encoder_layers, 0);
  EXPECT_EQ(model.decoder_layers, 7);
  EXPECT_EQ(model.maximum_length, 100);
  EXPECT_FALSE(model.pre_norm);
  EXPECT_EQ(model.activation, nn::Activation::kGelu);
  EXPECT_TRUE(model.share_embeddings);
  EXPECT_FALSE(model.tie_output);
  EXPECT_FALSE(model.scale_embeddings);
  EXPECT_TRUE(model.output_bias);
  EXPECT_TRUE(model.learned_positions);
  EXPECT_EQ(model.dropout, 0.1);
  EXPECT_EQ(model.embedding_dropout, 0.15);
  EXPECT_EQ(s.moving_average, 0.999);
  EXPECT_EQ(model.attention_dropout, 0.2);
  EXPECT_EQ(model.activation_dropout, 0.3);

  const BatchConfig batches = s.batch_config();
  EXPECT_EQ(batches.maximum_tokens, 4096);
  EXPECT_EQ(batches.maximum_sentences, 0);
  EXPECT_EQ(batches.seed, 42u);
  EXPECT_TRUE(batches.shuffle);
  const AdamConfig adam = s.adam_config();
  EXPECT_EQ(adam.beta1, 0.8);
  EXPECT_EQ(adam.beta2, 0.95);
  EXPECT_EQ(adam.epsilon, 1e-6);
  EXPECT_EQ(adam.weight_decay, 0.01);
  EXPECT_TRUE(adam.decoupled_decay);
  const Schedule schedule = s.schedule_config();
  EXPECT_EQ(schedule.kind, Schedule::Kind::kNoam);
  EXPECT_EQ(schedule.peak, 0.5);
  EXPECT_EQ(schedule.warmup, 40);
  EXPECT_EQ(schedule.total, 321);
  EXPECT_EQ(schedule.width, 96);
}

TEST(TranslationSettings, EveryOptionReachesItsField) {
  Bound bound;
  ASSERT_TRUE(bound.parse(kArguments));
  expect_changed(bound.settings);
  // The list above is complete, and none of its values is a default.
  const Options::Values values = bound.options.values(), defaults = Bound().options.values();
  ASSERT_EQ(values.size(), kArguments.size());
  for (size_t i = 0; i < values.size(); ++i) {
    EXPECT_EQ(values[i].first, kArguments[i].first);
    EXPECT_NE(values[i].second, defaults[i].second) << values[i].first;
  }
}

TEST(TranslationSettings, ComeBackFromStoredValues) {
  Bound written, read;
  ASSERT_TRUE(written.parse(kArguments));
  ASSERT_TRUE(read.parse({}));
  EXPECT_TRUE(read.options.restore(written.options.values()).empty());
  expect_changed(read.settings);
  EXPECT_EQ(read.options.values(), written.options.values());

  // What the command line says goes before what was stored, and is told.
  Bound other;
  ASSERT_TRUE(other.parse({{"steps", "500"}}));
  EXPECT_EQ(other.options.restore(written.options.values()).size(), 1u);
  EXPECT_EQ(other.settings.steps, 500);
  EXPECT_EQ(other.settings.schedule_config().total, 500);
  EXPECT_EQ(other.settings.warmup, 40);
}

TEST(TranslationSettings, FixedOptionsAreOptions) {
  Bound bound;
  ASSERT_TRUE(bound.parse({}));
  for (const std::string& name : TranslationSettings::fixed_options())
    EXPECT_FALSE(bound.options.is_set(name));  // an unknown name throws
}

TEST(TranslationSettings, TheDefaultsAreTheToyRun) {
  Bound bound;
  ASSERT_TRUE(bound.parse({}));
  EXPECT_TRUE(bound.settings.is_toy());
  EXPECT_EQ(bound.settings.tokens.unit, "word");
  const TransformerConfig model = bound.settings.transformer_config();
  EXPECT_TRUE(model.pre_norm);
  EXPECT_TRUE(model.tie_output);
  EXPECT_TRUE(model.scale_embeddings);
}

TEST(TranslationSettings, RefuseValuesThatMakeNoSense) {
  const auto error = [](const std::string& name, const std::string& value) {
    Bound bound;
    return error_of([&] { (void)bound.parse({{name, value}}); });
  };
  for (const auto& [name, value] :
       std::vector<std::pair<std::string, std::string>>{{"width", "0"},
                                                        {"heads", "-1"},
                                                        {"encoder-layers", "-1"},
                                                        {"decoder-layers", "0"},
                                                        {"maximum-length", "0"},
                                                        {"dropout", "1"},
                                                        {"dropout", "nan"},
                                                        {"embedding-dropout", "-1.5"},
                                                        {"embedding-dropout", "1"},
                                                        {"moving-average", "1"},
                                                        {"steps", "0"},
                                                        {"accumulate", "0"},
                                                        {"learning-rate", "0"},
                                                        {"schedule", "magic"},
                                                        {"warmup", "-1"},
                                                        {"beta1", "1"},
                                                        {"beta2", "1.5"},
                                                        {"epsilon", "0"},
                                                        {"weight-decay", "-1"},
                                                        {"label-smoothing", "1"},
                                                        {"clip", "0"},
                                                        {"toy-level", "4"},
                                                        {"unit", "sentence"},
                                                        {"on-non-finite", "pray"},
                                                        {"activation", "tanh"},
                                                        {"keep", "0"},
                                                        {"beam", "0"},
                                                        {"validate-every", "0"},
                                                        {"seed", "-1"},
                                                        {"metric", "luck"},
                                                        {"patience", "-1"},
                                                        {"time-limit", "-0.5"},
                                                        {"average", "-1"},
                                                        {"average-of", "all"},
                                                        {"test-weights", "all"},
                                                        {"steps", "1e3x"}}) {
    EXPECT_EQ(error(name, value).rfind("--" + name, 0), 0u) << error(name, value);
  }
  TranslationSettings settings;
  EXPECT_FALSE(settings.transformer_config().embedding_dropout.has_value());
  settings.embedding_dropout = 0;
  EXPECT_EQ(settings.transformer_config().embedding_dropout, 0);
  settings.embedding_dropout = -0.5;
  EXPECT_EQ(error_of([&] { settings.transformer_config(); }),
            "--embedding-dropout: out of range, got -0.5; use -1, or 0 or more");
  settings.batch_sentences = 0;
  EXPECT_EQ(error_of([&] { settings.batch_config(); }),
            "--batch-sentences and --batch-tokens: one of them must be above 0");
}

// What an average needs is kept, however small --keep is.
TEST(TranslationSettings, KeepTheCheckpointsOfTheAverage) {
  const auto config = [](int64_t average, const char* of, const char* metric) {
    TranslationSettings settings;
    settings.keep = 4;
    settings.average = average;
    settings.average_of = of;
    settings.metric = metric;
    return settings.rotation_config("runs/x");
  };
  for (const char* of : {"last", "best"}) {
    EXPECT_EQ(config(0, of, "loss").folder, "runs/x");
    EXPECT_EQ(config(0, of, "loss").keep, 4);
    EXPECT_EQ(config(0, of, "loss").keep_best, 1);
  }
  EXPECT_EQ(config(3, "last", "loss").keep, 4);
  EXPECT_EQ(config(7, "last", "loss").keep, 7);
  EXPECT_EQ(config(7, "last", "loss").keep_best, 1);
  EXPECT_EQ(config(7, "best", "loss").keep, 4);
  EXPECT_EQ(config(7, "best", "loss").keep_best, 7);
  for (const char* metric : {"loss", "perplexity"})
    EXPECT_TRUE(config(1, "last", metric).lower_is_better);
  for (const char* metric : {"accuracy", "bleu", "chrf"})
    EXPECT_FALSE(config(1, "last", metric).lower_is_better);
  TranslationSettings settings;
  settings.test_weights = "average";
  EXPECT_EQ(error_of([&] { settings.rotation_config("x"); }),
            "--test-weights: average needs --average");
}

// Files that would be passed over in silence.
TEST(TranslationSettings, RefuseFilesBesideTheToyCorpus) {
  for (auto field : {&FileDataConfig::train_target, &FileDataConfig::valid_source,
                     &FileDataConfig::valid_target}) {
    TranslationSettings settings;
    settings.files.*field = "some.txt";
    EXPECT_THAT(error_of([&] { settings.data(); }),
                HasSubstr("data: some.txt needs --train-source beside it"));
  }
  for (auto field : {&FileDataConfig::test_source, &FileDataConfig::test_target}) {
    TranslationSettings settings;
    settings.files.*field = {"some.txt"};
    EXPECT_THAT(error_of([&] { settings.data(); }),
                HasSubstr("data: some.txt needs --train-source beside it"));
  }
  TranslationSettings settings;
  settings.files.held_out_test = 5;
  EXPECT_EQ(error_of([&] { settings.data(); }),
            "--held-out-test: needs --train-source beside it; the toy corpus has --test-pairs");
}

TEST(TranslationSettings, GiveTheirData) {
  TranslationSettings settings;
  settings.toy = {.seed = 3, .level = 1, .train_pairs = 5, .valid_pairs = 2, .test_pairs = 3};
  const TranslationData toy = settings.data();
  EXPECT_EQ(toy.train.source.size(), 5u);
  EXPECT_EQ(toy.valid.source.size(), 2u);
  const test::TemporaryDirectory folder;
  settings.files.train_source = folder.write("pairs.tsv", "a\tb\nc\td\ne\tf\n");
  settings.toy.valid_pairs = 1;
  const TranslationData files = settings.data();
  EXPECT_EQ(files.train.source, (std::vector<std::string>{"a", "e"}));
  EXPECT_EQ(files.valid.target, std::vector<std::string>{"d"});
}

}  // namespace
}  // namespace gs
