#pragma once

#include <string>
#include <vector>

#include "framework/io/checkpoint.h"

namespace gs {

// The mean of the models of several checkpoint files of one run, which mostly translates better
// than each of them (Vaswani et al., "Attention is all you need", 2017, section 6.1). Parameters
// are averaged in double precision, tied ones once; those that are not floating must be equal.
// Names, shapes, types, config (but for the options of the run and what only one file has, as after
// a change of version) and tokenizer must agree, all differences of all files are listed in one
// Error, and so is a file that is named twice. The rest, "step" included, is the last file's;
// /training tells the "averaged_files", one a line, and there is no optimizer.
Checkpoint average_checkpoints(const std::vector<std::string>& paths);

}  // namespace gs
