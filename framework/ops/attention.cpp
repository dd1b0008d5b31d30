#include "framework/ops/attention.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <functional>
#include <memory>

#include "framework/backend/attention.h"
#include "framework/core/profiler.h"
#include "framework/ops/floating.h"

namespace gs {
namespace {

using backend::AttentionGradients;
using backend::AttentionInputs;
using backend::AttentionPlan;
using backend::AttentionResults;

void check_operands(const char* name, int rank, const Tensor& query, const Tensor& key,
                    const Tensor& value) {
  check(query.defined() && key.defined() && value.defined(),
        "{}: query, key and value are needed, one is undefined", name);
  check(query.rank() == rank && key.rank() == rank && value.rank() == rank,
        "{}: query, key and value need {} dimensions, got {}, {} and {}", name, rank, query.shape(),
        key.shape(), value.shape());
  check_floating(name, query);
  check(query.dtype() == key.dtype() && query.dtype() == value.dtype(),
        "{}: query, key and value must have one type, got {}, {} and {}; cast them", name,
        query.dtype(), key.dtype(), value.dtype());
  check(query.device() == key.device() && query.device() == value.device(),
        "{}: query, key and value must be on one device, got {}, {} and {}", name, query.device(),
        key.device(), value.device());
  check(key.size(-2) == value.size(-2), "{}: lengths of key and value differ, got {} and {}", name,
        key.size(-2), value.size(-2));
}

// The part of the plan that does not depend on the form of the batch.
AttentionPlan plan_of(const char* name, const Tensor& query, const Tensor& key, const Tensor& value,
                      const AttentionOptions& options) {
  const int64_t heads = options.heads;
  check(heads >= 1, "{}: at least 1 head is needed, got {} for a width of {}", name, heads,
        query.size(-1));
  check(query.size(-1) == key.size(-1), "{}: widths of query and key differ, got {} and {}", name,
        query.size(-1), key.size(-1));
  check(query.size(-1) % heads == 0 && value.size(-1) % heads == 0,
        "{}: heads must divide the widths, got {} heads for widths {} and {}", name, heads,
        query.size(-1), value.size(-1));
  check(options.dropout >= 0 && options.dropout < 1, "{}: dropout must be in [0, 1), got {}", name,
        options.dropout);
  check(std::isfinite(options.scale), "{}: scale must be finite, got {}", name, options.scale);
  AttentionPlan plan;
  plan.heads = heads;
  plan.width = query.size(-1) / heads;
  plan.value_width = value.size(-1) / heads;
  plan.causal = options.causal;
  plan.scale = options.scale;
  if (plan.scale == 0)
    plan.scale = 1 / std::sqrt(static_cast<double>(std::max<int64_t>(1, plan.width)));
  return plan;
}

// How far apart the elements of x are along the dimensions of `full`, to which it broadcasts.
std::array<int64_t, 4> broadcast_strides(const char* name, const char* what, const Tensor& x,
                                         const Shape& full) {
  std::array<int64_t, 4> strides{};
  int64_t stride = 1;
  bool fits = x.rank() <= 4;
  for (int i = 1; fits && i <= x.rank(); ++i) {
    const int64_t size = x.shape()[x.rank() - i];
    fits = size == 1 || size == full[4 - i];
    if (size != 1) strides[static_cast<size_t>(4 - i)] = stride;
    stride *= size;
  }
  check(fits, "{}: {} must broadcast to (B, H, T, S), got {} for {}", name, what, x.shape(), full);
  return strides;
}

// Checks mask and scores and puts them into the plan; `full` is (B, H, T, S).
void add_masks(const char* name, AttentionPlan& plan, const Tensor& query,
               const AttentionOptions& options, const Shape& full) {
  const Tensor& mask = options.mask;
  const Tensor& scores = options.scores;
  if (mask.defined()) {
    check(mask.dtype() == kBool,
          "{}: mask must be bool, true = may attend, got {}; give numbers to add as scores", name,
          mask.dtype());
    check(mask.device() == query.device(), "{}: mask must be on {}, got {}", name, query.device(),
          mask.device());
    plan.mask_strides = broadcast_strides(name, "mask", mask, full);
  }
  if (scores.defined()) {
    check(scores.dtype() == query.dtype() && scores.device() == query.device(),
          "{}: scores must be {} on {}, got {} on {}", name, query.dtype(), query.device(),
          scores.dtype(), scores.device());
    plan.scores_strides = broadcast_strides(name, "scores", scores, full);
    // A mask of zeros and ones that is added hardly masks at all, and nobody notices.
    const bool suspicious = !scores.needs_grad() && on_device(query.device(), [&](auto on) {
      return backend::zeros_and_ones(on, scores.value());
    });
    check(!suspicious,
          "{}: scores are added, but hold only zeros and ones, got {}; use mask, bool, where true "
          "may attend",
          name, scores.shape());
  }
}

// What the backward reads; what it does not need on the device is undefined.
struct SavedAttention {
  Saved query, key, value, mask, scores, output, weights, statistics;
  Shape weights_shape, scores_shape;
  std::shared_ptr<const AttentionPlan> plan;

