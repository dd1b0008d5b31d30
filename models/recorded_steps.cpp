#include "models/recorded_steps.h"

#include <cmath>
#include <cstring>

#include "framework/backend/copy.h"
#include "framework/backend/transfer.h"
#include "framework/ops/index_checks.h"

namespace gs {
namespace {

// Numbers of the host that change from step to step stand before the batches.
constexpr int64_t kNumberBytes = sizeof(double);
// A graph is small, and the memory of all is one pool.
constexpr int64_t kMostForms = 64;
constexpr int64_t kOutcomes = 3;

RecordedSteps::Result result_of(const std::vector<double>& outcome) {
  return {.loss = outcome[0], .gradient_norm = outcome[1], .skipped = !std::isfinite(outcome[2])};
}

int64_t bytes_of(const std::vector<BatchForm>& forms) {
  int64_t bytes = kNumberBytes;
  for (const BatchForm& form : forms) bytes += form.bytes();
  return bytes;
}

void copy_in_order(Array& to, int64_t place, const void* from, int64_t values) {
  on_device(to.device(), [&](auto on) {
    backend::copy_in_order(on, to.data<double>() + place, from, values * int64_t{sizeof(double)});
  });
}

}  // namespace

RecordedSteps::RecordedSteps(const Transformer& transformer, Adam& optimizer,
                             MovingAverage* average, Config config)
    : transformer_(transformer),
      optimizer_(optimizer),
      average_(average),
      config_(config),
      outcome_(Array::zeros({kOutcomes}, kFloat64, transformer.device())),
      results_(transformer.device(), kOutcomes, config.most_ahead) {}

void RecordedSteps::start(const std::vector<Batch>& batches, double learning_rate) {
  check(!full(), "recorded steps: {} results are under way, got one more step; take some out",
        pending());
  std::vector<BatchForm> forms;
  std::vector<int64_t> key;
  for (const Batch& batch : batches) {
    const std::vector<int64_t> sizes = forms.emplace_back(BatchForm::of(batch)).sizes();
    key.insert(key.end(), sizes.begin(), sizes.end());
  }
  send(batches, forms);
  optimizer_.set_learning_rate(learning_rate);
  steps_->run(std::move(key), [&] { run(forms); });
  results_.push(outcome_);
}

std::optional<RecordedSteps::Result> RecordedSteps::pop() {
  const std::optional<std::vector<double>> outcome = results_.pop();
  if (!outcome) return std::nullopt;
  return result_of(*outcome);
}

RecordedSteps::Result RecordedSteps::wait() { return result_of(results_.wait()); }

void RecordedSteps::send(const std::vector<Batch>& batches, const std::vector<BatchForm>& forms) {
  const int64_t bytes = bytes_of(forms);
  if (upload_ == nullptr || upload_->bytes() < bytes) {
    steps_.reset();
    upload_ = std::make_unique<StagedUpload>(transformer_.device(), 2 * bytes);
    steps_ = std::make_unique<CapturedSteps>(transformer_.device(), kMostForms);
  }
  std::byte* place = upload_->next();
  int64_t labels = 0;
  for (const Batch& batch : batches)
    labels += static_cast<int64_t>(batch.target_labels.tokens.size());
  const double factor = labels == 0 ? 0 : 1 / static_cast<double>(labels);
  std::memcpy(place, &factor, sizeof(factor));
  place += kNumberBytes;
  for (size_t i = 0; i < batches.size(); ++i) {
    write_batch(batches[i], forms[i], transformer_.config, place);
    place += forms[i].bytes();
  }
  upload_->send(bytes);
}

// What is recorded: nothing here may depend on the batch but its forms.
void RecordedSteps::run(const std::vector<BatchForm>& forms) {
  const TrustedIndices trusted;  // write_batch has looked
  const Device device = transformer_.device();
  const auto* place = static_cast<const std::byte*>(upload_->data());
  Array factor = Array::empty({}, kFloat64, device);
  copy_in_order(factor, 0, place, 1);
  place += kNumberBytes;
  Array sum = Array::zeros({}, kFloat64, device);
  for (const BatchForm& form : forms) {
    const Loss loss = transformer_.loss(
        place_batch(form, place, device),
        {.ignore_index = kIgnoredLabel, .label_smoothing = config_.label_smoothing});
    place += form.bytes();
    loss.sum.backward(Tensor(factor.to(loss.sum.dtype())));
    const Array part = loss.sum.value().to(kFloat64);
    on_device(device, [&](auto on) { backend::accumulate(on, sum, part); });
  }
  optimizer_.clipped_step({.maximum_norm = config_.maximum_norm, .halts = config_.halts});
  if (average_ != nullptr) average_->update(optimizer_.numbers());
  const double* const numbers = optimizer_.numbers().data<double>();
  copy_in_order(outcome_, 0, sum.raw(), 1);
  copy_in_order(outcome_, 1, numbers + backend::kGradientNorm, 1);
  copy_in_order(outcome_, 2, numbers + backend::kGradientScale, 1);
}

}  // namespace gs
