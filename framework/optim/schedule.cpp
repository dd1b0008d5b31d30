#include "framework/optim/schedule.h"

#include <algorithm>
#include <cmath>
#include <numbers>

#include "framework/core/error.h"

namespace gs {

Schedule::Kind Schedule::parse(const std::string& name) {
  if (name == "constant") return Kind::kConstant;
  if (name == "linear") return Kind::kLinear;
  if (name == "cosine") return Kind::kCosine;
  if (name == "inverse_square_root") return Kind::kInverseSquareRoot;
  check(name == "noam",
        "schedule: unknown, got '{}'; use constant, linear, cosine, inverse_square_root or noam",
        name);
  return Kind::kNoam;
}

double Schedule::rate(int64_t step) const {
  check(step >= 0 && warmup >= 0, "schedule: steps must be at least 0, got step {} and warm-up {}",
        step, warmup);
  if (step == 0) return 0;
  const double s = static_cast<double>(step), w = static_cast<double>(warmup);
  if (kind == Kind::kNoam) {
    const double rise = warmup == 0 ? 1 / std::sqrt(s) : s / (w * std::sqrt(w));
    return peak * std::min(1 / std::sqrt(s), rise) / std::sqrt(static_cast<double>(width));
  }
  if (step < warmup) return peak * s / w;
  if (kind == Kind::kConstant) return peak;
  if (kind == Kind::kInverseSquareRoot) return peak * std::sqrt(std::max(w, 1.0) / s);
  if (total <= warmup) return peak;
  const double done = std::min(1.0, (s - w) / (static_cast<double>(total) - w));
  return kind == Kind::kLinear ? peak * (1 - done)
                               : peak * (1 + std::cos(std::numbers::pi * done)) / 2;
}

}  // namespace gs
