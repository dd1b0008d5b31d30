#pragma once

#include <optional>

#include "framework/backend/array.h"

namespace gs::backend {

// y[i] = weight[indices[i]]: rows of weight (V, C) at int32 indices, all in 0..V - 1.
void embedding(Cpu, Array& y, const Array& weight, const Array& indices);
void embedding(Cuda, Array& y, const Array& weight, const Array& indices);

// dweight[v] (V, C) = the sum of the rows dy[i] with indices[i] == v, added in the order of i and
// in double precision; rows without any, and the one of `padding_index`, are 0. With `adds` all of
// it is added to what dweight holds.
void embedding_backward(Cpu, Array& dweight, const Array& dy, const Array& indices,
                        std::optional<int64_t> padding_index, bool adds = false);
void embedding_backward(Cuda, Array& dweight, const Array& dy, const Array& indices,
                        std::optional<int64_t> padding_index, bool adds = false);

}  // namespace gs::backend
