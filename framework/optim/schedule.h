#pragma once

#include <cstdint>
#include <string>

namespace gs {

// The learning rate of each step. Steps count from 1; step 0 has rate 0.
struct Schedule {
  enum class Kind {
    kConstant,
    kLinear,             // to the peak over `warmup` steps, then down to 0 at step `total`
    kCosine,             // the same with half a cosine on the way down
    kInverseSquareRoot,  // to the peak, then peak * sqrt(warmup / step)
    kNoam  // peak * width^-0.5 * min(step^-0.5, step * warmup^-1.5), Vaswani et al., 2017
  };

  Kind kind = Kind::kConstant;
  double peak = 1e-3;   // for Noam a factor, 1 in the paper
  int64_t warmup = 0;   // steps; 0 is none
  int64_t total = 0;    // steps, for linear and cosine; up to the warm-up: no fall
  int64_t width = 512;  // of the model, for Noam

  // "constant", "linear", "cosine", "inverse_square_root" or "noam"; anything else is refused.
  static Kind parse(const std::string& name);
  double rate(int64_t step) const;
};

}  // namespace gs
