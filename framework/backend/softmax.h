#pragma once

#include "framework/backend/array.h"

namespace gs::backend {

// Softmax of every row of `rows` (see Rows): y = exp(x - max) / sum(exp(x - max)). A row of
// -infinity gives a row of 0. y may be x.
void softmax(Cpu, Array& y, const Array& x, Rows rows);
void softmax(Cuda, Array& y, const Array& x, Rows rows);
// dx = y * (dy - sum(dy * y))
void softmax_backward(Cpu, Array& dx, const Array& y, const Array& dy, Rows rows);
void softmax_backward(Cuda, Array& dx, const Array& y, const Array& dy, Rows rows);

// y = x - max - log(sum(exp(x - max))). A row of -infinity stays as it is. y may be x.
void log_softmax(Cpu, Array& y, const Array& x, Rows rows);
void log_softmax(Cuda, Array& y, const Array& x, Rows rows);
// dx = dy - exp(y) * sum(dy), and 0 in rows of -infinity.
void log_softmax_backward(Cpu, Array& dx, const Array& y, const Array& dy, Rows rows);
void log_softmax_backward(Cuda, Array& dx, const Array& y, const Array& dy, Rows rows);

}  // namespace gs::backend
