#pragma once

#include <string>
#include <vector>

#include "datasets/translation_data.h"

namespace gs {

// Writes FOLDER/NAME.source and FOLDER/NAME.reference for the validation and every test, for
// programs that translate and score files: a line a pair, spaces normalized, without what was left
// out. Each file appears whole or not at all.
void write_split_files(const std::string& folder, const TranslationData& data);

// Writes FOLDER/NAME.translation, a line for each line of NAME.source.
void write_translation_file(const std::string& folder, const std::string& name,
                            const std::vector<std::string>& translations);

}  // namespace gs
