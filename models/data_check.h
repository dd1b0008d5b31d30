#pragma once

#include <string>

#include "datasets/translation_data.h"
#include "models/translator.h"

namespace gs {

// Makes validation and tests fit what the model takes: pairs that are too long are left out and
// noted, sources of tests by their own length alone. A test of files is scored whole: a source
// sentence of it that is too long is an Error, which names its line and what would help.
void fit_to_model(TranslationData& data, const Translator& translator);

// A table for the user: pairs, and of each side tokens, their mean and largest number in a sentence
// and the share of unknown ones, for every split without what is too long for the model.
std::string data_statistics(const TranslationData& data, const Translator& translator);

}  // namespace gs
