#pragma once

#include "framework/backend/array.h"

namespace gs::backend {

// Indices are int32 and inside the rows: the caller has checked them (indices.h). `rows` are those
// of x: (outer, length, inner).

// y[o, k, i] = x[o, indices[k], i].
void index_select(Cpu, Array& y, const Array& x, const Array& indices, Rows rows);
void index_select(Cuda, Array& y, const Array& x, const Array& indices, Rows rows);

// dx[o, r, i] = the sum of dy[o, k, i] over the k with indices[k] == r, in the order of k.
void index_select_backward(Cpu, Array& dx, const Array& dy, const Array& indices, Rows rows);
void index_select_backward(Cuda, Array& dx, const Array& dy, const Array& indices, Rows rows);

// y[o, k, i] = x[o, indices[o, k, i], i].
void gather(Cpu, Array& y, const Array& x, const Array& indices, Rows rows);
void gather(Cuda, Array& y, const Array& x, const Array& indices, Rows rows);

// dx[o, r, i] = the sum of dy[o, k, i] over the k with indices[o, k, i] == r, in the order of k.
void gather_backward(Cpu, Array& dx, const Array& dy, const Array& indices, Rows rows);
void gather_backward(Cuda, Array& dx, const Array& dy, const Array& indices, Rows rows);

// y[n, indices[n]] = 1 in y of zeros, (elements of indices, classes).
void one_hot(Cpu, Array& y, const Array& indices, int64_t classes);
void one_hot(Cuda, Array& y, const Array& indices, int64_t classes);

}  // namespace gs::backend
