#pragma once

#include <cstdint>

namespace gs::backend {

// Where the `count` largest elements of rows go, see top_log_softmax.
template <typename T>
struct TopRows {
  T* values;
  int32_t* indices;
  int64_t count;
};

}  // namespace gs::backend
