#include "models/placed_batch.h"

#include <algorithm>
#include <bit>
#include <cstring>

#include "framework/backend/attention.h"
#include "framework/backend/transfer.h"

namespace gs {
namespace {

using backend::AttentionSequence;

constexpr int64_t kTableBytes = sizeof(AttentionSequence);
constexpr int64_t kTokenBytes = sizeof(int32_t);

int64_t round_up(int64_t value, int64_t unit) { return (value + unit - 1) / unit * unit; }
int64_t power_of_two(int64_t value) {
  return static_cast<int64_t>(std::bit_ceil(static_cast<uint64_t>(value)));
}

int64_t rounded_rows(int64_t rows) {
  return round_up(std::max<int64_t>(rows, 1), rows < 2048 ? 64 : 256);
}

int64_t longest(const Sequences& sequences) {
  int64_t length = 1;
  for (int64_t i = 0; i < sequences.count(); ++i) length = std::max(length, sequences.length(i));
  return length;
}

int64_t rows_of(const Sequences& sequences) { return sequences.offsets.back(); }

// The starts of `count` sequences and the end: those given, then the rows that were added in pieces
// of at most `longest`, then empty ones.
std::vector<int64_t> padded_offsets(const Sequences& sequences, int64_t rows, int64_t longest,
                                    int64_t count) {
  std::vector<int64_t> offsets(sequences.offsets.begin(), sequences.offsets.end());
  while (static_cast<int64_t>(offsets.size()) <= count)
    offsets.push_back(std::min(rows, offsets.back() + longest));
  return offsets;
}

// Writes one part of the batch after the other.
class Writer {
 public:
  explicit Writer(std::byte* place) : place_(place) {}

  // Who attends to whom, where query and key of one number belong together.
  void sequences(const std::vector<int64_t>& query, const std::vector<int64_t>& key,
                 int64_t heads) {
    int64_t weights = 0;
    for (size_t i = 0; i + 1 < query.size(); ++i) {
      const int64_t queries = query[i + 1] - query[i], keys = key[i + 1] - key[i];
      const AttentionSequence sequence{query[i], queries, key[i], keys, weights, keys};
      std::memcpy(place_, &sequence, sizeof(sequence));
      place_ += sizeof(sequence);
      weights += heads * queries * keys;
    }
  }
  void tokens(const std::vector<int32_t>& tokens, int64_t rows, int32_t filler) {
    std::memcpy(place_, tokens.data(), tokens.size() * sizeof(int32_t));
    place_ += tokens.size() * sizeof(int32_t);
    for (int64_t i = static_cast<int64_t>(tokens.size()); i < rows; ++i) token(filler);
  }
  // Those of added rows, whose sequences may be longer than any that the model takes, stay below
  // its number of positions.
  void positions(const std::vector<int64_t>& offsets, int64_t count) {
    for (size_t i = 0; i + 1 < offsets.size(); ++i) {
      for (int64_t row = offsets[i]; row < offsets[i + 1]; ++row)
        token(static_cast<int32_t>(std::min(row - offsets[i], count - 1)));
    }
  }

 private:
  void token(int32_t value) {
    std::memcpy(place_, &value, sizeof(value));
    place_ += sizeof(value);
  }

