#pragma once

#include <string>

#include "framework/backend/backend.h"

namespace gs::backend {

// Vector instructions that kernels exist for, the plainest first. Every x86-64 processor has those
// of the baseline.
enum class InstructionSet { kBaseline, kSse4, kAvx2, kAvx512 };

// The one that the kernels and matrix products of this process run with: the best the processor
// has, or the one that the environment variable GRADSTONE_SIMD names (baseline, sse4, avx2,
// avx512); an unknown name, or one beyond the processor, is an Error. The first call chooses for
// good; the first array makes that call.
InstructionSet instruction_set(Cpu);

// Whether GRADSTONE_SIMD names it: other libraries are then held to it, too.
bool instruction_set_is_named(Cpu);

// What a value of GRADSTONE_SIMD means on a processor whose best one is `best`; empty is unset.
InstructionSet instruction_set_named(const std::string& name, InstructionSet best);

const char* title(InstructionSet set);  // "AVX-512"

}  // namespace gs::backend
