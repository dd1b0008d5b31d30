#include "framework/backend/comparison.h"

#include "framework/backend/cuda/broadcast_reader.cuh"

namespace gs::backend {
namespace {

struct Equal {
  template <typename T>
  __device__ bool operator()(T a, T b) const {
    return a == b;
  }
};
struct NotEqual {
  template <typename T>
  __device__ bool operator()(T a, T b) const {
    return a != b;
  }
};
struct Less {
  template <typename T>
  __device__ bool operator()(T a, T b) const {
    return a < b;
  }
};
struct LessEqual {
  template <typename T>
  __device__ bool operator()(T a, T b) const {
    return a <= b;
  }
};
struct Greater {
  template <typename T>
  __device__ bool operator()(T a, T b) const {
    return a > b;
  }
};
struct GreaterEqual {
  template <typename T>
  __device__ bool operator()(T a, T b) const {
    return a >= b;
  }
};
struct And {
  __device__ bool operator()(bool a, bool b) const { return a && b; }
};
struct Or {
  __device__ bool operator()(bool a, bool b) const { return a || b; }
};

template <typename T, typename Function>
void for_all(const char* operation, Cuda device, Array& y, const Operand& a, const Operand& b,
             Function function) {
  if (y.elements() == 0) return;
  map(operation, device, y.elements(), y.data<bool>(), function, BroadcastReader<T>(a, y.shape()),
      BroadcastReader<T>(b, y.shape()));
}

template <typename T>
void compare_as(Cuda device, Comparison comparison, Array& y, const Operand& a, const Operand& b) {
  switch (comparison) {
    case Comparison::kEqual:
      return for_all<T>("compare", device, y, a, b, Equal());
    case Comparison::kNotEqual:
      return for_all<T>("compare", device, y, a, b, NotEqual());
    case Comparison::kLess:
      return for_all<T>("compare", device, y, a, b, Less());
    case Comparison::kLessEqual:
      return for_all<T>("compare", device, y, a, b, LessEqual());
    case Comparison::kGreater:
      return for_all<T>("compare", device, y, a, b, Greater());
    case Comparison::kGreaterEqual:
      return for_all<T>("compare", device, y, a, b, GreaterEqual());
  }
}

}  // namespace

void compare(Cuda device, Comparison comparison, Array& y, const Operand& a, const Operand& b,
             DType dtype) {
  if (dtype == kBFloat16) return compare_as<__nv_bfloat16>(device, comparison, y, a, b);
  dispatch_any("compare", dtype,
               [&](auto zero) { compare_as<decltype(zero)>(device, comparison, y, a, b); });
}

void logical(Cuda device, Logical operation, Array& y, const Operand& a, const Operand& b) {
  switch (operation) {
    case Logical::kAnd:
      return for_all<bool>("logical", device, y, a, b, And());
    case Logical::kOr:
      return for_all<bool>("logical", device, y, a, b, Or());
    case Logical::kXor:
      return for_all<bool>("logical", device, y, a, b, NotEqual());
  }
}

}  // namespace gs::backend
