#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "framework/text/sequences.h"

namespace gs {

// Sentence pairs as a translation model takes them, without padding. The target is shifted: label t
// is the token that follows input t.
struct Batch {
  Sequences source;            // source, </s>
  Sequences target_inputs;     // <s>, target
  Sequences target_labels;     // target, </s>
  std::vector<int64_t> pairs;  // (B), their indices in the corpus
};

Batch make_batch(const Sequences& source, const Sequences& target, std::span<const int64_t> pairs);

// A place in the data. Kept in a checkpoint, it is all that resuming needs.
struct DataPosition {
  int64_t epoch = 0;
  int64_t batch = 0;

  bool operator==(const DataPosition&) const = default;
};

struct BatchConfig {
  int64_t maximum_tokens = 0;     // labels in a batch, end marks included; 0 is no limit
  int64_t maximum_sentences = 0;  // 0 is no limit; one of the two is needed
  bool shuffle = true;            // false: the order of the corpus, for evaluation
  int64_t pool_sentences = 8192;  // shuffled sentences among which lengths are sorted
  uint64_t seed = 0;
};

// Splits a corpus into batches, each pair exactly once an epoch. With `shuffle` an epoch's pairs
// are shuffled, sorted by target and then source length inside pools, cut into batches, and the
// batches shuffled; all of it follows from seed and epoch alone, so that the batch at any place
// is had without those before it. A pair over the token limit makes a batch of its own.
class Batches {
 public:
  // One target for each source, both without begin and end marks.
  Batches(Sequences source, Sequences target, BatchConfig config);

  int64_t pairs() const { return source_.count(); }
  // A hash of all tokens in the order of the corpus, which tells one corpus from another.
  uint64_t fingerprint() const;
  // The number of batches in an epoch; epochs may differ a little.
  int64_t count(int64_t epoch);
  Batch at(DataPosition position);
  // The next place, in the next epoch after the last batch.
  DataPosition after(DataPosition position);

 private:
  void plan(int64_t epoch);

  Sequences source_, target_;
  BatchConfig config_;
  int64_t planned_epoch_ = -1;
  std::vector<int64_t> order_;                       // pairs of the planned epoch, batch by batch
  std::vector<std::pair<int64_t, int64_t>> ranges_;  // of each batch in order_
};

}  // namespace gs
