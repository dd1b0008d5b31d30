#pragma once

#include <map>
#include <string>

#include "models/transformer.h"

namespace gs {

// The sizes and choices of a model as text, name by name, as checkpoints hold them, and back. What
// is missing or not a number is refused.
std::map<std::string, std::string> config_to_text(const TransformerConfig& config);
TransformerConfig config_from_text(const std::map<std::string, std::string>& text);

}  // namespace gs
