#pragma once

#include <string>

#include "tests/support/support.h"

namespace gs::test {

// A Python that can import these modules ("h5py, numpy"), or nothing.
inline std::string python_with(const std::string& modules) {
  for (const std::string candidate : {"python3", "/usr/bin/python3"}) {
    if (run_command(candidate + " -c 'import " + modules + "'").status == 0) return candidate;
  }
  return "";
}

}  // namespace gs::test
