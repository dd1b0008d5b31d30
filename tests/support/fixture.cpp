#include "tests/support/fixture.h"

#include <fmt/format.h>

#include <cmath>
#include <fstream>
#include <limits>
#include <nlohmann/json.hpp>

#include "framework/core/error.h"
#include "tests/support/paths.h"

namespace gs::test {

using Json = nlohmann::json;

// Flattens the JSON tree of a case into paths.
struct FixtureReader {
  Fixture fixture;

  // JSON has no infinities: they are written as "inf" and "-inf".
  static double number(const Json& json) {
    if (json.is_boolean()) return json.get<bool>() ? 1 : 0;
    if (json == "inf") return std::numeric_limits<double>::infinity();
    if (json == "-inf") return -std::numeric_limits<double>::infinity();
    return json.get<double>();
  }

  static std::vector<double> numbers(const Json& json) {
    std::vector<double> values;
    values.reserve(json.size());
    for (const Json& value : json) values.push_back(number(value));
    return values;
  }

  static FixtureArray array(const std::string& path, const Json& json) {
    FixtureArray array;
    array.shape = Shape(json.at("shape").get<std::vector<int64_t>>());
    array.values = numbers(json.at("values"));
    const std::string dtype = json.value("dtype", "float64");
    array.dtype = dtype == "int32" ? kInt32 : dtype == "bool" ? kBool : kFloat64;
    check(array.shape.elements() == static_cast<int64_t>(array.values.size()),
          "fixture: {} has shape {}, got {} values", path, array.shape, array.values.size());
    return array;
  }

  void read(const std::string& path, const Json& json) {
    if (json.is_object() && json.contains("shape") && json.contains("values")) {
      fixture.arrays_[path] = array(path, json);
    } else if (json.is_object()) {
      for (const auto& [key, value] : json.items())
        read(path.empty() ? key : path + "/" + key, value);
    } else if (json.is_array()) {
      fixture.arrays_[path] = {{static_cast<int64_t>(json.size())}, numbers(json)};
    } else if (json.is_string()) {
      fixture.texts_[path] = json.get<std::string>();
    } else {
      fixture.arrays_[path] = {{}, {number(json)}};
    }
  }

  static Json parse(const std::string& group) {
    const std::string path = test_data(fmt::format("pytorch/{}.json", group));
    std::ifstream stream(path);
    check(stream.is_open(), "fixture: cannot open {}; run tools/pytorch_fixtures.py", path);
    return Json::parse(stream);
  }

  static Fixture of_case(const std::string& group, const std::string& name, const Json& json) {
    FixtureReader reader;
    reader.fixture.group_ = group;
    reader.fixture.name_ = name;
    reader.read("", json);
    return std::move(reader.fixture);
  }
};

namespace {

template <typename Value>
std::string keys_of(const std::map<std::string, Value>& map) {
  std::vector<std::string> keys;
  for (const auto& [key, value] : map) keys.push_back(key);
  return fmt::format("{}", fmt::join(keys, ", "));
}

}  // namespace

Fixture Fixture::load(const std::string& group, const std::string& name) {
  const Json json = FixtureReader::parse(group);
  if (json.contains(name)) return FixtureReader::of_case(group, name, json.at(name));
  std::vector<std::string> cases;
  for (const auto& [key, value] : json.items()) cases.push_back(key);
  fail("fixture: no case {} in {}; it has {}", name, group, fmt::join(cases, ", "));
}

std::vector<Fixture> Fixture::load_all(const std::string& group) {
  std::vector<Fixture> fixtures;
  const Json json = FixtureReader::parse(group);
  for (const auto& [key, value] : json.items())
    fixtures.push_back(FixtureReader::of_case(group, key, value));
  return fixtures;
}

const FixtureArray& Fixture::array(const std::string& path) const {
  const auto found = arrays_.find(path);
  check(found != arrays_.end(), "fixture: no array {} in {}/{}; it has {}", path, group_, name_,
        keys_of(arrays_));
  return found->second;
}

double Fixture::number(const std::string& path) const {
  const FixtureArray& values = array(path);
  check(values.values.size() == 1, "fixture: {} in {}/{} is not a number, got shape {}", path,
        group_, name_, values.shape);
  return values.values[0];
}

std::vector<int64_t> Fixture::integers(const std::string& path) const {
  std::vector<int64_t> result;
  for (const double value : array(path).values) {
    check(value == std::trunc(value) && std::isfinite(value),
          "fixture: {} in {}/{} holds a value that is not an integer, got {}", path, group_, name_,
          value);
    result.push_back(static_cast<int64_t>(value));
  }
  return result;
}

const std::string& Fixture::text(const std::string& path) const {
  const auto found = texts_.find(path);
  check(found != texts_.end(), "fixture: no text {} in {}/{}; it has {}", path, group_, name_,
        keys_of(texts_));
  return found->second;
}

bool Fixture::has(const std::string& path) const {
  const auto below = arrays_.lower_bound(path + "/");
  return arrays_.contains(path) || texts_.contains(path) ||
         (below != arrays_.end() && below->first.starts_with(path + "/"));
}

std::vector<std::string> Fixture::names(const std::string& path) const {
  std::vector<std::string> result;
  const std::string prefix = path + "/";
  for (const auto& [key, value] : arrays_)
    if (key.starts_with(prefix)) result.push_back(key.substr(prefix.size()));
  check(!result.empty(), "fixture: nothing below {} in {}/{}; it has {}", path, group_, name_,
        keys_of(arrays_));
  return result;
}

}  // namespace gs::test
