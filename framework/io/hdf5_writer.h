#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "framework/backend/array.h"

namespace gs {

// An HDF5 file made in memory, so that a full disk never meets HDF5 halfway. Paths have no leading
// '/'; groups are made as needed. Same contents give the same bytes. Every Error is one line,
// "save: <path> ...", with HDF5's reason where there is one. HDF5 is not safe for threads: a writer
// holds a lock for its lifetime.
class Hdf5Writer {
 public:
  // `path` stands in messages alone. The file begins with `user_bytes` (0, or a power of two from
  // 512) that HDF5 leaves to others.
  Hdf5Writer(std::string path, int64_t user_bytes);
  ~Hdf5Writer();

  void attribute(const std::string& name, int64_t value);  // of the root group
  void attribute(const std::string& name, const std::string& value);
  void group(const std::string& path);
  // bool as h5py's enumeration, bfloat16 as a float of 16 bits (8 exponent, 7 mantissa).
  void array(const std::string& path, const Array& array);
  void integer(const std::string& path, int64_t value);
  void number(const std::string& path, double value);
  // UTF-8 text of fixed length, ended by a NUL of its own; inner NUL bytes are kept.
  void text(const std::string& path, const std::string& value);
  void bytes(const std::string& path, std::string_view value);  // uint8, (size)
  void link(const std::string& path, const std::string& target);

  // The whole file after the user bytes, valid until the writer changes or goes.
  std::string_view finish();

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace gs
