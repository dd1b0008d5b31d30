#include "framework/ops/embedding.h"

#include "framework/backend/embedding.h"
#include "framework/core/profiler.h"
#include "framework/ops/index_checks.h"

namespace gs {
namespace {

void check_embedding(const Tensor& weight, const Tensor& indices, const EmbeddingOptions& options) {
  check(weight.rank() == 2 && is_floating(weight.dtype()),
        "embedding: weight must be (V, C) in float32 or float64, got {} {}", weight.shape(),
        weight.dtype());
  check(indices.dtype() == kInt32, "embedding: indices must be int32, got {}; cast them",
        indices.dtype());
  check(indices.device() == weight.device(),
        "embedding: weight and indices are on two devices, got {} and {}; move one",
        weight.device(), indices.device());
  const int64_t rows = weight.shape()[0];
  if (const auto padding = options.padding_index) {
    check(*padding >= 0 && *padding < rows, "embedding: padding_index {} is outside 0..{}",
          *padding, rows - 1);
  }
  const int64_t position = first_outside(indices, rows);
  check(position < 0, "embedding: index {} at position {} is outside 0..{}",
        position < 0 ? 0 : indices.values<int32_t>()[static_cast<size_t>(position)], position,
        rows - 1);
}

Shape with_width(const Shape& shape, int64_t width) {
  check(shape.rank() < Shape::kMaxRank,
        "embedding: indices may have {} dimensions, got {}; reshape them", Shape::kMaxRank - 1,
        shape);
  std::vector<int64_t> sizes(shape.begin(), shape.end());
  sizes.push_back(width);
  return Shape(sizes);
}

}  // namespace

Tensor embedding(const Tensor& weight, const Tensor& indices, const EmbeddingOptions& options) {
  const OperationTimer timer("embedding");
  check_embedding(weight, indices, options);
  Array y = Array::empty(with_width(indices.shape(), weight.shape()[1]), weight.dtype(),
                         weight.device());  // (..., C)
  on_device(weight.device(),
            [&](auto on) { backend::embedding(on, y, weight.value(), indices.value()); });
  // dweight[v] = sum of dy[i] over the positions i with indices[i] == v
  return record("embedding", y, {weight},
                [indices = Saved(indices.value()), shape = weight.shape(),
                 padding = options.padding_index](const Array& dy, const Needs& needs) {
                  Array dweight = needs.take_sum(0);
                  const bool adds = dweight.defined();
                  if (!adds) dweight = Array::empty(shape, dy.dtype(), dy.device());
                  on_device(dy.device(), [&](auto on) {
                    backend::embedding_backward(on, dweight, dy, indices.value(), padding, adds);
                  });
                  return Gradients{dweight};
                });
}

}  // namespace gs
