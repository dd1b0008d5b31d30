#pragma once

#include <optional>

#include "framework/nn/module.h"

namespace gs::nn {

// A table of vectors, normal with deviation width^-1/2. The padding row starts at 0, gets no
// gradient, and is not decayed.
struct Embedding : Module {
  struct Config {
    std::optional<int64_t> padding_index = std::nullopt;
  };

  Embedding(int64_t entries, int64_t width, Config config);
  Embedding(int64_t entries, int64_t width) : Embedding(entries, width, Config()) {}
  Tensor operator()(const Tensor& indices) const;  // int32 (...) -> (..., C)

  Parameter weight;  // (V, C)
  const Config config;
};

}  // namespace gs::nn
