#pragma once

#include <string>

#include "framework/io/checkpoint.h"
#include "framework/nn/module.h"
#include "framework/optim/parameter_groups.h"

namespace gs {

// Puts the parameters of a module into a checkpoint by path, tied ones once, with the tie recorded.
// The arrays are those of the module, not copies.
void store_parameters(const nn::Module& module, Checkpoint& checkpoint);

// Copies the values of a checkpoint into a module's parameters. Strict: names that are missing or
// unexpected, shapes and types that differ are listed all in one error, and nothing is changed.
// `path` says in errors where the checkpoint came from.
void load_parameters(nn::Module& module, const Checkpoint& checkpoint, const std::string& path);
// The refusals of load_parameters alone.
void check_parameters(const nn::Module& module, const Checkpoint& checkpoint,
                      const std::string& path);

// Copies what agrees in name, shape and type alone, for a model that shares parts with another, and
// tells how many names that were and all that differ. Where none agrees it is an Error, and nothing
// is changed.
NameComparison load_matching_parameters(nn::Module& module, const Checkpoint& checkpoint,
                                        const std::string& path);

// Checkpoint files of any model, with or without its optimizer (Adam or Sgd): saved whole or not at
// all, loaded strictly. Loading with an optimizer sets its state and step count.
void save_model(const std::string& path, const nn::Module& module);
void save_model(const std::string& path, const nn::Module& module, const OptimizerState& state,
                int64_t steps);
void load_model(const std::string& path, nn::Module& module);
// The steps that the optimizer of a checkpoint had made.
int64_t optimizer_steps(const Checkpoint& checkpoint, const std::string& path);

template <typename Optimizer>
void save_model(const std::string& path, const nn::Module& module, const Optimizer& optimizer) {
  save_model(path, module, optimizer.state(), optimizer.steps());
}

template <typename Optimizer>
void load_model(const std::string& path, nn::Module& module, Optimizer& optimizer) {
  const Checkpoint checkpoint = load_checkpoint(path);
  check_parameters(module, checkpoint, path);
  optimizer.restore(checkpoint.optimizer, optimizer_steps(checkpoint, path));
  load_parameters(module, checkpoint, path);
}

}  // namespace gs
