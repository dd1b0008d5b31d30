#pragma once

#include <string>

#include "framework/train/options.h"
#include "models/transformer.h"

namespace gs {

// The values of --precision: float32; tf32, which rounds the operands of products to 10 bits; and
// bfloat16, in which activations are.
inline Allowed precisions() { return one_of({"float32", "tf32", "bfloat16"}); }

// Lets a model, and for tf32 all products of the process, compute in that precision. On the CPU
// everything but float32 is refused.
void set_precision(Transformer& transformer, const std::string& precision);

}  // namespace gs
