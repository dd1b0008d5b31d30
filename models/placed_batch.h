#pragma once

#include <cstddef>
#include <vector>

#include "datasets/batches.h"
#include "framework/ops/attention.h"
#include "models/transformer.h"

namespace gs {

// The sizes of a batch, rounded up so that few different ones occur: a step of one form asks the
// same of a device whatever the batch. Rows that are added carry token 0, the ignored label and
// sequences of their own, behind the others; so nothing changes for the rows of the batch.
struct BatchForm {
  int64_t source_rows = 0, target_rows = 0;
  int64_t sequences = 0;  // empty ones at the end
  int64_t longest_source = 0, longest_target = 0;

  static BatchForm of(const Batch& batch);
  std::vector<int64_t> sizes() const;
  int64_t bytes() const;  // of the form in which it is sent
  bool operator==(const BatchForm&) const = default;
};

inline constexpr int64_t kIgnoredLabel = -1;

// A batch on a device. Which rows are sequences only the device knows.
struct PlacedBatch {
  Tensor source, source_positions;               // int32 (source_rows)
  Tensor target_inputs, target_positions;        // int32 (target_rows)
  Tensor labels;                                 // int32 (target_rows), some ignored
  PlacedSequences encoder, decoder, to_encoder;  // who attends to whom
};

// Writes the batch in its form to `place`, form.bytes() bytes aligned to 8. Tokens that the model
// does not know and sequences that are too long for it are refused, since the device won't look.
void write_batch(const Batch& batch, const BatchForm& form, const TransformerConfig& model,
                 std::byte* place);

// Copies what stands at `place` in a device's memory into tensors, in the order of its work.
PlacedBatch place_batch(const BatchForm& form, const std::byte* place, Device device);

}  // namespace gs
