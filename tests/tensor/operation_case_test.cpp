// The checks of all operations find each kind of error that is planted here.
#include "tests/support/operation_case.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>

#include "framework/core/profiler.h"
#include "tests/support/numbers.h"

namespace gs {
namespace {

using test::faults_of_operation;
using test::random_tensor;
using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using Tensors = std::vector<Tensor>;

// factor * a * b, in one type, element by element.
Array product(const Array& a, const Array& b, double factor = 1) {
  std::vector<double> values = a.values<double>();
  const std::vector<double> others = b.values<double>();
  for (size_t i = 0; i < values.size(); ++i) values[i] *= factor * others[i];
  return Array::of<double>(a.shape(), values).to(a.dtype());
}

Tensor multiply(const Tensors& in) {
  const Array a = in[0].value(), b = in[1].value();
  const OperationTimer timer("multiply");
  return record("multiply", product(a, b), {in[0], in[1]},
                [a = Saved(a), b = Saved(b)](const Array& dy) {
                  return Gradients{product(dy, b.value()), product(dy, a.value())};
                });
}

std::vector<double> multiply_reference(const std::vector<std::vector<double>>& in) {
  std::vector<double> y = in[0];
  for (size_t i = 0; i < y.size(); ++i) y[i] *= in[1][i];
  return y;
}

Tensors two(const Shape& shape) {
  return {random_tensor<double>(shape, 1), random_tensor<double>(shape, 2)};
}

TEST(OperationCase, FindsNothingInARightOperation) {
  for (const Shape& shape : {Shape{3, 5}, Shape{1}, Shape{0, 4}, Shape{}})
    EXPECT_THAT(faults_of_operation(multiply, two(shape), multiply_reference), IsEmpty());
}

TEST(OperationCase, FindsWhatNoProfileShows) {
  const auto operation = [](const Tensors& in) {
    const OperationTimer timer("times");
    return record("negate", product(in[0].value(), in[0].value(), 0), {in[0]},
                  [](const Array& dy) { return Gradients{product(dy, dy, 0)}; });
  };
  EXPECT_THAT(faults_of_operation(operation, {random_tensor<double>({3}, 1)}),
              ElementsAre("negate has no OperationTimer of that name"));
}

TEST(OperationCase, FindsAWrongValue) {
  const auto reference = [](const std::vector<std::vector<double>>& in) {
    std::vector<double> y = multiply_reference(in);
    y[4] += 1e-9;
    return y;
  };
  EXPECT_THAT(faults_of_operation(multiply, two({3, 2}), reference),
              ElementsAre(HasSubstr("float64 result: 1 of 6 elements differ, worst is element 4")));
}

TEST(OperationCase, FindsAWrongGradient) {
  const auto operation = [](const Tensors& in) {
    const Array a = in[0].value(), b = in[1].value();
    const OperationTimer timer("multiply");
    return record("multiply", product(a, b), {in[0], in[1]},
                  [a = Saved(a), b = Saved(b)](const Array& dy) {
                    return Gradients{product(dy, b.value()), product(dy, a.value(), 1.00001)};
                  });
  };
  EXPECT_THAT(faults_of_operation(operation, two({2, 3})),
              ElementsAre(HasSubstr("gradcheck: input 1 element")));
}

TEST(OperationCase, FindsAGradientThatTrustsChangedMemory) {
  const auto operation = [](const Tensors& in) {
    const Array a = in[0].value(), b = in[1].value();
    const OperationTimer timer("multiply");
    return record("multiply", product(a, b), {in[0], in[1]},
                  [a, b = Saved(b)](const Array& dy) {  // a bare Array
                    return Gradients{product(dy, b.value()), product(dy, a)};
                  });
  };
  EXPECT_THAT(faults_of_operation(operation, two({2, 3})),
              ElementsAre("changing input 0 in place made the gradient of input 1 wrong in "
                          "silence"));
}

TEST(OperationCase, FindsMemoryThatStays) {
  static std::vector<Array> kept;
  const auto operation = [](const Tensors& in) {
    kept.push_back(in[0].value());
    return multiply(in);
  };
  EXPECT_THAT(faults_of_operation(operation, two({2, 3})),
              ElementsAre(HasSubstr("bytes are left alive")));
  kept.clear();
}

TEST(OperationCase, FindsNodesThatStay) {
  static Tensors kept;
  const auto operation = [](const Tensors& in) {
    kept.push_back(multiply(in));
    return kept.back();
  };
  EXPECT_THAT(faults_of_operation(operation, two({2, 3})),
              Contains(HasSubstr("nodes are left alive")));
  kept.clear();
}

TEST(OperationCase, FindsWritesIntoWhatIsOnlyToBeRead) {
  const auto operation = [](const Tensors& in) {
    Array a = in[0].value();
    Tensor y = record("multiply", product(a, in[1].value()), {in[0]},
                      [b = Saved(in[1].value())](const Array& dy) {
                        const Array dx = product(dy, b.value());
                        Array same = dy;
                        std::memset(same.raw(), 0, static_cast<size_t>(same.bytes()));
                        return Gradients{dx};
                      });
    if (a.dtype() == kFloat64) a.data<double>()[1] += 1;
    return y;
  };
  const auto faults = faults_of_operation(operation, two({2, 3}));
  EXPECT_THAT(faults, Contains("input 0 was changed"));
  EXPECT_THAT(faults, Contains("backward changed its upstream gradient"));
  EXPECT_THAT(faults, Contains("input 1 got no gradient"));
}

TEST(OperationCase, FindsLossOfPrecisionAndOfType) {
  const auto rough = [](const Tensors& in) {
    const double factor = in[0].dtype() == kFloat32 ? 1.0001 : 1;
    const Array a = in[0].value(), b = in[1].value();
    const OperationTimer timer("multiply");
    return record("multiply", product(a, b, factor), {in[0], in[1]},
                  [a = Saved(a), b = Saved(b), factor](const Array& dy) {
                    return Gradients{product(dy, b.value(), factor), product(dy, a.value())};
                  });
  };
  const Tensors large{Tensor::of<double>({2}, {1, 2}), Tensor::of<double>({2}, {3, 4})};
  EXPECT_THAT(faults_of_operation(rough, large),
              ElementsAre(HasSubstr("float32 result: 2 of 2 elements differ"),
                          HasSubstr("float32 gradient of input 0: 2 of 2")));
  const auto widened = [](const Tensors& in) {
    return multiply({in[0], in[1]}).dtype() == kFloat32
               ? record("widen", product(in[0].value(), in[1].value()).to(kFloat64), {},
                        [](const Array&) { return Gradients{}; })
               : multiply(in);
  };
  EXPECT_THAT(faults_of_operation(widened, large),
              Contains("float32 inputs give float64, expected float32"));
}

TEST(OperationCase, FindsAGradientThatDependsOnWhoNeedsIt) {
  const auto operation = [](const Tensors& in) {
    const Array a = in[0].value(), b = in[1].value();
    const OperationTimer timer("multiply");
    return record("multiply", product(a, b), {in[0], in[1]},
                  [a = Saved(a), b = Saved(b)](const Array& dy, const Needs& needs) {
                    return Gradients{product(dy, b.value(), needs[1] ? 1 : 2),
                                     needs[1] ? product(dy, a.value()) : Array()};
                  });
  };
  EXPECT_THAT(faults_of_operation(operation, two({2, 3})),
              ElementsAre(HasSubstr("gradient of input 0 alone: 6 of 6 elements differ")));
}

TEST(OperationCase, ReportsKinksUnlessTheyAreExpected) {
  const auto absolute = [](const Tensors& in) {
    std::vector<double> values = in[0].values<double>(), signs;
    for (double& value : values) {
      signs.push_back(value > 0 ? 1 : -1);
      value = std::abs(value);
    }
    const Array sign = Array::of<double>(in[0].shape(), signs).to(in[0].dtype());
    const OperationTimer timer("abs");
    return record("abs", Array::of<double>(in[0].shape(), values).to(in[0].dtype()), {in[0]},
                  [sign](const Array& dy) { return Gradients{product(dy, sign)}; });
  };
  const Tensor x = Tensor::of<double>({3}, {-1, 0, 2});
  EXPECT_THAT(faults_of_operation(absolute, {x}),
              ElementsAre(HasSubstr("element 1: not differentiable here")));
  EXPECT_THAT(faults_of_operation(absolute, {x}, {}, {.has_kinks = true}), IsEmpty());
}

}  // namespace
}  // namespace gs
