#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "framework/backend/array.h"

namespace gs {

// Reads an HDF5 file that lies in memory. Trusts nothing that the bytes claim: sizes are checked
// against what is stored before memory is asked for; chunked, virtual and external data and
// external links are refused. Every Error is one line, "load: <path> ...", with HDF5's reason where
// there is one. HDF5 is not safe for threads: a reader holds a lock for its lifetime.
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
