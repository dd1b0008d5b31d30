#pragma once

#include "framework/backend/array.h"

namespace gs::backend {

// Reductions over the middle of rows: x is (outer, length, inner), y (outer, inner), both float32
// or both float64, or bfloat16 whose sums may be float32. Sums are kept in double precision and
// split by the sizes alone, so results do not depend on the number of threads. A length of 0 gives
// sums of 0.

// y = sum of x / divisor.
void sum(Cpu, Array& y, const Array& x, Rows rows, double divisor = 1);
void sum(Cuda, Array& y, const Array& x, Rows rows, double divisor = 1);

// y = sum of (x - mean)^2 / divisor, in two passes; `mean` (outer, inner) is float64.
void variance(Cpu, Array& y, Array& mean, const Array& x, Rows rows, double divisor);
void variance(Cuda, Array& y, Array& mean, const Array& x, Rows rows, double divisor);
// dx = dy * 2 (x - mean) / divisor
void variance_backward(Cpu, Array& dx, const Array& dy, const Array& x, const Array& mean,
                       Rows rows, double divisor);
void variance_backward(Cuda, Array& dx, const Array& dy, const Array& x, const Array& mean,
                       Rows rows, double divisor);

// y = the largest or smallest x; NaN where there is one. The length is 1 or more.
void max(Cpu, Array& y, const Array& x, Rows rows);
void max(Cuda, Array& y, const Array& x, Rows rows);
void min(Cpu, Array& y, const Array& x, Rows rows);
void min(Cuda, Array& y, const Array& x, Rows rows);
// dx = dy / n for the n elements that equal y, else 0; NaN equals NaN.
void extremum_backward(Cpu, Array& dx, const Array& dy, const Array& x, const Array& y, Rows rows);
void extremum_backward(Cuda, Array& dx, const Array& dy, const Array& x, const Array& y, Rows rows);
// int32 y = the first place of the largest x, or of NaN where there is one.
void argmax(Cpu, Array& y, const Array& x, Rows rows);
void argmax(Cuda, Array& y, const Array& x, Rows rows);

// y = log(sum of e^x); -infinity where all are.
void logsumexp(Cpu, Array& y, const Array& x, Rows rows);
void logsumexp(Cuda, Array& y, const Array& x, Rows rows);
// dx = dy * e^(x - y), 0 where y is -infinity
void logsumexp_backward(Cpu, Array& dx, const Array& dy, const Array& x, const Array& y, Rows rows);
void logsumexp_backward(Cuda, Array& dx, const Array& dy, const Array& x, const Array& y,
                        Rows rows);

}  // namespace gs::backend
