#pragma once

#include "framework/core/random.h"
#include "framework/tensor/tensor.h"

namespace gs {

// In training: each element of x is 0 with `probability` (in [0, 1]), else x / (1 - probability).
// Which ones is told by one stream of `generator`, alike on all devices and for any number of
// threads. Otherwise, and at probability 0, x itself, and nothing is drawn.
Tensor dropout(const Tensor& x, double probability, bool training,
               Generator& generator = default_generator());

}  // namespace gs
