#pragma once

#include <string>

#include "tests/support/paths.h"
#include "tests/support/support.h"

namespace gs::test {

// Runs one of the programs with its arguments.
inline CommandResult run_program(const std::string& name, const std::string& arguments) {
  return run_command(program(name) + " " + arguments);
}

// A model and a corpus so small that a step takes a millisecond.
inline const std::string kSmall =
    " --toy-level 1 --toy-pairs 300 --test-pairs 5 --valid-pairs 5 --width 16 --heads 2"
    " --feed-forward 16 --encoder-layers 1 --decoder-layers 1 --dropout 0.1 --warmup 5 --threads "
    "2 ";

}  // namespace gs::test
