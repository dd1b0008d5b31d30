#include "framework/core/random.h"

namespace gs {

Generator& default_generator() {
  static Generator generator;
  return generator;
}

void set_seed(uint64_t seed) { default_generator() = Generator(seed); }

}  // namespace gs
