#pragma once

#include <fmt/core.h>
#include <hdf5.h>

#include <atomic>
#include <bit>
#include <mutex>
#include <string>
#include <utility>

#include "framework/core/dtype.h"

// What reader and writer share; only they include this, and nothing else includes HDF5.
namespace gs::hdf5 {

static_assert(std::endian::native == std::endian::little, "stored values are read as they are");

// An identifier of HDF5, closed at the end of its scope.
class Handle {
 public:
  using Close = herr_t (*)(hid_t);
  Handle() = default;
  Handle(hid_t id, Close close) : id_(id), close_(close) {}
  Handle(Handle&& other) noexcept : id_(std::exchange(other.id_, -1)), close_(other.close_) {}
  Handle& operator=(Handle&& other) noexcept {
    std::swap(id_, other.id_);
    std::swap(close_, other.close_);
    return *this;
  }
  ~Handle() {
    if (id_ >= 0) close_(id_);
  }
  operator hid_t() const { return id_; }

 private:
  hid_t id_ = -1;
  Close close_ = nullptr;
};

// Alone with HDF5, whose printing of errors is off meanwhile.
class Session {
 public:
  Session() : lock_(mutex()) {
    H5Eget_auto2(H5E_DEFAULT, &print_, &data_);
    H5Eset_auto2(H5E_DEFAULT, nullptr, nullptr);
  }
  ~Session() {
    H5Eclear2(H5E_DEFAULT);
    H5Eset_auto2(H5E_DEFAULT, print_, data_);
  }

 private:
  static std::recursive_mutex& mutex() {
    static std::recursive_mutex mutex;
    return mutex;
  }
  std::lock_guard<std::recursive_mutex> lock_;
  H5E_auto2_t print_ = nullptr;
  void* data_ = nullptr;
};

// The innermost reason that HDF5 has noted.
inline std::string reason() {
  std::string text = "unknown reason";
  const auto take = [](unsigned depth, const H5E_error2_t* error, void* data) -> herr_t {
    if (depth == 0 && error->desc != nullptr) *static_cast<std::string*>(data) = error->desc;
    return 0;
  };
  H5Ewalk2(H5E_DEFAULT, H5E_WALK_UPWARD, take, &text);
  H5Eclear2(H5E_DEFAULT);
  return text;
}

// HDF5 takes two core files of one name for the same file.
inline std::string fresh_label() {
  static std::atomic<int64_t> count = 0;
  return fmt::format("gradstone-{}", count++);
}

inline Handle copy_of(hid_t type) { return {H5Tcopy(type), H5Tclose}; }

inline Handle bool_type() {
  Handle type(H5Tenum_create(H5T_STD_I8LE), H5Tclose);
  const int8_t no = 0, yes = 1;
  H5Tenum_insert(type, "FALSE", &no);
  H5Tenum_insert(type, "TRUE", &yes);
  return type;
}

inline Handle bfloat16_type() {
  Handle type = copy_of(H5T_IEEE_F32LE);
  H5Tset_fields(type, 15, 7, 8, 0, 7);
  H5Tset_size(type, 2);
  H5Tset_ebias(type, 127);
  return type;
}

inline Handle type_of(DType dtype) {
  switch (dtype) {
    case kFloat32:
      return copy_of(H5T_IEEE_F32LE);
    case kFloat64:
      return copy_of(H5T_IEEE_F64LE);
    case kInt32:
      return copy_of(H5T_STD_I32LE);
    case kBool:
      return bool_type();
    case kBFloat16:
      return bfloat16_type();
  }
  return {};
}

}  // namespace gs::hdf5
