#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "framework/backend/array.h"

namespace gs {

using TrainingValue = std::variant<int64_t, double, std::string>;

// All that a training run needs to go on, as plain names and values. In the file (HDF5, readable
// with h5py): /model/<path>, tied parameters as soft links, /optimizer/<path>/<state>,
// /training/<name>, /config/<name>, /tokenizer/<name>. Parts of names are separated by '/'.
struct Checkpoint {
  std::map<std::string, Array> parameters;        // "encoder/layers/0/norm/weight" -> values
  std::map<std::string, std::string> ties;        // path -> path of the parameter that it shares
  std::map<std::string, Array> optimizer;         // "<path>/first_moment" -> values
  std::map<std::string, TrainingValue> training;  // step, epoch, position in the data, seed, ...
  std::map<std::string, std::string> config;      // every model size and option, as text
  std::map<std::string, std::string> tokenizer;   // name -> any bytes
};

// Names in `config` that begin so are options of the run; the others make the model what it is.
inline constexpr const char* kRunOptions = "options/";

// Writes a file that is whole and verified, or throws and leaves what stood at `path` as it was.
// Arrays may live on any device.
void save_checkpoint(const std::string& path, const Checkpoint& checkpoint);

// Reads all of it or throws; arrays come on the CPU. A file with any changed or missing byte is
// refused.
Checkpoint load_checkpoint(const std::string& path);

// The same without /optimizer and /training, which a model that is only to compute does not need.
Checkpoint load_model_checkpoint(const std::string& path);

// Reads and verifies the file, but gives /training alone.
std::map<std::string, TrainingValue> load_training_values(const std::string& path);

// What a model expects beside what a file holds.
struct NameComparison {
  std::vector<std::string> missing, unexpected;
  std::vector<std::string> misshapen;  // "weight is [1, 4] float32, not [3, 4] float32"
  int64_t matched = 0;

  bool complete() const { return missing.empty() && unexpected.empty() && misshapen.empty(); }
  // "2 names missing (a, b), 1 unexpected (c)"; of long lists the first few.
  std::string text() const;
};
using ExpectedNames = std::map<std::string, std::pair<Shape, DType>>;
NameComparison compare_names(const ExpectedNames& expected,
                             const std::map<std::string, Array>& found);

// Throws one Error with all differences, "load: 1 name missing (a) in run/step_900.h5".
void check_names(const ExpectedNames& expected, const std::map<std::string, Array>& found,
                 const std::string& path);

}  // namespace gs
