#pragma once

#include "framework/backend/array.h"

namespace gs::backend {

// The largest elements of every row of x (R, V), largest first, equal ones by their place:
// indices (R, K), int32, K <= V, and values (R, K), what log_softmax makes of them. A row of
// -infinity stays one; a row with NaN or +infinity gives NaN at the places 0 to K - 1.
void top_log_softmax(Cpu, Array& values, Array& indices, const Array& x);
void top_log_softmax(Cuda, Array& values, Array& indices, const Array& x);

// The same of x (R, C) times weight (C, V) plus bias (V), if it is defined: the logits never stand
// whole.
void linear_top_log_softmax(Cpu, Array& values, Array& indices, const Array& x, const Array& weight,
                            const Array& bias);
void linear_top_log_softmax(Cuda, Array& values, Array& indices, const Array& x,
                            const Array& weight, const Array& bias);

}  // namespace gs::backend
