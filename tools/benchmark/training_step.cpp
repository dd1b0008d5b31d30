// Times the training step of translation Transformers (forward, loss, backward, clipping, Adam) on
// sentences as long as Multi30k's, or all of one length, and prints one JSON line.
// compare_training.py runs it beside PyTorch on the CPU, tools/gpu_check.sh on CUDA devices.
#include <sys/resource.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <fstream>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "datasets/batches.h"
#include "framework/backend/gemm.h"
#include "framework/backend/memory.h"
#include "framework/core/parallel.h"
#include "framework/core/profiler.h"
#include "framework/core/random.h"
#include "framework/optim/adam.h"
#include "framework/optim/clip.h"
#include "framework/train/device_option.h"
#include "framework/train/options.h"
#include "framework/train/program.h"
#include "models/evaluation.h"
#include "models/precision.h"
#include "models/recorded_steps.h"
#include "models/transformer.h"

namespace gs {
namespace {

using Lengths =
    std::vector<std::pair<int64_t, int64_t>>;  // (source, target) tokens, marks included

double seconds_now() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

struct Size {
  const char* name;
  int64_t width, heads, feed_forward_width, layers, vocabulary;  // layers of each stack
};
constexpr Size kSizes[] = {{"tiny", 128, 4, 256, 4, 6000},
                           {"tiny10k", 128, 4, 512, 4, 10000},
                           {"small", 256, 8, 1024, 3, 8000},
                           {"base", 512, 8, 2048, 6, 37000},
                           {"big", 1024, 16, 4096, 6, 33000}};

TransformerConfig config_named(const std::string& name) {
  const Size& size = *std::find_if(std::begin(kSizes), std::end(kSizes),
                                   [&](const Size& s) { return s.name == name; });
  TransformerConfig config;
  config.source_vocabulary = config.target_vocabulary = size.vocabulary;
  config.width = size.width;
  config.heads = size.heads;
  config.feed_forward_width = size.feed_forward_width;
  config.encoder_layers = config.decoder_layers = size.layers;
  config.pre_norm = false;
  config.share_embeddings = true;
  config.output_bias = true;
  config.dropout = 0.1;
  return config;
}

std::vector<Lengths> read_lengths(const std::string& path) {
  std::ifstream file(path);
  check(file.good(), "lengths: cannot open {}; name another with --lengths", path);
  std::vector<Lengths> batches;
  try {
    batches = nlohmann::json::parse(file).get<std::vector<Lengths>>();
  } catch (const nlohmann::json::exception& error) {
    fail("lengths: {} must hold lists of pairs [source, target], got {}", path, error.what());
  }
  check(!batches.empty(), "lengths: {} holds no batch; name another with --lengths", path);
  for (const Lengths& batch : batches) {
    check(!batch.empty(), "lengths: a batch in {} is empty; leave it out", path);
    for (const auto& [source, target] : batch) {
      check(source >= 1 && target >= 1,
            "lengths: sentences in {} need a token at least, got {} and {}", path, source, target);
    }
  }
  return batches;
}

// A batch of random tokens: each target is as long as its labels.
Batch random_batch(const Lengths& lengths, int64_t vocabulary, uint64_t& place) {
  const RandomStream stream{1, 1};
  const auto token = [&] {
    return static_cast<int32_t>(3 +
                                stream.words(place++)[0] % static_cast<uint32_t>(vocabulary - 3));
  };
  Batch batch;
  std::vector<int32_t> source, inputs, labels;
  for (const auto& [sources, targets] : lengths) {
    source.resize(static_cast<size_t>(sources));
    std::generate(source.begin(), source.end(), token);
    inputs.assign(1, 1);
    labels.clear();
    for (int64_t t = 1; t < targets; ++t) labels.push_back(inputs.emplace_back(token()));
    labels.push_back(2);
    batch.source.append(source);
    batch.target_inputs.append(inputs);
    batch.target_labels.append(labels);
  }
  return batch;
}

// Multiply-adds counted twice, of real tokens; forward and backward are three times the forward.
double model_operations(const TransformerConfig& c, const Lengths& lengths) {
  double s = 0, t = 0, ss = 0, tt = 0, st = 0;
  for (const auto& [sources, targets] : lengths) {
    const double a = static_cast<double>(sources), b = static_cast<double>(targets);
    s += a, t += b, ss += a * a, tt += b * b, st += a * b;
  }
  const double d = static_cast<double>(c.width), f = static_cast<double>(c.feed_forward_width),
               v = static_cast<double>(c.target_vocabulary),
               e = static_cast<double>(c.encoder_layers), r = static_cast<double>(c.decoder_layers);
  const double linear = e * s * (8 * d * d + 4 * d * f) +
                        r * (t * (12 * d * d + 4 * d * f) + s * 4 * d * d) + 2 * t * d * v;
  return 3 * (linear + 4 * d * (e * ss + r * (tt + st)));
}

// The best rate of a large square product: what the model's products could reach at most.
double product_limit() {
  constexpr int64_t kSize = 1024;
  const std::vector<float> a(kSize * kSize, 1), b(kSize * kSize, 1);
  std::vector<float> c(kSize * kSize);
  double best = 1e9;
  for (int i = 0; i < 20; ++i) {
    const double start = seconds_now();
    backend::gemm(Cpu(),
                  {.m = kSize,
                   .n = kSize,
                   .k = kSize,
                   .a_stride = kSize,
                   .b_stride = kSize,
                   .c_stride = kSize},
                  a.data(), b.data(), c.data());
    best = std::min(best, seconds_now() - start);
  }
  return 2.0 * kSize * kSize * kSize / best;
}

double quantile(std::vector<double> values, double share) {
  std::sort(values.begin(), values.end());
  return values[static_cast<size_t>(std::lround(share * static_cast<double>(values.size() - 1)))];
}

// Steps as training takes them: one at once on the CPU; on a device they are recorded and replayed,
// and their losses are read some steps later.
class Trainer {
 public:
  Trainer(const TransformerConfig& config, Device device, const std::string& precision)
      : transformer_(config),
        adam_(placed(device, precision),
              {.learning_rate = kLearningRate, .beta2 = 0.98, .epsilon = 1e-9}) {
    if (device == Device::cpu()) return;
    recorded_ = std::make_unique<RecordedSteps>(
        transformer_, adam_, nullptr,
        RecordedSteps::Config{.label_smoothing = kSmoothing, .maximum_norm = kMaximumNorm});
  }

