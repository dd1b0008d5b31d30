#include "models/translator.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "framework/core/random.h"
#include "framework/io/module_checkpoint.h"
#include "models/evaluation.h"
#include "tests/support/support.h"

namespace gs {
namespace {

using test::error_of;
using testing::ElementsAre;
using testing::HasSubstr;

Vocabulary vocabulary(const std::vector<std::string>& lines) {
  TokenCounts counts(TokenUnit::kWord);
  counts.add_lines(lines);
  return Vocabulary(counts);
}

std::unique_ptr<Translator> small_translator(uint64_t seed, bool share = false) {
  set_seed(seed);
  TransformerConfig config;
  config.width = 12;
  config.heads = 3;
  config.feed_forward_width = 16;
  config.maximum_length = 9;
  config.share_embeddings = share;
  const Vocabulary source = vocabulary({"a b c d e f"});
  auto translator =
      std::make_unique<Translator>(config, source, share ? source : vocabulary({"u v w x y z q"}));
  translator->transformer().evaluate();
  return translator;
}

const std::vector<std::string> kLines{"a b", "c d e f a", "unheard words", "f", "b b b b b b b b"};

std::string saved(const Translator& translator, const std::string& path) {
  Checkpoint checkpoint;
  translator.store(checkpoint);
  save_checkpoint(path, checkpoint);
  return path;
}

TEST(Translator, ComesBackFromItsCheckpointAlone) {
  const test::TemporaryDirectory folder;
  for (const bool share : {false, true}) {
    const auto before = small_translator(3, share);
    const std::string path = saved(*before, folder.file("model.h5"));
    const auto after = Translator::load(path);
    EXPECT_FALSE(after->transformer().training());
    EXPECT_EQ(after->source_tokenizer(), before->source_tokenizer());
    EXPECT_EQ(after->target_tokenizer(), before->target_tokenizer());
    const auto expected = before->transformer().named_parameters(),
               actual = after->transformer().named_parameters();
    ASSERT_EQ(actual.size(), expected.size());
    for (size_t i = 0; i < actual.size(); ++i) {
      EXPECT_EQ(actual[i].path, expected[i].path);
      EXPECT_EQ(actual[i].parameter->tensor().values<float>(),
                expected[i].parameter->tensor().values<float>());
    }
    EXPECT_EQ(after->transformer().parameter_count(), before->transformer().parameter_count());
    const SearchConfig search{.beam = 3, .nbest = 2};
    const auto a = before->translate(kLines, search), b = after->translate(kLines, search);
    for (size_t i = 0; i < kLines.size(); ++i) {
      ASSERT_EQ(a[i].size(), 2u);
      for (size_t k = 0; k < 2; ++k) {
        EXPECT_EQ(a[i][k].text, b[i][k].text);
        EXPECT_EQ(a[i][k].score, b[i][k].score);
        EXPECT_EQ(a[i][k].log_probability, b[i][k].log_probability);
      }
    }
  }
}

// Words of one language, SentencePiece for the other, and so on: a checkpoint holds them all.
TEST(Translator, TakesTokenizersOfEveryKind) {
  const test::TemporaryDirectory folder;
  const std::vector<std::string> text{"ab abc", "b c"};
  TokenCounts characters(TokenUnit::kCharacter);
  characters.add_lines(text);
  const std::vector<Tokenizer> kinds{
      vocabulary(text), Vocabulary(characters),
      BytePairVocabulary(BytePairs::parse("#version: 0.2\na b\n", "codes"), text),
      SentencePiece::train(text, {.vocabulary_size = 264})};
  TransformerConfig config;
  config.width = 8;
  config.heads = 2;
  config.feed_forward_width = 8;
  config.encoder_layers = config.decoder_layers = 1;
  config.maximum_length = 12;
  for (size_t i = 0; i < kinds.size(); ++i) {
    set_seed(i);
    const Translator before(config, kinds[i], kinds[(i + 1) % kinds.size()]);
    const auto after = Translator::load(saved(before, folder.file("model.h5")));
    EXPECT_EQ(after->source_tokenizer(), kinds[i]);
    EXPECT_EQ(after->target_tokenizer(), kinds[(i + 1) % kinds.size()]);
    EXPECT_EQ(after->transformer().config.source_vocabulary, kinds[i].size());
    // No pieces are left in the text, and a line without words has no translation.
    const auto found = after->translate({"abc ab", "  ", ""}, {.beam = 2});
    EXPECT_EQ(found[0][0].text.find("@@"), std::string::npos);
    EXPECT_EQ(found[0][0].text.find("\u2581"), std::string::npos);
    EXPECT_LT(found[0][0].score, 0);
    EXPECT_EQ(found[1][0].text, "");
    EXPECT_EQ(found[1][0].score, 0);
    EXPECT_EQ(found[2][0].score, 0);
  }
}

// One line in, one line out.
// marian-nmt/marian-dev#357, huggingface/transformers#14337
TEST(Translator, LinesWithoutWordsGiveEmptyTranslationsInTheirPlace) {
  const auto translator = small_translator(4);
  const SearchConfig search{.beam = 2, .nbest = 2};
  const std::vector<std::string> lines{"a b", "", "   ", "\u00a0", "c"};
  const auto found = translator->translate(lines, search);
  ASSERT_EQ(found.size(), 5u);
  for (const size_t i : {1, 2, 3}) {
    ASSERT_EQ(found[i].size(), 2u);
    for (const Translation& translation : found[i]) {
      EXPECT_EQ(translation.text, "");
      EXPECT_EQ(translation.score, 0);
    }
  }
  for (const size_t i : {0, 4}) {
    const auto alone = translator->translate({lines[i]}, search)[0];
    ASSERT_EQ(found[i].size(), 2u);
    for (size_t k = 0; k < 2; ++k) {
      EXPECT_EQ(found[i][k].text, alone[k].text);
      EXPECT_NEAR(found[i][k].score, alone[k].score, 1e-5);
    }
  }
  EXPECT_NE(found[0][0].score, found[4][0].score);
  EXPECT_TRUE(translator->translate({}, search).empty());
}

// More lines than are searched at once, of all lengths: the order stays.
TEST(Translator, KeepsTheOrderOfManyLines) {
  const auto translator = small_translator(5);
  std::vector<std::string> lines;
  for (int i = 0; i < 700; ++i) {
    std::string line;
    for (int k = 0; k < (i * 5) % 9; ++k)
      line += std::string(k == 0 ? "" : " ") + static_cast<char>('a' + (i + k * k) % 6);
    lines.push_back(line);
  }
  const auto all = translator->translate(lines, {});
  ASSERT_EQ(all.size(), lines.size());
  for (size_t i = 0; i < lines.size(); i += 61) {
    const auto alone = translator->translate({lines[i]}, {})[0];
    EXPECT_EQ(all[i][0].text, alone[0].text) << lines[i];
    EXPECT_NEAR(all[i][0].score, alone[0].score, 1e-5);
  }
}

TEST(Translator, RefusesWhatItCannotTranslate) {
  const auto translator = small_translator(6);
  EXPECT_EQ(error_of([&] {
              translator->translate({"a", "a a a a a a a a a"}, {});
            }),
            "translate: line 2 has 9 tokens, the model takes 8; split it");
  EXPECT_EQ(translator->translate({"a a a a a a a a"}, {}).size(), 1u);
  EXPECT_THAT(error_of([&] { translator->translate({"a \xff"}, {}); }), HasSubstr("UTF-8"));
  EXPECT_THAT(error_of([&] { translator->translate({"a"}, {.beam = 1, .nbest = 2}); }),
              HasSubstr("nbest"));
  EXPECT_THAT(error_of([&] { translator->translate({""}, {.nbest = -1}); }), HasSubstr("nbest -1"));
  translator->transformer().train();
  EXPECT_THAT(error_of([&] { translator->translate({"a"}, {}); }), HasSubstr("in training"));
  EXPECT_THAT(error_of([&] { translator->attention("a", "u"); }), HasSubstr("in training"));
}

// A model that has come to NaN gives an error, no crash and no text.
TEST(Translator, RefusesAModelOfNaN) {
  const auto translator = small_translator(6);
  Array weight = translator->transformer().parameters()[1].parameter->tensor().value();
  weight.data<float>()[0] = std::numeric_limits<float>::quiet_NaN();
  EXPECT_THAT(error_of([&] { translate_best(*translator, {"a b"}, {.beam = 2}); }),
              HasSubstr("are NaN"));
}

TEST(Translator, RefusesForeignCheckpoints) {
  const test::TemporaryDirectory folder;
  const std::string path = folder.file("foreign.h5");
  Checkpoint checkpoint;
  checkpoint.parameters["weight"] = Array::zeros({2}, kFloat32);
  save_checkpoint(path, checkpoint);
  EXPECT_EQ(
      error_of([&] { Translator::load(path); }),
      "load: " + path + " holds no source_vocabulary; it is no checkpoint of a translation model");
  EXPECT_THAT(error_of([&] { Translator::load(folder.file("none.h5")); }), HasSubstr("none.h5"));
  EXPECT_THAT(error_of([&] { Translator::load(folder.write("text.h5", "hello")); }),
              HasSubstr("text.h5"));

  const auto translator = small_translator(7);
  const auto error_with = [&](auto change) {
    Checkpoint changed;
    translator->store(changed);
    change(changed);
    return error_of([&] { Translator::from_checkpoint(changed, "x.h5"); });
  };
  EXPECT_THAT(error_with([](Checkpoint& c) { c.config.erase("model/width"); }),
              HasSubstr("the model's width is missing"));
  EXPECT_THAT(error_with([](Checkpoint& c) { c.tokenizer["target_vocabulary"] = "junk"; }),
              HasSubstr("vocabulary"));
  EXPECT_THAT(error_with([](Checkpoint& c) {
                c.parameters.erase("encoder/norm/weight");
                c.parameters["more"] = Array::zeros({1}, kFloat32);
              }),
              HasSubstr("1 name missing (encoder/norm/weight), 1 unexpected (more) in x.h5"));
  // A vocabulary that does not fit the tables.
  EXPECT_THAT(error_with([](Checkpoint& c) {
                c.tokenizer["source_vocabulary"] = c.tokenizer["target_vocabulary"];
              }),
              HasSubstr("source_embedding/weight is [10, 12] float32, not [11, 12] float32"));
}

TEST(Translator, AttentionOfEachWordSumsToOne) {
  const auto translator = small_translator(8);
  const Translator::Alignment alignment = translator->attention("a  b new", "u v w x");
  EXPECT_THAT(alignment.source, ElementsAre("a", "b", "<unk>", "</s>"));
  EXPECT_THAT(alignment.target, ElementsAre("u", "v", "w", "x", "</s>"));
  ASSERT_EQ(alignment.weights.size(), 5u);
  for (const std::vector<double>& row : alignment.weights) {
    ASSERT_EQ(row.size(), 4u);
    double sum = 0;
    for (const double weight : row) {
      EXPECT_GE(weight, 0);
      sum += weight;
    }
    EXPECT_NEAR(sum, 1, 1e-5);
  }
  EXPECT_NE(alignment.weights[0], alignment.weights[1]);
  // They are those of the whole pass: the first row sees no later target word.
  EXPECT_EQ(translator->attention("a b new", "u").weights[0], alignment.weights[0]);
  EXPECT_THAT(translator->attention("", "").weights, ElementsAre(ElementsAre(1)));
  EXPECT_THAT(error_of([&] { translator->attention("a", "u u u u u u u u u"); }),
              HasSubstr("limit of 9"));
}

}  // namespace
}  // namespace gs
