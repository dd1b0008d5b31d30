#include <cstdio>

#include "framework/gradstone.h"
#include "framework/train/options.h"

int main() {
  gs::Options options("outside", "Uses the installed package.");
  options.add("size", 3, "inner size");
  const gs::Tensor c = gs::matmul(gs::ones({2, 3}), gs::ones({3, 4}));
  std::printf("gradstone %s: %s of %g, %zu option\n", gs::version, c.shape().text().c_str(),
              static_cast<double>(c.value().data<float>()[7]), options.values().size());
}
