#pragma once

#include <string>

#include "framework/io/checkpoint.h"
#include "framework/nn/module.h"

namespace gs {

// Puts the parameters of a module into a checkpoint by path, tied ones once, with the tie recorded.
// The arrays are those of the module, not copies.
void store_parameters(const nn::Module& module, Checkpoint& checkpoint);

// Copies the values of a checkpoint into a module's parameters. Strict: names that are missing or
// unexpected, shapes and types that differ are listed all in one error, and nothing is changed.
// `path` says in errors where the checkpoint came from.
void load_parameters(nn::Module& module, const Checkpoint& checkpoint, const std::string& path);

}  // namespace gs
