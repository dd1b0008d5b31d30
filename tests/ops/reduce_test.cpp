#include "framework/ops/reduce.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "framework/core/parallel.h"
#include "tests/support/instruction_sets.h"
#include "tests/support/numbers.h"
#include "tests/support/operation_case.h"
#include "tests/support/pytorch_operations.h"
#include "tests/support/support.h"

namespace gs {
namespace {

using test::error_of;
using test::expect_near;
using test::Fixture;
using test::random_tensor;
using Inputs = test::FixtureInputs;
using Values = std::vector<double>;

constexpr double kInf = std::numeric_limits<double>::infinity(), kNan = NAN;

// The definitions, on the elements that make one result.
struct Definition {
  const char* name;
  Tensor (*operation)(const Tensor& x, const ReduceOptions& options);
  double (*of)(const Values& row);
};
double mean_of(const Values& row) {
  double sum = 0;
  for (const double value : row) sum += value;
  return sum / static_cast<double>(row.size());
}
double squares_of(const Values& row) {
  const double mean = mean_of(row);
  double sum = 0;
  for (const double value : row) sum += (value - mean) * (value - mean);
  return sum;
}
const std::vector<Definition> kDefinitions{
    {"sum", sum,
     [](const Values& row) { return row.empty() ? 0 : mean_of(row) * double(row.size()); }},
    {"mean", mean, mean_of},
    {"variance",
     [](const Tensor& x, const ReduceOptions& o) {
       return variance(x, {o.dimensions, o.keep});
     },
     [](const Values& row) { return squares_of(row) / double(row.size()); }},
    {"unbiased variance",
     [](const Tensor& x, const ReduceOptions& o) {
       return variance(x, {o.dimensions, o.keep, true});
     },
     [](const Values& row) {
       return row.empty() ? kNan : squares_of(row) / double(row.size() - 1);
     }},
    {"max", max, [](const Values& row) { return *std::max_element(row.begin(), row.end()); }},
    {"min", min, [](const Values& row) { return *std::min_element(row.begin(), row.end()); }},
    {"logsumexp", logsumexp,
     [](const Values& row) {
       double sum = 0;
       for (const double value : row) sum += std::exp(value);
       return std::log(sum);
     }},
    {"argmax", argmax, [](const Values& row) {
       return double(std::max_element(row.begin(), row.end()) - row.begin());
     }}};

// The elements of x that make each result, in the order of both.
std::vector<Values> rows_of(const Tensor& x, const std::vector<int64_t>& dimensions, Shape& kept) {
  const Shape& shape = x.shape();
  std::vector<int64_t> sizes(shape.begin(), shape.end());
  for (int d = 0; d < shape.rank(); ++d) {
    const bool named = std::find(dimensions.begin(), dimensions.end(), d) != dimensions.end();
    if (named || dimensions.empty()) sizes[static_cast<size_t>(d)] = 1;
  }
  kept = Shape(sizes);
  std::vector<Values> rows(static_cast<size_t>(kept.elements()));
  const Values values = x.values<double>();
  for (int64_t i = 0; i < shape.elements(); ++i) {
    int64_t rest = i, stride = 1, place = 0;
    for (int d = shape.rank() - 1; d >= 0; --d) {
      if (kept[d] != 1) place += rest % shape[d] * stride;
      stride *= kept[d];
      rest /= shape[d];
    }
    rows[static_cast<size_t>(place)].push_back(values[static_cast<size_t>(i)]);
  }
  return rows;
}

template <typename T>
void expect_definitions(const Shape& shape, const std::vector<int64_t>& dimensions,
                        double tolerance) {
  const Tensor x = random_tensor<T>(shape, 3);
  Shape kept;
  const std::vector<Values> rows = rows_of(x, dimensions, kept);
  const bool chooses = rows.empty() || !rows[0].empty();
  for (const Definition& definition : kDefinitions) {
    const std::string name = definition.name;
    SCOPED_TRACE(name + " of " + shape.text() + " over " + Shape(dimensions).text());
    if (name == "argmax" && dimensions.size() > 1) continue;
    if (!chooses && (name == "max" || name == "min" || name == "argmax")) continue;
    Values expected;
    for (const Values& row : rows) expected.push_back(definition.of(row));
    const Tensor y = definition.operation(x, {.dimensions = dimensions, .keep = true});
    EXPECT_EQ(y.shape(), kept);
    expect_near(y, expected, tolerance);
    const Tensor flat = definition.operation(x, {.dimensions = dimensions});
    EXPECT_EQ(flat.rank(), dimensions.empty() ? 0 : shape.rank() - int(dimensions.size()));
    EXPECT_EQ(flat.values<double>().size(), expected.size());
    expect_near(flat, expected, tolerance);
  }
}

TEST(Reduce, AgreesWithTheDefinitionsOverEverySetOfDimensions) {
  for (const Shape& shape : {Shape{3, 4, 1, 5}, Shape{2, 1, 3, 2}, Shape{1, 7, 2, 1}}) {
    for (int set = 0; set < 16; ++set) {
      std::vector<int64_t> dimensions;
      for (int d = 0; d < 4; ++d) {
        if (set >> d & 1) dimensions.push_back(d);
      }
      expect_definitions<double>(shape, dimensions, 1e-13);
      expect_definitions<float>(shape, dimensions, 1e-5);
    }
  }
  expect_definitions<double>({}, {}, 1e-14);
  expect_definitions<double>({2, 2, 2, 2, 2, 2, 2, 2}, {0, 2, 5, 7}, 1e-13);
}

TEST(Reduce, AgreesForEveryLengthAndInstructionSet) {
  test::for_each_instruction_set([] {
    for (const int64_t length : {1, 2, 3, 7, 8, 9, 31, 33, 64, 67, 131, 300}) {
      expect_definitions<float>({3, length}, {1}, 2e-5);
      expect_definitions<float>({length, 3}, {0}, 2e-5);
      expect_definitions<double>({2, 5, length}, {1}, 1e-12);
      expect_definitions<double>({length, 19}, {0}, 1e-12);
    }
  });
}

// Rows that are cut into pieces, wide tiles, and any number of threads.
TEST(Reduce, LongRowsDoNotDependOnThreads) {
  const int before = threads();
  const auto all = [](int count) {
    set_threads(count);
    std::vector<float> results;
    for (const Shape& shape : {Shape{2, 70001, 1}, Shape{1, 40000, 3}, Shape{2, 40, 2100}}) {
      const Tensor x = random_tensor<float>(shape, 5);
      for (const Definition& definition : kDefinitions) {
        const std::vector<float> y = definition.operation(x, {.dimensions = {1}}).values<float>();
        results.insert(results.end(), y.begin(), y.end());
      }
    }
    return results;
  };
  const std::vector<float> one = all(1);
  EXPECT_EQ(all(2), one);
  EXPECT_EQ(all(5), one);
  set_threads(2);
  expect_definitions<double>({2, 70001, 1}, {1}, 1e-11);
  expect_definitions<double>({40000, 3}, {0}, 1e-11);
  expect_definitions<double>({2, 40, 2100}, {1}, 1e-12);
  set_threads(before);
}

TEST(Reduce, LongFloatSumsAreAccurate) {
  const Shape shape{10000000};
  EXPECT_EQ(sum(Tensor(Array::full(shape, 1, kFloat32))).item(), 1e7);
  const Tensor tenths(Array::full(shape, 0.1, kFloat32));
  EXPECT_NEAR(sum(tenths).item(), 1e6, 1);
  EXPECT_NEAR(mean(tenths).item(), 0.1, 1e-8);
  const Tensor columns(Array::full({5000000, 2}, 0.1, kFloat32));
  EXPECT_NEAR(sum(columns, {.dimensions = {0}}).values<double>()[1], 5e5, 0.5);
}

// microsoft/onnxruntime#28463, ml-explore/mlx#2238: the mean of squares less the square of the mean
// cancels.
TEST(Reduce, VarianceOfLargeValuesIsExact) {
  const Tensor x = Tensor::of<float>({4}, {40000, 40001, 40002, 40003});
  EXPECT_EQ(variance(x).item(), 1.25);
  EXPECT_FLOAT_EQ(static_cast<float>(variance(x, {.unbiased = true}).item()), 5.0f / 3);
}

TEST(Reduce, PassesTheChecksOfEveryOperation) {
  struct Case {
    Shape shape;
    std::vector<int64_t> dimensions;
  };
  for (const Case& c : {Case{{3, 4}, {}},
                        {{3, 4}, {0}},
                        {{3, 4}, {-1}},
                        {{2, 3, 4}, {1}},
                        {{2, 3, 4}, {0, 2}},
                        {{2, 3, 1, 2}, {3, 1}},
                        {{}, {}},
                        {{1, 1}, {0}},
                        {{0, 3}, {1}},
                        {{2, 0}, {0}},
                        {{5, 70}, {1}}}) {
    for (const Definition& definition : kDefinitions) {
      if (std::string(definition.name) == "argmax") continue;
      if (std::string(definition.name) == "unbiased variance" &&
          (c.shape.elements() <= 1 || c.shape[0] <= 1))
        continue;
      SCOPED_TRACE(definition.name + std::string(" of ") + c.shape.text());
      for (const bool keep : {false, true}) {
        test::check_operation(definition.name,
                              [&](const std::vector<Tensor>& in) {
                                return definition.operation(in[0], {c.dimensions, keep});
                              },
                              {random_tensor<double>(c.shape, 9)});
      }
    }
  }
}

ReduceOptions options_of(const Inputs& in) {
  return {in.integers("dimensions"), in.option("keep") != 0};
}

TEST(Reduce, AgreesWithPyTorch) {
  test::expect_pytorch_agrees(
      {{"sum", [](const Inputs& in, const Fixture&) { return sum(in["x"], options_of(in)); }},
       {"mean", [](const Inputs& in, const Fixture&) { return mean(in["x"], options_of(in)); }},
       {"max", [](const Inputs& in, const Fixture&) { return max(in["x"], options_of(in)); }},
       {"min", [](const Inputs& in, const Fixture&) { return min(in["x"], options_of(in)); }},
       {"logsumexp",
        [](const Inputs& in, const Fixture&) { return logsumexp(in["x"], options_of(in)); }},
       {"variance", [](const Inputs& in, const Fixture&) {
          return variance(in["x"], {in.integers("dimensions"), in.option("keep") != 0,
                                    in.option("unbiased") != 0});
        }}});
}

Values gradient_of(Tensor (*operation)(const Tensor&, const ReduceOptions&), const Values& values) {
  const Tensor x =
      Tensor::of<double>({static_cast<int64_t>(values.size())}, values).set_needs_grad();
  operation(x, {}).backward();
  return x.gradient().values<double>();
}

// pytorch/pytorch#43519, #56734, microsoft/onnxruntime#7217, tensorflow/tensorflow#109337: ties got
// the whole gradient each.
TEST(Reduce, TiesShareTheGradient) {
  EXPECT_EQ(gradient_of(max, {3, 1, 3}), (Values{0.5, 0, 0.5}));
  EXPECT_EQ(gradient_of(min, {3, 1, 3, 1}), (Values{0, 0.5, 0, 0.5}));
  EXPECT_EQ(gradient_of(max, {-kInf, -kInf}), (Values{0.5, 0.5}));
  // Across dimensions that do not stand together.
  const Tensor x = Tensor::of<float>({2, 2, 2}, {7, 1, 2, 3, 4, 7, 3, 0}).set_needs_grad();
  max(x, {.dimensions = {0, 2}}).backward(Tensor::of<float>({2}, {1, 4}));
  EXPECT_EQ(x.gradient().values<float>(), (std::vector<float>{0.5, 0, 0, 2, 0, 0.5, 2, 0}));
}

void expect_propagation() {
  for (const int64_t place : {0, 1, 16, 40}) {
    std::vector<float> values(41, 1);
    values[static_cast<size_t>(place)] = NAN;
    for (const Shape& shape : {Shape{41, 1}, Shape{1, 41}}) {
      const Tensor x = Tensor::of<float>(shape, values);
      for (const auto operation : {sum, mean, max, min, logsumexp})
        EXPECT_TRUE(std::isnan(operation(x, {}).item()));
      EXPECT_EQ(argmax(x).item(), place);
    }
    const Tensor columns = Tensor::of<float>({41, 2}, [&] {
      std::vector<float> both(82, 2);
      both[static_cast<size_t>(2 * place)] = NAN;
      return both;
    }());
    expect_near(max(columns, {.dimensions = {0}}), {kNan, 2}, 0);
    expect_near(min(columns, {.dimensions = {0}}), {kNan, 2}, 0);
    EXPECT_EQ(argmax(columns, {.dimensions = {0}}).values<int32_t>(),
              (std::vector<int32_t>{static_cast<int32_t>(place), 0}));
  }
  EXPECT_EQ(gradient_of(max, {1, kNan, 2, kNan}), (Values{0, 0.5, 0, 0.5}));
  const Tensor infinite = Tensor::of<double>({3}, {1, kInf, 2});
  for (const auto operation : {sum, mean, max, logsumexp})
    EXPECT_EQ(operation(infinite, {}).item(), kInf);
}

TEST(Reduce, NanAndInfinityPropagate) { test::for_each_instruction_set(expect_propagation); }

TEST(Reduce, LogsumexpIsStable) {
  EXPECT_NEAR(logsumexp(Tensor::of<double>({2}, {1000, 1000})).item(), 1000 + std::log(2), 1e-12);
  EXPECT_NEAR(logsumexp(Tensor::of<float>({2}, {-1000, -1001})).item(), -999.6867, 1e-4);
  EXPECT_EQ(logsumexp(Tensor::of<double>({2}, {-kInf, 3})).item(), 3);
  EXPECT_EQ(logsumexp(Tensor::of<float>({2}, {-INFINITY, -INFINITY})).item(), -kInf);
  EXPECT_EQ(gradient_of(logsumexp, {-kInf, -kInf}), (Values{0, 0}));
  EXPECT_EQ(gradient_of(logsumexp, {-kInf, 3}), (Values{0, 1}));
}

TEST(Reduce, EmptyReductions) {
  const Tensor x = Tensor::of<float>({2, 0}, {});
  expect_near(sum(x, {.dimensions = {1}}), {0, 0}, 0);
  expect_near(mean(x, {.dimensions = {1}}), {kNan, kNan}, 0);
  expect_near(variance(x), {kNan}, 0);
  expect_near(variance(x, {.unbiased = true}), {kNan}, 0);
  expect_near(variance(Tensor::of<float>({1}, {5}), {.unbiased = true}), {kNan}, 0);
  expect_near(logsumexp(x, {.dimensions = {1}}), {-kInf, -kInf}, 0);
  EXPECT_EQ(sum(x, {.dimensions = {0}}).shape(), Shape({0}));
  EXPECT_EQ(max(x, {.dimensions = {0}}).shape(), Shape({0}));
  EXPECT_EQ(argmax(x, {.dimensions = {0}, .keep = true}).shape(), Shape({1, 0}));
  EXPECT_EQ(error_of([&] { max(x, {.dimensions = {1}}); }),
            "max: there is nothing to choose from, got shape [2, 0]");
  EXPECT_EQ(error_of([&] { min(x); }), "min: there is nothing to choose from, got shape [2, 0]");
  EXPECT_EQ(error_of([&] { argmax(x, {.dimensions = {1}}); }),
            "argmax: there is nothing to choose from, got shape [2, 0]");
}

TEST(Reduce, ArgmaxTakesTheFirst) {
  const Tensor x = Tensor::of<int32_t>({2, 3}, {1, 16777217, 16777216, 4, 4, -4});
  EXPECT_EQ(argmax(x, {.dimensions = {1}}).values<int32_t>(), (std::vector<int32_t>{1, 0}));
  EXPECT_EQ(argmax(x, {.dimensions = {0}}).values<int32_t>(), (std::vector<int32_t>{1, 0, 0}));
  EXPECT_EQ(argmax(x).item(), 1);
  EXPECT_EQ(argmax(x).dtype(), kInt32);
  EXPECT_EQ(argmax(Tensor::of<float>({2}, {-INFINITY, -INFINITY})).item(), 0);
}

TEST(Reduce, RefusesWhatItCannotDo) {
  const Tensor x = random_tensor<float>({2, 3}, 1);
  EXPECT_EQ(error_of([&] { sum(x, {.dimensions = {0, -2}}); }), "sum: dimension 0 is given twice");
  EXPECT_EQ(error_of([&] { mean(x, {.dimensions = {2}}); }),
            "mean: no dimension 2 in rank 2; use -2 to 1");
  EXPECT_EQ(error_of([&] {
              argmax(x, {.dimensions = {0, 1}});
            }),
            "argmax: takes one dimension or none, got 2");
  EXPECT_EQ(error_of([] { sum(Tensor::of<int32_t>({1}, {1})); }),
            "sum: needs float32 or float64, got int32; cast it first");
  EXPECT_EQ(error_of([] { argmax(Tensor::of<bool>({1}, {true})); }),
            "argmax: needs float32, float64 or int32, got bool; cast it first");
}

// A value that the gradient needs must not change unnoticed; sums need none.
TEST(Reduce, ChangedValuesAreNoticed) {
  for (const Definition& definition : kDefinitions) {
    const std::string name = definition.name;
    if (name == "argmax") continue;
    Tensor x = random_tensor<float>({3, 4}, 1).set_needs_grad();
    const Tensor y = definition.operation(x, {});
    x.add_in_place(random_tensor<float>({3, 4}, 2));
    if (name == "sum" || name == "mean") {
      y.backward();
      expect_near(x.gradient(), Values(12, name == "sum" ? 1 : 1.0 / 12), 1e-7);
    } else {
      EXPECT_NE(error_of([&] { y.backward(); }).find("was changed in place"), std::string::npos);
    }
  }
}

}  // namespace
}  // namespace gs
