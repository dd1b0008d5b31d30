#include "datasets/translation_data.h"

#include <algorithm>

#include "datasets/parallel_corpus.h"
#include "datasets/toy_corpus.h"
#include "framework/core/error.h"

namespace gs {
namespace {

TranslationSplit toy_split(const ToyDataConfig& config, const std::string& name, int64_t first,
                           int64_t count) {
  TranslationSplit split{name, {}, {}};
  ToyCorpus corpus(config.seed, config.level, name);
  for (int64_t i = 0; i < first + count; ++i) {
    ToyPair pair = corpus.next();
    if (i < first) continue;
    split.source.push_back(std::move(pair.source));
    split.target.push_back(std::move(pair.target));
  }
  return split;
}

TranslationSplit read_split(const std::string& name, const std::string& source,
                            const std::string& target, int64_t maximum_words,
                            std::vector<std::string>& notes) {
  ParallelCorpusConfig config;
  config.maximum_words = maximum_words;
  ParallelCorpus corpus = target.empty() ? read_parallel_tsv(source, config)
                                         : read_parallel_corpus(source, target, config);
  notes.push_back(corpus.report.summary());
  return {name, std::move(corpus.source), std::move(corpus.target)};
}

// Moves the last pairs of one split to another.
TranslationSplit split_off(TranslationSplit& from, const std::string& name, int64_t count) {
  const auto pairs = static_cast<int64_t>(from.source.size());
  check(pairs > count,
        "data: {} pairs are too few to hold out {} for validation; give validation files", pairs,
        count);
  TranslationSplit split{name, {}, {}};
  for (auto [own, moved] :
       {std::pair(&from.source, &split.source), std::pair(&from.target, &split.target)}) {
    moved->assign(std::make_move_iterator(own->end() - count), std::make_move_iterator(own->end()));
    own->resize(own->size() - static_cast<size_t>(count));
  }
  return split;
}

}  // namespace

TranslationData toy_translation_data(const ToyDataConfig& config) {
  TranslationData data;
  data.train = toy_split(config, "train", 0, config.train_pairs);
  data.tests.push_back(toy_split(config, "iid", 0, config.test_pairs));
  // Validation must not be the test: it takes the pairs that follow.
  data.valid = toy_split(config, "iid", config.test_pairs, config.valid_pairs);
  data.valid.name = "valid";
  for (const char* name : {"pair", "role", "nested", "long"}) {
    if (ToyCorpus::has(config.level, name))
      data.tests.push_back(toy_split(config, name, 0, config.test_pairs));
  }
  return data;
}

TranslationData file_translation_data(const FileDataConfig& config) {
  check(!config.valid_source.empty() || config.valid_target.empty(),
        "data: the validation target {} has no source; name both", config.valid_target);
  check(!config.test_source.empty() || config.test_target.empty(),
        "data: the test target {} has no source; name both", config.test_target);
  TranslationData data;
  data.train = read_split("train", config.train_source, config.train_target, config.maximum_words,
                          data.notes);
  data.valid = config.valid_source.empty()
                   ? split_off(data.train, "valid", config.valid_pairs)
                   : read_split("valid", config.valid_source, config.valid_target,
                                config.maximum_words, data.notes);
  if (!config.test_source.empty()) {
    data.tests.push_back(read_split("test", config.test_source, config.test_target,
                                    config.maximum_words, data.notes));
  }
  return data;
}

}  // namespace gs