  std::byte* place_;
};

void check_tokens(const char* what, const Sequences& sequences, int64_t vocabulary,
                  int64_t maximum_length) {
  const auto outside =
      std::find_if(sequences.tokens.begin(), sequences.tokens.end(),
                   [&](int32_t token) { return token < 0 || token >= vocabulary; });
  check(outside == sequences.tokens.end(), "batch: {} token {} at position {} is outside 0..{}",
        what, outside == sequences.tokens.end() ? 0 : *outside, outside - sequences.tokens.begin(),
        vocabulary - 1);
  const int64_t length = longest(sequences);
  check(
      length <= maximum_length,
      "batch: a {} of {} tokens is longer than the limit of {}; shorten it, or make the model with "
      "a larger maximum length",
      what, length, maximum_length);
}

}  // namespace

BatchForm BatchForm::of(const Batch& batch) {
  BatchForm form;
  const int64_t source = rows_of(batch.source), target = rows_of(batch.target_inputs);
  form.source_rows = rounded_rows(source);
  form.target_rows = rounded_rows(target);
  constexpr int64_t kShortest = 16;
  form.longest_source = std::max(kShortest, power_of_two(longest(batch.source)));
  form.longest_target = std::max(kShortest, power_of_two(longest(batch.target_inputs)));
  const auto pieces = [](int64_t rows, int64_t length) { return (rows + length - 1) / length; };
  const int64_t added = std::max(pieces(form.source_rows - source, form.longest_source),
                                 pieces(form.target_rows - target, form.longest_target));
  form.sequences = power_of_two(batch.source.count() + added);
  return form;
}

std::vector<int64_t> BatchForm::sizes() const {
  return {source_rows, target_rows, sequences, longest_source, longest_target};
}

int64_t BatchForm::bytes() const {
  return round_up(3 * sequences * kTableBytes + (2 * source_rows + 3 * target_rows) * kTokenBytes,
                  int64_t{sizeof(double)});
}

void write_batch(const Batch& batch, const BatchForm& form, const TransformerConfig& model,
                 std::byte* place) {
  check_tokens("source", batch.source, model.source_vocabulary, model.maximum_length);
  check_tokens("target", batch.target_inputs, model.target_vocabulary, model.maximum_length);
  check_tokens("label", batch.target_labels, model.target_vocabulary, model.maximum_length);
  check(batch.source.count() == batch.target_inputs.count() &&
            batch.target_inputs.offsets == batch.target_labels.offsets,
        "batch: needs a target for each source and a label for each target token, got {} sources, "
        "{} targets and {} labels for {} tokens",
        batch.source.count(), batch.target_inputs.count(), batch.target_labels.tokens.size(),
        batch.target_inputs.tokens.size());
  const std::vector<int64_t> source =
      padded_offsets(batch.source, form.source_rows, form.longest_source, form.sequences);
  const std::vector<int64_t> target =
      padded_offsets(batch.target_inputs, form.target_rows, form.longest_target, form.sequences);
  Writer writer(place);
  writer.sequences(source, source, model.heads);
  writer.sequences(target, target, model.heads);
  writer.sequences(target, source, model.heads);
  writer.tokens(batch.source.tokens, form.source_rows, 0);
  writer.positions(source, model.maximum_length);
  writer.tokens(batch.target_inputs.tokens, form.target_rows, 0);
  writer.positions(target, model.maximum_length);
  writer.tokens(batch.target_labels.tokens, form.target_rows, kIgnoredLabel);
}

PlacedBatch place_batch(const BatchForm& form, const std::byte* place, Device device) {
  const auto next = [&](int64_t count) {
    Array array = Array::empty({count}, kInt32, device);
    on_device(device,
              [&](auto on) { backend::copy_in_order(on, array.raw(), place, array.bytes()); });
    place += array.bytes();
    return array;
  };
  const auto sequences = [&](int64_t longest_query, int64_t longest_key) {
    return PlacedSequences{next(form.sequences * kTableBytes / kTokenBytes), form.sequences,
                           longest_query, longest_key};
  };
  PlacedBatch batch;
  batch.encoder = sequences(form.longest_source, form.longest_source);
  batch.decoder = sequences(form.longest_target, form.longest_target);
  batch.to_encoder = sequences(form.longest_target, form.longest_source);
  batch.source = Tensor(next(form.source_rows));
  batch.source_positions = Tensor(next(form.source_rows));
  batch.target_inputs = Tensor(next(form.target_rows));
  batch.target_positions = Tensor(next(form.target_rows));
  batch.labels = Tensor(next(form.target_rows));
  return batch;
}

}  // namespace gs
