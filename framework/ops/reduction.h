#pragma once

#include <span>
#include <vector>

#include "framework/backend/array.h"

namespace gs {

// How a reduction sees its input: as rows (outer, length, inner) in place where the dimensions
// reduced stand together, else as (kept, reduced) after a permute.
struct Reduction {
  // `dimensions` may count from the end; none means all.
  Reduction(const char* operation, const Shape& shape, std::span<const int64_t> dimensions,
            bool keep);

  Shape from;    // of the input
  Shape kept;    // of the result, the dimensions reduced as 1
  Shape result;  // of the result as it was asked for
  Rows rows;
  std::vector<int> order;  // of the permute; empty where there is none

  // The input so that `rows` describe it, and such an array in the input's shape again.
  Array arranged(const Array& x) const;
  Array restored(const Array& dx) const;
};

}  // namespace gs
