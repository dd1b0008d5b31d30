#include "framework/nn/dropout.h"

#include "framework/ops/dropout.h"

namespace gs::nn {

Dropout::Dropout(double probability) : probability(probability) {
  check(probability >= 0 && probability <= 1, "dropout: the probability must be 0 to 1, got {}",
        probability);
}

Tensor Dropout::operator()(const Tensor& x) const { return dropout(x, probability, training()); }

}  // namespace gs::nn
