#include "framework/backend/embedding.h"

#include "framework/backend/cuda/positions.cuh"
#include "framework/backend/indexing.h"

// Bound by memory: the rows that are taken, and backward the whole gradient of the table.
namespace gs::backend {

void embedding(Cuda device, Array& y, const Array& weight, const Array& indices) {
  index_select(device, y, weight, indices, Rows{1, weight.shape()[0], weight.shape()[1]});
}

void embedding_backward(Cuda device, Array& dweight, const Array& dy, const Array& indices,
                        std::optional<int64_t> padding_index, bool adds) {
  if (dweight.elements() == 0) return;
  const int64_t rows = dweight.shape()[0], width = dweight.shape()[1];
  const Positions positions = positions_by_row("embedding", device, indices, rows, padding_index);
  dispatch_element("embedding", dweight.dtype(), [&](auto zero) {
    using T = decltype(zero);
    sum_positions<double>("embedding", device, elements_of<T>(dweight), elements_of<T>(dy),
                          positions, Rows{1, rows, width}, adds);
  });
}

}  // namespace gs::backend
