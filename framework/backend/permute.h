#pragma once

#include <span>

#include "framework/backend/array.h"

namespace gs::backend {

// y = x with its dimensions in the order given: y's dimension d is x's order[d]. Any type.
void permute(Cpu, Array& y, const Array& x, std::span<const int> order);
void permute(Cuda, Array& y, const Array& x, std::span<const int> order);

}  // namespace gs::backend
