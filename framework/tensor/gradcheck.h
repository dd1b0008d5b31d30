#pragma once

#include <functional>
#include <string>
#include <vector>

#include "framework/tensor/tensor.h"

namespace gs {

struct GradcheckOptions {
  double tolerance = 1e-6;  // of the difference, relative to the larger gradient or 1e-3 of the
                            // largest one; what rounding does to the differences is allowed for
  double step = 1e-4;       // of the differences, times max(1, |x|)
  int64_t samples_per_input =
      64;  // elements checked of a larger input, drawn with `seed`; all of a smaller one
  uint64_t seed = 1;
};

struct GradcheckResult {
  bool passed = false;
  double worst = 0;     // largest relative difference found
  int64_t checked = 0;  // elements compared
  // Elements where the function is not differentiable; they do not count.
  std::vector<std::string> kinks = {};
  std::string message = {};  // names the worst offender: input, element, both gradients
};

// Compares the gradients of sum(w * function(inputs)), w random, with differences of fourth order
// in double precision. Inputs are converted to float64; integer and boolean ones are passed as they
// are. `names` say what the inputs are called in the message. Where the differences from the left
// and from the right disagree the function has a kink, and the element is reported instead.
// The function must not draw other random numbers in each call.
GradcheckResult gradcheck(const std::function<Tensor(const std::vector<Tensor>&)>& function,
                          const std::vector<Tensor>& inputs, const GradcheckOptions& options = {},
                          const std::vector<std::string>& names = {});

}  // namespace gs
