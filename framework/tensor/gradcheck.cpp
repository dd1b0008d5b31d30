#include "framework/tensor/gradcheck.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "framework/core/random.h"

namespace gs {
namespace {

// A number in [-1, 1) away from 0, so that no error hides behind a zero weight.
double random_weight(RandomStream stream, int64_t index) {
  const auto words = stream.words(static_cast<uint64_t>(index));
  const double size = 0.25 + 0.75 * unit_float(words[0]);
  return words[1] & 1 ? size : -size;
}

// The function with one input element as its variable.
class Slice {
 public:
  Slice(const std::function<Tensor(const std::vector<Tensor>&)>& function,
        const std::vector<Tensor>& inputs, const std::vector<double>& weights)
      : function_(function), inputs_(inputs), weights_(weights) {
    for (const Tensor& input : inputs)
      originals_.push_back(input.needs_grad() ? input.values<double>() : std::vector<double>());
  }

  // What rounding may add to a difference of two values of this size, a few units of each sum.
  double rounding() const { return 4 * std::numeric_limits<double>::epsilon() * magnitude_; }

  double value(size_t input, int64_t element) const {
    return originals_[input][static_cast<size_t>(element)];
  }

  double at(size_t input, int64_t element, double offset) const {
    const double before = value(input, element);
    write(input, element, before + offset);
    const NoGrad no_grad;
    const std::vector<double> y = function_(inputs_).values<double>();
    write(input, element, before);
    double sum = 0;
    magnitude_ = 0;
    for (size_t i = 0; i < y.size(); ++i) {
      sum += weights_[i] * y[i];
      magnitude_ += std::abs(weights_[i] * y[i]);
    }
    return sum;
  }

 private:
  void write(size_t input, int64_t element, double value) const {
    Array values = inputs_[input].value();
    on_device(values.device(), [&](auto on) {
      backend::copy_from_host(on, values.data<double>() + element, &value, sizeof(value));
    });
  }

  const std::function<Tensor(const std::vector<Tensor>&)>& function_;
  const std::vector<Tensor>& inputs_;
  const std::vector<double>& weights_;
  std::vector<std::vector<double>> originals_;  // of the inputs that need gradients
  mutable double magnitude_ = 0;                // sum |w * y| of the latest call
};

struct Difference {
  double slope = 0;
  double floor = 0;  // below it a slope is rounding
  bool kink = false;
};

Difference difference(const Slice& slice, size_t input, int64_t element, double step, double scale,
                      double tolerance) {
  const double center = slice.at(input, element, 0);
  const double right = slice.at(input, element, step), left = slice.at(input, element, -step);
  const double right2 = slice.at(input, element, 2 * step),
               left2 = slice.at(input, element, -2 * step);
  Difference result;
  result.slope = (8 * (right - left) - (right2 - left2)) / (12 * step);
  // A gradient of 0 cannot be told from what rounding leaves of the differences.
  result.floor = std::max(scale, slice.rounding() / (step * tolerance));
  // One-sided slopes of second order agree to O(step^2) wherever the function is smooth.
  const double forward = (4 * right - right2 - 3 * center) / (2 * step);
  const double backward = (3 * center - 4 * left + left2) / (2 * step);
  const double size = std::max({std::abs(forward), std::abs(backward), result.floor});
  // Values that are not finite are no kink but wrong: their slope is not a number.
  result.kink = std::isfinite(center) && !(std::abs(forward - backward) <= 1e-3 * size);
  return result;
}

std::vector<int64_t> sampled_elements(int64_t elements, const GradcheckOptions& options,
                                      uint64_t input) {
  std::vector<int64_t> result;
  if (elements <= options.samples_per_input) {
    for (int64_t i = 0; i < elements; ++i) result.push_back(i);
    return result;
  }
  const RandomStream stream{options.seed, 1000 + input};
  for (int64_t i = 0; i < options.samples_per_input; ++i) {
    const uint64_t word = stream.words(static_cast<uint64_t>(i))[0];
    result.push_back(static_cast<int64_t>(word * static_cast<uint64_t>(elements) >> 32));
  }
  return result;
}

std::vector<Tensor> in_double(const std::vector<Tensor>& inputs) {
  std::vector<Tensor> result;
  for (const Tensor& input : inputs) {
    Tensor copy(is_floating(input.dtype()) ? input.value().to(kFloat64).clone() : input.value());
    if (is_floating(input.dtype())) copy.set_needs_grad();
    result.push_back(copy);
  }
  return result;
}

}  // namespace

GradcheckResult gradcheck(const std::function<Tensor(const std::vector<Tensor>&)>& function,
                          const std::vector<Tensor>& inputs, const GradcheckOptions& options,
                          const std::vector<std::string>& names) {
  const std::vector<Tensor> variables = in_double(inputs);
  const Tensor y = function(variables);
  check(y.dtype() == kFloat64, "gradcheck: float64 inputs must give a float64 result, got {}",
        y.dtype());
  std::vector<double> weights(static_cast<size_t>(y.elements()));
  const RandomStream stream{options.seed, 0};
  for (size_t i = 0; i < weights.size(); ++i)
    weights[i] = random_weight(stream, static_cast<int64_t>(i));
  y.backward(Tensor::of<double>(y.shape(), weights).to(y.device()));

  const Slice slice(function, variables, weights);
  GradcheckResult result{.passed = true};
  for (size_t i = 0; i < variables.size(); ++i) {
    if (!variables[i].needs_grad()) continue;
    const std::string name = i < names.size() ? names[i] : fmt::format("input {}", i);
    const Tensor gradient = variables[i].gradient();
    const std::vector<double> analytic =
        gradient.defined() ? gradient.values<double>()
                           : std::vector<double>(static_cast<size_t>(variables[i].elements()));
    double largest = 1e-3;
    for (const double value : analytic) largest = std::max(largest, std::abs(value));
    for (const int64_t element : sampled_elements(variables[i].elements(), options, i)) {
      const double x = slice.value(i, element);
      const double expected = analytic[static_cast<size_t>(element)];
      const double step = options.step * std::max(1.0, std::abs(x));
      const Difference numeric =
          difference(slice, i, element, step, 1e-3 * largest, options.tolerance);
      if (numeric.kink) {
        result.kinks.push_back(
            fmt::format("{} element {}: not differentiable here, at {:g}", name, element, x));
        continue;
      }
      ++result.checked;
      const double size = std::max({std::abs(expected), std::abs(numeric.slope), numeric.floor});
      const double error = std::abs(expected - numeric.slope) / size;
      if (error <= result.worst || std::isnan(result.worst)) continue;
      result.worst = error;
      result.message = fmt::format(
          "{} element {} of {}: gradient {:.12g}, differences give {:.12g}, relative error {:.3g}",
          name, element, variables[i].shape(), expected, numeric.slope, error);
    }
  }
  result.passed = result.worst <= options.tolerance && !std::isnan(result.worst);
  return result;
}

}  // namespace gs
