#pragma once

#include "framework/backend/linear_cross_entropy.h"

namespace gs::backend {

// linear_cross_entropy with the logits of at most `most_rows` rows in memory at a time.
Array linear_cross_entropy_in_chunks(Cuda device, LinearCrossEntropyGradients& gradients,
                                     const Array& x, const Array& weight, const Array& bias,
                                     const Array& targets, const CrossEntropyOptions& options,
                                     int64_t most_rows);

}  // namespace gs::backend
