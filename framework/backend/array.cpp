#include "framework/backend/array.h"

#include <algorithm>
#include <utility>

#include "framework/backend/copy.h"

namespace gs {

Array Array::empty(const Shape& shape, DType dtype, Device device) {
  int64_t bytes = 0;
  check(!__builtin_mul_overflow(shape.elements(), size_of(dtype), &bytes),
        "array: too many bytes in {} of {}", shape, dtype);
  Array array;
  array.storage_ = std::make_shared<Storage>(device, bytes);
  array.shape_ = shape;
  array.dtype_ = dtype;
  return array;
}

Array Array::like(const Array& other) {
  return empty(other.shape(), other.dtype(), other.device());
}

Array Array::full(const Shape& shape, double value, DType dtype, Device device) {
  Array array = empty(shape, dtype, device);
  on_device(device, [&](auto on) { backend::fill(on, array, value); });
  return array;
}

Array Array::zeros(const Shape& shape, DType dtype, Device device) {
  return full(shape, 0, dtype, device);
}

template <typename T>
Array Array::of(const Shape& shape, const std::vector<T>& values) {
  check(static_cast<int64_t>(values.size()) == shape.elements(),
        "array: {} needs {} values, got {}", shape, shape.elements(), values.size());
  Array array = empty(shape, dtype_of<T>);
  std::copy(values.begin(), values.end(), array.data<T>());
  return array;
}

Device Array::device() const {
  check(defined(), "array: it is undefined; give it a value first");
  return storage_->memory.device();
}

Array Array::reshaped(const Shape& shape) const {
  check(shape.elements() == elements(), "reshape: {} has {} elements, got {} with {}", shape_,
        elements(), shape, shape.elements());
  Array array = *this;
  array.shape_ = shape;
  return array;
}

Array Array::clone() const {
  Array array = like(*this);
  on_device(device(), [&](auto on) { backend::copy(on, array, *this); });
  return array;
}

Array Array::to(Device target) const {
  if (target == device()) return clone();
  if (target != Device::cpu() && device() != Device::cpu()) return to(Device::cpu()).to(target);
  Array array = empty(shape_, dtype_, target);
  if (target == Device::cpu()) {
    on_device(device(), [&](auto on) { backend::copy_to_host(on, array.raw(), raw(), bytes()); });
  } else {
    on_device(target, [&](auto on) { backend::copy_from_host(on, array.raw(), raw(), bytes()); });
  }
  return array;
}

Array Array::to(DType dtype) const {
  Array array = empty(shape_, dtype, device());
  on_device(device(), [&](auto on) { backend::cast(on, array, *this); });
  return array;
}

template <typename T>
std::vector<T> Array::values() const {
  Array array = device() == Device::cpu() ? *this : to(Device::cpu());
  if (dtype_ != dtype_of<T>) array = array.to(dtype_of<T>);
  const T* const first = std::as_const(array).data<T>();
  return std::vector<T>(first, first + elements());
}

void Array::check_type(DType dtype) const {
  check(defined(), "array: it is undefined; give it a value first");
  check(dtype == dtype_, "array: read as {}, but it holds {}", dtype, dtype_);
}

template Array Array::of(const Shape&, const std::vector<float>&);
template Array Array::of(const Shape&, const std::vector<double>&);
template Array Array::of(const Shape&, const std::vector<int32_t>&);
template Array Array::of(const Shape&, const std::vector<bool>&);
template std::vector<float> Array::values() const;
template std::vector<double> Array::values() const;
template std::vector<int32_t> Array::values() const;
template std::vector<bool> Array::values() const;

}  // namespace gs
