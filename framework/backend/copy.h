#pragma once

#include "framework/backend/array.h"

namespace gs::backend {

// y[i] = value, converted to y's type.
void fill(Cpu, Array& y, double value);
void fill(Cuda, Array& y, double value);

// y = x, both of one type and one count of elements.
void copy(Cpu, Array& y, const Array& x);
void copy(Cuda, Array& y, const Array& x);

// y = x converted to y's type; numbers turn to bool as "is not zero".
void cast(Cpu, Array& y, const Array& x);
void cast(Cuda, Array& y, const Array& x);

// Copies `rows` blocks of `length` elements; a block starts every `y_stride` elements of y from
// `y_start` on, and likewise in x. Slices and joins of any dimension have this form.
struct Blocks {
  int64_t rows, length, y_start, y_stride, x_start, x_stride;
};
void copy_blocks(Cpu, Array& y, const Array& x, Blocks blocks);
void copy_blocks(Cuda, Array& y, const Array& x, Blocks blocks);

// y += x, both of one floating type and one count of elements.
void accumulate(Cpu, Array& y, const Array& x);
void accumulate(Cuda, Array& y, const Array& x);
// The same for blocks.
void accumulate_blocks(Cpu, Array& y, const Array& x, Blocks blocks);
void accumulate_blocks(Cuda, Array& y, const Array& x, Blocks blocks);

// The index of the first element that is infinite or not a number, or -1.
int64_t first_non_finite(Cpu, const Array& x);
int64_t first_non_finite(Cuda, const Array& x);

}  // namespace gs::backend
