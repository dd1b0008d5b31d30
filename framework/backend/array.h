#pragma once

#include <initializer_list>
#include <memory>
#include <vector>

#include "framework/backend/memory.h"
#include "framework/core/dtype.h"
#include "framework/core/shape.h"

namespace gs {

// Numbers in a device's memory: dense, row-major, no operators, no gradient. A copy is another
// handle to the same memory. A default-made Array is undefined and has no shape.
class Array {
 public:
  Array() = default;

  // Not initialised.
  static Array empty(const Shape& shape, DType dtype, Device device = Device::cpu());
  static Array like(const Array& other);
  static Array full(const Shape& shape, double value, DType dtype, Device device = Device::cpu());
  static Array zeros(const Shape& shape, DType dtype, Device device = Device::cpu());
  // On the CPU, from as many values as the shape has elements, outermost first.
  template <typename T>
  static Array of(const Shape& shape, const std::vector<T>& values);

  bool defined() const { return storage_ != nullptr; }
  const Shape& shape() const { return shape_; }
  int rank() const { return shape_.rank(); }
  int64_t elements() const { return shape_.elements(); }
  int64_t bytes() const { return elements() * size_of(dtype_); }
  DType dtype() const { return dtype_; }
  Device device() const;

  // The elements, in the memory of the device; another element type is refused.
  template <typename T>
  T* data();
  template <typename T>
  const T* data() const;
  void* raw() { return storage_->memory.data(); }
  const void* raw() const { return storage_->memory.data(); }

  // The same memory under another shape with as many elements.
  Array reshaped(const Shape& shape) const;
  bool shares_memory(const Array& other) const { return defined() && storage_ == other.storage_; }
  // Whether no other handle sees the memory, so that it may be changed or given away.
  bool sole() const { return storage_.use_count() == 1; }

  // Counts the changes made in place, so that a gradient can tell that a value it kept is gone.
  uint64_t version() const { return storage_->version; }
  void mark_changed() { ++storage_->version; }

  // Copies of the values, on this or another device, in this or another element type.
  Array clone() const;
  Array to(Device device) const;
  Array to(DType dtype) const;
  template <typename T>
  std::vector<T> values() const;

 private:
  struct Storage {
    Storage(Device device, int64_t bytes) : memory(device, bytes) {}
    Memory memory;
    uint64_t version = 0;
  };

  void check_type(DType dtype) const;

  std::shared_ptr<Storage> storage_;
  Shape shape_;
  DType dtype_ = kFloat32;
};

template <typename T>
T* Array::data() {
  check_type(dtype_of<T>);
  return static_cast<T*>(raw());
}

template <typename T>
const T* Array::data() const {
  check_type(dtype_of<T>);
  return static_cast<const T*>(raw());
}

}  // namespace gs
