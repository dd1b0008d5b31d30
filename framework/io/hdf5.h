#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "framework/backend/array.h"

namespace gs {

// HDF5 files in memory: written to a block of bytes, read from one, so that a full disk or a cut
// file never meets HDF5 halfway. Every Error is one line: "<operation>: <path> ...", with HDF5's
// reason where there is one; HDF5 itself prints nothing. HDF5 is not safe for threads: a writer or
// reader holds a lock for its lifetime. Paths have no leading '/'; groups are made as needed.
// Same contents give the same bytes.
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

// Trusts nothing that the bytes claim: sizes are checked against what is stored before memory is
// asked for; chunked, virtual and external data and external links are refused.
class Hdf5Reader {
 public:
  using Value = std::variant<int64_t, double, std::string>;

  // `file` is the whole file; it must outlive the reader and does not change.
  Hdf5Reader(std::string path, char* file, size_t size);
  ~Hdf5Reader();

  int64_t integer_attribute(const std::string& name) const;
  std::string text_attribute(const std::string& name) const;

  // Paths of all data sets below a group, relative to it, in order, and of the links with their
  // targets. A missing group is an Error.
  struct Names {
    std::vector<std::string> data;
    std::vector<std::pair<std::string, std::string>> links;
  };
  Names names(const std::string& group) const;

  Array array(const std::string& path) const;
  Value value(const std::string& path) const;
  std::string text(const std::string& path) const;
  std::string bytes(const std::string& path) const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace gs
