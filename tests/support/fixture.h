#pragma once

#include <map>
#include <string>
#include <vector>

#include "framework/core/dtype.h"
#include "framework/core/shape.h"

namespace gs::test {

// Reference values, row-major; `dtype` is float64, int32 (indices) or bool (masks, as 0 and 1).
struct FixtureArray {
  Shape shape;
  std::vector<double> values;
  DType dtype = kFloat64;
};

// One case of tests/data/pytorch/<group>.json, computed by PyTorch in double precision
// (tools/pytorch_fixtures.py). Values are found by their path, such as "inputs/x" or
// "gradients/query/weight"; a path that is not there throws an Error that lists what is.
class Fixture {
 public:
  static Fixture load(const std::string& group, const std::string& name);
  // Every case of a group, in alphabetical order.
  static std::vector<Fixture> load_all(const std::string& group);

  const std::string& name() const { return name_; }
  // What the case computes, such as "sum" in the case "sum_dims_0_2".
  const std::string& operation() const { return text("operation"); }

  const FixtureArray& array(const std::string& path) const;
  double number(const std::string& path) const;  // also of an array with one element
  bool flag(const std::string& path) const { return number(path) != 0; }
  std::vector<int64_t> integers(const std::string& path) const;  // the values of an array
  const std::string& text(const std::string& path) const;
  // Whether there is something at or below `path`.
  bool has(const std::string& path) const;

  // The rest of every path below `path`: names("parameters") gives "query/weight", ...
  std::vector<std::string> names(const std::string& path) const;

 private:
  std::string group_, name_;
  std::map<std::string, FixtureArray> arrays_;
  std::map<std::string, std::string> texts_;

  friend struct FixtureReader;
};

}  // namespace gs::test
