#pragma once

#include <functional>

namespace gs::test {

// Calls `body` once for every instruction set that this processor has and the vector kernels were
// compiled for, from the plainest to the one that this process runs with.
void for_each_instruction_set(const std::function<void()>& body);

}  // namespace gs::test