  AttentionInputs inputs() const {
    return {query.value(), key.value(), value.value(), mask.value(), scores.value()};
  }
};

// Inputs of the recorded nodes: query, key, value, scores. `dweights` and `dy`: see the kernel.
Gradients gradients_of(const Array& dy, const Array& dweights, const Needs& needs,
                       const SavedAttention& saved) {
  const AttentionInputs inputs = saved.inputs();
  const Device device = inputs.query.device();
  const DType dtype = inputs.query.dtype();
  AttentionGradients gradients;
  if (needs[0]) gradients.dquery = Array::like(inputs.query);
  if (needs[1]) gradients.dkey = Array::like(inputs.key);
  if (needs[2]) gradients.dvalue = Array::like(inputs.value);
  if (needs[3]) gradients.dscores = Array::empty(saved.weights_shape, dtype, device);
  Array dscores;
  on_device(device, [&](auto on) {
    backend::attention_backward(
        on, gradients, dy, dweights, inputs,
        {saved.output.value(), saved.weights.value(), saved.statistics.value()}, *saved.plan);
    if (!needs[3]) return;
    dscores = Array::empty(saved.scores_shape, dtype, device);
    backend::sum_scores(on, dscores, gradients.dscores, *saved.plan);
  });
  return {gradients.dquery, gradients.dkey, gradients.dvalue, dscores};
}

// Runs the plan. Of the results those are defined that the caller or backward wants.
AttentionResults results_of(const AttentionInputs& inputs, AttentionPlan& plan, bool return_weights,
                            bool keeps, const Shape& output_shape, const Shape& weights_shape) {
  const Device device = inputs.query.device();
  const DType dtype = inputs.query.dtype();
  AttentionResults results;
  results.output = Array::empty(output_shape, dtype, device);
  on_device(device, [&](auto on) {
    const bool keeps_weights = keeps && backend::attention_keeps_weights(on);
    if (return_weights || keeps_weights)
      results.weights = Array::empty(weights_shape, dtype, device);
    if (keeps && !keeps_weights) {
      const Shape rows = output_shape.with(output_shape.rank() - 1, plan.heads * 2);
      results.statistics = Array::empty(rows, dtype == kFloat64 ? kFloat64 : kFloat32, device);
    }
    backend::place_sequences(on, plan);
    backend::attention(on, results, inputs, plan);
  });
  return results;
}

// Runs a complete plan. `weights_shape` has as many elements as the plan has weights.
Attention attend(const char* name, const Tensor& query, const Tensor& key, const Tensor& value,
                 AttentionPlan plan, const AttentionOptions& options, const Shape& output_shape,
                 const Shape& weights_shape) {
  if (options.training && options.dropout > 0) {
    Generator& generator = options.generator != nullptr ? *options.generator : default_generator();
    plan.dropout = backend::DropoutMask::of(options.dropout, generator.next());
  }
  const std::array<Tensor, 4> operands{query, key, value, options.scores};
  const bool keeps =
      recording() && std::any_of(operands.begin(), operands.end(),
                                 [](const Tensor& operand) { return operand.needs_grad(); });
  const AttentionInputs inputs{query.value(), key.value(), value.value(), options.mask.value(),
                               options.scores.value()};
  const AttentionResults results =
      results_of(inputs, plan, options.return_weights, keeps, output_shape, weights_shape);
  if (!keeps)
    return {Tensor(results.output), options.return_weights ? Tensor(results.weights) : Tensor()};

  SavedAttention saved{inputs.query,
                       inputs.key,
                       inputs.value,
                       {},
                       {},
                       {},
                       results.weights,
                       results.statistics,
                       weights_shape,
                       options.scores.defined() ? options.scores.shape() : Shape{},
                       std::make_shared<const AttentionPlan>(std::move(plan))};
  if (results.statistics.defined()) {
    saved.mask = inputs.mask;
    saved.scores = inputs.scores;
    saved.output = results.output;
  }
  Attention result;
  result.output = record(
      name, results.output, operands,
      [saved](const Array& dy, const Needs& needs) { return gradients_of(dy, {}, needs, saved); });
  if (!options.return_weights) return result;
  const std::array<Tensor, 4> without_value{query, key, Tensor(), options.scores};
  result.weights = record(
      name, results.weights, without_value,
      [saved](const Array& dw, const Needs& needs) { return gradients_of({}, dw, needs, saved); });
  return result;
}

void check_offsets(const char* name, const char* what, std::span<const int32_t> offsets,
                   int64_t rows) {
  check(!offsets.empty(), "{}: {} must run from 0 to the number of rows, {}, got none", name, what,
        rows);
  check(offsets.front() == 0 && offsets.back() == rows,
        "{}: {} must run from 0 to the number of rows, {}, got {} to {}", name, what, rows,
        offsets.front(), offsets.back());
  const auto fall = std::adjacent_find(offsets.begin(), offsets.end(), std::greater<int32_t>());
  check(fall == offsets.end(), "{}: {} must not fall, got {} before {} at {}", name, what,
        fall == offsets.end() ? 0 : *fall, fall == offsets.end() ? 0 : *(fall + 1),
        fall - offsets.begin());
}

}  // namespace

Attention scaled_dot_product_attention(const Tensor& query, const Tensor& key, const Tensor& value,
                                       const AttentionOptions& options) {
  constexpr const char* kName = "scaled_dot_product_attention";
  const OperationTimer timer(kName);
  check_operands(kName, 3, query, key, value);
  const int64_t batch = query.size(0), queries = query.size(1), keys = key.size(1);
  check(key.size(0) == batch && value.size(0) == batch,
        "{}: batch sizes of query, key and value differ, got {}, {} and {}", kName, batch,
        key.size(0), value.size(0));
  AttentionPlan plan = plan_of(kName, query, key, value, options);
  const std::vector<int64_t>& lengths = options.key_lengths;
  check(lengths.empty() || static_cast<int64_t>(lengths.size()) == batch,
        "{}: key_lengths must have one entry a sequence, got {} for {} sequences", kName,
        lengths.size(), batch);
  for (int64_t b = 0; b < batch; ++b) {
    const int64_t length = lengths.empty() ? keys : lengths[static_cast<size_t>(b)];
    check(length >= 0 && length <= keys,
          "{}: key_lengths must be between 0 and the number of keys, {}, got {} at {}", kName, keys,
          length, b);
    plan.sequences.push_back(
        {b * queries, queries, b * keys, length, b * plan.heads * queries * keys, keys});
  }
  const Shape weights{batch, plan.heads, queries, keys};
  plan.weights = weights.elements();
  add_masks(kName, plan, query, options, weights);
  return attend(kName, query, key, value, std::move(plan), options,
                query.shape().with(2, value.size(2)), weights);
}

Attention packed_attention(const Tensor& query, std::span<const int32_t> query_offsets,
                           const Tensor& key, const Tensor& value,
                           std::span<const int32_t> key_offsets, const AttentionOptions& options) {
  constexpr const char* kName = "packed_attention";
  const OperationTimer timer(kName);
  check_operands(kName, 2, query, key, value);
  check_offsets(kName, "query_offsets", query_offsets, query.size(0));
  check_offsets(kName, "key_offsets", key_offsets, key.size(0));
  check(query_offsets.size() == key_offsets.size(),
        "{}: as many sequences of queries as of keys are needed, got {} and {}", kName,
        query_offsets.size() - 1, key_offsets.size() - 1);
  check(options.key_lengths.empty(),
        "{}: key_lengths are for dense batches, got {}; key_offsets tell the lengths", kName,
        options.key_lengths.size());
  AttentionPlan plan = plan_of(kName, query, key, value, options);
  int64_t longest_query = 0, longest_key = 0;
  for (size_t b = 0; b + 1 < query_offsets.size(); ++b) {
    const int64_t queries = query_offsets[b + 1] - query_offsets[b];
    const int64_t keys = key_offsets[b + 1] - key_offsets[b];
    plan.sequences.push_back({query_offsets[b], queries, key_offsets[b], keys, plan.weights, keys});
    plan.weights += plan.heads * queries * keys;
    longest_query = std::max(longest_query, queries);
    longest_key = std::max(longest_key, keys);
  }
  const int64_t batch = static_cast<int64_t>(plan.sequences.size());
  add_masks(kName, plan, query, options, {batch, plan.heads, longest_query, longest_key});
  const Shape weights{plan.weights};
  return attend(kName, query, key, value, std::move(plan), options,
                query.shape().with(1, value.size(1)), weights);
}

Attention packed_attention(const Tensor& query, const Tensor& key, const Tensor& value,
                           const PlacedSequences& sequences, const AttentionOptions& options) {
  constexpr const char* kName = "packed_attention";
  const OperationTimer timer(kName);
  check_operands(kName, 2, query, key, value);
  check(
      !options.mask.defined() && !options.scores.defined() && !options.return_weights &&
          options.key_lengths.empty(),
      "{}: sequences on the device go without mask, scores, key_lengths and weights; give offsets",
      kName);
  const int64_t bytes = sequences.count * int64_t{sizeof(backend::AttentionSequence)};
  check(sequences.table.defined() && sequences.table.device() == query.device() &&
            sequences.table.bytes() == bytes,
        "{}: the table of {} sequences must be {} bytes on {}, got {} on {}", kName,
        sequences.count, bytes, query.device(),
        sequences.table.defined() ? sequences.table.bytes() : 0,
        sequences.table.defined() ? sequences.table.device() : Device());
  AttentionPlan plan = plan_of(kName, query, key, value, options);
  plan.table = sequences.table;
  plan.sequences.assign(static_cast<size_t>(sequences.count),
                        {.query_start = 0,
                         .queries = sequences.longest_query,
                         .key_start = 0,
                         .keys = sequences.longest_key,
                         .weights_start = 0,
                         .weights_width = sequences.longest_key});
  plan.weights = sequences.count * plan.heads * sequences.longest_query * sequences.longest_key;
  const Shape weights{plan.weights};
  return attend(kName, query, key, value, std::move(plan), options,
                query.shape().with(1, value.size(1)), weights);
}

}  // namespace gs
