#pragma once

#include "framework/backend/array.h"

namespace gs::backend {

// The elements of an array, or null where it is undefined.
template <typename T>
T* data_or_null(Array& array) {
  return array.defined() ? array.data<T>() : nullptr;
}
template <typename T>
const T* data_or_null(const Array& array) {
  return array.defined() ? array.data<T>() : nullptr;
}

}  // namespace gs::backend
