#pragma once

#include "framework/backend/array.h"

namespace gs::backend {

// What a fold gathers from the elements x of a row, where p is the row's parameter: sums in double
// precision, or extrema in x's own type, NaN where there is one.
enum class Fold {
  kSum,           // of x
  kSquares,       // of (x - p)^2
  kExponentials,  // of e^(x - p)
  kMatches,       // of 1 where x is p; NaN is NaN
  kMax,
  kMin,
};

// The fold of every row of x (outer, length, inner), one element a row. `parameter` is float64, one
// a row, where the fold has one.
Array fold_rows(Fold fold, const Array& x, Rows rows, const Array& parameter = {});

// How fold_rows cuts its work, by sizes alone: rows in `pieces` of `length` elements, and rows that
// lie side by side `width` at a time, in `tiles`.
struct FoldTasks {
  Rows rows;
  int64_t pieces, length, tiles, width;

  int64_t count() const { return rows.outer * pieces * tiles; }
};

}  // namespace gs::backend