  void start(const Batch& batch) {
    if (recorded_ == nullptr) return step_at_once(batch);
    if (recorded_->full()) loss_ = recorded_->wait().loss;
    recorded_->start({batch}, kLearningRate);
  }

  // Waits for all steps; gives the last one's loss, summed over the labels.
  double settle() {
    while (recorded_ != nullptr && recorded_->pending() > 0) loss_ = recorded_->wait().loss;
    return loss_;
  }

  int64_t replays() const { return recorded_ == nullptr ? 0 : recorded_->replays(); }

 private:
  static constexpr double kLearningRate = 1e-4, kSmoothing = 0.1, kMaximumNorm = 1;

  Transformer& placed(Device device, const std::string& precision) {
    transformer_.to(device);
    set_precision(transformer_, precision);
    return transformer_;
  }

  void step_at_once(const Batch& batch) {
    const Loss loss =
        transformer_.loss(batch.target_inputs, transformer_.encode(batch.source),
                          labels_of(batch, Device::cpu()), {.label_smoothing = kSmoothing});
    const auto tokens = static_cast<double>(batch.target_labels.tokens.size());
    loss.sum.backward(Tensor(Array::full({}, 1 / tokens, loss.sum.dtype())));
    adam_.step({.gradient_scale = clip_factor(gradient_norm(transformer_), kMaximumNorm)});
    loss_ = loss.sum.item();
  }

  Transformer transformer_;
  Adam adam_;
  std::unique_ptr<RecordedSteps> recorded_;  // none on the CPU
  double loss_ = 0;
};

int64_t resident_peak_megabytes() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  return usage.ru_maxrss / 1024;
}

// Forward, backward and other milliseconds a step.
nlohmann::ordered_json operation_times(const Profile& profile, int64_t steps) {
  nlohmann::ordered_json times;
  for (const Profile::Operation& operation : profile.operations) {
    for (const Profile::Cost& cost : operation.costs) {
      times[operation.name].push_back(
          std::round(static_cast<double>(cost.self) / static_cast<double>(steps) / 1e3) / 1e3);
    }
  }
  return times;
}

// Sentences of one length, so many that each side has about as many tokens as wanted.
std::vector<Lengths> equal_lengths(int64_t tokens, int64_t length) {
  const auto count = static_cast<size_t>(std::max<int64_t>(1, tokens / length));
  return {Lengths(count, {length, length})};
}

struct Call {
  std::string name = "tiny", lengths_path = GS_SOURCE_DIR "/tools/benchmark/lengths.json";
  std::string precision = "float32";
  int64_t tokens = 0, length = 32, steps = 15, at_once = 1, warm_up = 15;
  bool time_products = false;
  int threads_wanted = threads();
  DeviceOption device;

