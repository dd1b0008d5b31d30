#include "models/translator.h"

#include <algorithm>
#include <atomic>
#include <exception>
#include <functional>
#include <numeric>

#include "framework/core/parallel.h"
#include "framework/io/module_checkpoint.h"
#include "framework/nn/init.h"
#include "framework/text/utf8.h"
#include "models/transformer_config.h"

namespace gs {
namespace {

constexpr const char* kSourceVocabulary = "source_vocabulary";
constexpr const char* kTargetVocabulary = "target_vocabulary";
constexpr const char* kModelPrefix = "model/";  // in the checkpoint's configuration
// Sentences searched at once: more fill the processor no better and their caches grow.
constexpr int64_t kBatchTokens = 3000;

const std::string& tokenizer_bytes(const Checkpoint& checkpoint, const std::string& name,
                                   const std::string& path) {
  const auto found = checkpoint.tokenizer.find(name);
  check(found != checkpoint.tokenizer.end(),
        "load: {} holds no {}; it is no checkpoint of a translation model", path, name);
  return found->second;
}

std::vector<std::string> words_of(const Tokenizer& tokenizer, std::span<const int32_t> tokens) {
  std::vector<std::string> words;
  for (const int32_t token : tokens) words.emplace_back(tokenizer.token(token));
  return words;
}

// Which sentences are searched together, by number, without the empty ones: those of similar
// length, so that they end together. The longest come first, which leaves the threads busy up to
// the end.
std::vector<std::vector<size_t>> batches_of(const std::vector<std::vector<int32_t>>& sources,
                                            int64_t beam) {
  std::vector<size_t> order(sources.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::stable_sort(order.begin(), order.end(),
                   [&](size_t a, size_t b) { return sources[a].size() > sources[b].size(); });
  std::vector<std::vector<size_t>> batches;
  int64_t tokens = kBatchTokens;
  for (const size_t i : order) {
    if (sources[i].empty()) break;
    if (tokens >= kBatchTokens) {
      batches.emplace_back();
      tokens = 0;
    }
    batches.back().push_back(i);
    tokens += beam * static_cast<int64_t>(sources[i].size());
  }
  return batches;
}

// Calls body(0) to body(count - 1), each in one of the threads. The error of the first call that
// failed is thrown on when all have ended.
void for_each_at_once(size_t count, const std::function<void(size_t)>& body) {
  if (count == 1) return body(0);  // which may use all threads itself
  std::vector<std::exception_ptr> errors(count);
  std::atomic<size_t> next{0};
  const auto work = [&](int64_t, int64_t) {
    for (size_t i = next++; i < count; i = next++) {
      try {
        body(i);
      } catch (...) {
        errors[i] = std::current_exception();
        next = count;
      }
    }
  };
  parallel_for(0, threads(), 1, work);
  for (const std::exception_ptr& error : errors) {
    if (error) std::rethrow_exception(error);
  }
}

}  // namespace

Translator::Translator(TransformerConfig config, Tokenizer source, Tokenizer target)
    : source_(std::move(source)), target_(std::move(target)) {
  config.source_vocabulary = source_.size();
  config.target_vocabulary = target_.size();
  transformer_ = std::make_unique<Transformer>(config);
}

std::unique_ptr<Translator> Translator::load(const std::string& path, Device device) {
  return from_checkpoint(load_model_checkpoint(path), path, device);
}

std::unique_ptr<Translator> Translator::from_checkpoint(const Checkpoint& checkpoint,
                                                        const std::string& path, Device device) {
  Tokenizer source = Tokenizer::from_bytes(tokenizer_bytes(checkpoint, kSourceVocabulary, path));
  Tokenizer target = Tokenizer::from_bytes(tokenizer_bytes(checkpoint, kTargetVocabulary, path));
  std::map<std::string, std::string> text;
  const std::string prefix = kModelPrefix;
  for (const auto& [name, value] : checkpoint.config) {
    if (name.starts_with(prefix)) text[name.substr(prefix.size())] = value;
  }
  const nn::NoInitialValues no_initial_values;  // those of the checkpoint take their place
  auto translator =
      std::make_unique<Translator>(config_from_text(text), std::move(source), std::move(target));
  load_parameters(*translator->transformer_, checkpoint, path);
  translator->transformer_->evaluate();
  if (device != Device::cpu()) translator->transformer_->to(device);
  return translator;
}

void Translator::store(Checkpoint& checkpoint) const {
  store_parameters(*transformer_, checkpoint);
  for (const auto& [name, value] : config_to_text(transformer_->config)) {
    checkpoint.config[kModelPrefix + name] = value;
  }
  checkpoint.tokenizer[kSourceVocabulary] = source_.to_bytes();
  checkpoint.tokenizer[kTargetVocabulary] = target_.to_bytes();
}

std::vector<std::vector<Translation>> Translator::translate(const std::vector<std::string>& lines,
                                                            const SearchConfig& config) const {
  check_config(config);
  std::vector<std::vector<int32_t>> sources;
  for (size_t i = 0; i < lines.size(); ++i) {
    // A line of spaces has tokens where spaces are tokens, and no words all the same.
    sources.push_back(split_words(lines[i]).empty() ? std::vector<int32_t>{}
                                                    : source_.encode(lines[i]));
    const auto tokens = static_cast<int64_t>(sources.back().size());
    check(tokens <= longest_line(),
          "translate: line {} has {} tokens, the model takes {}; split it", i + 1, tokens,
          longest_line());
    if (tokens > 0) sources.back().push_back(kEndId);
  }
  std::vector<std::vector<Translation>> results(
      lines.size(), std::vector<Translation>(static_cast<size_t>(config.nbest)));
  const std::vector<std::vector<size_t>> batches = batches_of(sources, config.beam);
  const auto translate_batch = [&](size_t b) {
    Sequences batch;
    for (const size_t line : batches[b]) batch.append(sources[line]);
    const auto found = gs::translate(*transformer_, batch, config);
    for (size_t i = 0; i < found.size(); ++i) {
      std::vector<Translation>& result = results[batches[b][i]];
      result.clear();
      for (const Hypothesis& hypothesis : found[i]) {
        result.push_back(
            {target_.decode(hypothesis.tokens), hypothesis.log_probability, hypothesis.score});
      }
    }
  };
  if (transformer_->device() == Device::cpu()) {
    for_each_at_once(batches.size(), translate_batch);
  } else {  // its work is done one after the other anyway
    for (size_t b = 0; b < batches.size(); ++b) translate_batch(b);
  }
  return results;
}

Translator::Alignment Translator::attention(const std::string& source_line,
                                            const std::string& target_line) const {
  check(!transformer_->training(), "attention: the model is in training; call evaluate() first");
  const NoGrad no_grad;
  std::vector<int32_t> source = source_.encode(source_line), labels = target_.encode(target_line);
  source.push_back(kEndId);
  std::vector<int32_t> inputs{kBeginId};
  inputs.insert(inputs.end(), labels.begin(), labels.end());
  labels.push_back(kEndId);
  Sequences sources, targets;
  sources.append(source);
  targets.append(inputs);
  Tensor weights;  // (H, T, S), flat
  transformer_->decode(targets, transformer_->encode(sources), &weights);
  const std::vector<double> values = weights.values<double>();
  const size_t columns = source.size(), rows = labels.size();
  const size_t heads = static_cast<size_t>(transformer_->config.heads);
  Alignment alignment{words_of(source_, source), words_of(target_, labels), {}};
  alignment.weights.assign(rows, std::vector<double>(columns, 0));
  for (size_t i = 0; i < values.size(); ++i) {
    alignment.weights[i / columns % rows][i % columns] += values[i] / static_cast<double>(heads);
  }
  return alignment;
}

}  // namespace gs