  bool parse(int argc, char** argv) {
    Options options("training_step", "Times the training step of a translation Transformer.");
    options.bind("model", name,
                 "tiny (d 128, 4+4 layers), tiny10k (ff 512, 10,000 tokens), small (d 256, 3+3), "
                 "base or big",
                 one_of({"tiny", "tiny10k", "small", "base", "big"}));
    options.bind("lengths", lengths_path, "JSON: batches of [source, target] token counts");
    options.bind("tokens", tokens, "of each side in a batch of equal sentences; 0: see --lengths",
                 at_least(0));
    options.bind("length", length, "of those equal sentences", between(1, 256));
    options.bind("steps", steps, "timed steps", at_least(1));
    options.bind("at-once", at_once, "of these, timed together: a device is waited for after them",
                 at_least(1));
    options.bind("warm-up", warm_up, "steps before these; 15 see every batch", at_least(0));
    options.bind("threads", threads_wanted, "of the kernels", between(1, 1024));
    options.bind("precision", precision, "of the computation on CUDA devices", precisions());
    options.bind("time-products", time_products,
                 "let CUDA devices choose the algorithms of products by their times");
    device.bind(options);
    return options.parse(argc, argv);
  }
};

struct Measured {
  std::vector<double> times;  // seconds a step, for each group of steps that were timed together
  double seconds = 0, tokens = 0, operations = 0;
  double loss = 0;          // a token, in the last step
  int64_t peak_before = 0;  // megabytes
};

Measured measure(const Call& call, const TransformerConfig& config,
                 const std::vector<Lengths>& lengths, Trainer& trainer) {
  uint64_t place = 0;
  std::vector<Batch> batches;
  for (const Lengths& batch : lengths)
    batches.push_back(random_batch(batch, config.target_vocabulary, place));
  for (int64_t i = 0; i < call.warm_up; ++i)
    trainer.start(batches[static_cast<size_t>(i) % batches.size()]);
  trainer.settle();
  Measured measured;
  measured.peak_before = resident_peak_megabytes();
  start_profiling();
  int64_t next = call.warm_up;
  const int64_t end = call.warm_up + call.steps;
  while (next < end) {
    const int64_t count = std::min(call.at_once, end - next);
    double tokens = 0;  // of the last one
    const double start = seconds_now();
    for (int64_t i = 0; i < count; ++i, ++next) {
      const size_t at = static_cast<size_t>(next) % batches.size();
      trainer.start(batches[at]);
      tokens = static_cast<double>(batches[at].target_labels.tokens.size());
      measured.tokens += tokens;
      measured.operations += model_operations(config, lengths[at]);
    }
    measured.loss = trainer.settle() / tokens;
    const double seconds = seconds_now() - start;
    measured.seconds += seconds;
    measured.times.push_back(seconds / static_cast<double>(count));
  }
  return measured;
}

int run(int argc, char** argv) {
  Call call;
  if (!call.parse(argc, argv)) return 0;
  set_threads(call.threads_wanted);
  set_seed(1);
  backend::time_gemm_algorithms(call.time_products);
  const Device device = call.device.device();
  const bool on_cpu = device == Device::cpu();
  const TransformerConfig config = config_named(call.name);
  const std::vector<Lengths> lengths =
      call.tokens > 0 ? equal_lengths(call.tokens, call.length) : read_lengths(call.lengths_path);
  Trainer trainer(config, device, call.precision);
  const Measured measured = measure(call, config, lengths, trainer);
  const Profile profile = stop_profiling();
  const std::vector<double>& times = measured.times;
  const int64_t peak = resident_peak_megabytes();
  nlohmann::ordered_json result{
      {"part", "training"},
      {"framework", call.time_products ? "gradstone, products timed" : "gradstone"},
      {"model", call.name},
      {"device", device.text()},
      {"precision", call.precision},
      {"threads", call.threads_wanted},
      {"gemm", on_cpu ? backend::gemm_libraries().front() : "cuBLAS"},
      {"target_tokens_per_second", std::round(measured.tokens / measured.seconds)},
      {"tokens_per_step", measured.tokens / static_cast<double>(call.steps)},
      {"step_ms_median", 1e3 * quantile(times, 0.5)},
      {"step_ms_quartiles", {1e3 * quantile(times, 0.25), 1e3 * quantile(times, 0.75)}},
      {"model_gflops", measured.operations / measured.seconds / 1e9}};
  if (on_cpu) {
    const double limit = product_limit();
    result["sgemm_limit_gflops"] = limit / 1e9;
    result["share_of_limit"] = measured.operations / measured.seconds / limit;
  } else {
    result["replayed_steps"] = trainer.replays();
  }
  result["peak_memory_mb"] = peak;
  result["peak_growth_mb"] = peak - measured.peak_before;  // over the timed steps
  result["peak_arrays_mb"] = memory_figures(device).peak >> 20;
  result["loss"] = measured.loss;
  if (on_cpu) result["step_ms_by_operation"] = operation_times(profile, call.steps);
  std::printf("%s\n", result.dump().c_str());
  return 0;
}

}  // namespace
}  // namespace gs

int main(int argc, char** argv) { return gs::run_program(argc, argv, gs::run); }
