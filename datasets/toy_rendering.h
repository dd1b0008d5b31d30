#pragma once

#include <string>
#include <utility>
#include <vector>

#include "datasets/toy_inflection.h"

namespace gs::toy {

// A word and the parts of the derivation that it spells, at most two; 0 for none. Words of the two
// languages that spell the same part translate each other. Parts are below part_count.
inline constexpr uint16_t part_count = 288;
struct Word {
  Form form;
  std::array<uint16_t, 2> parts{};
};

// Both languages of one derivation, read off in the order of the words.
struct Rendering {
  std::vector<Word> english, german;
};

// Replaces what `rendering` holds, so that its memory serves many sentences.
void render(const Sentence& sentence, Rendering& rendering);

// Replaces `text` by the words, one space between two of them.
void spell(const std::vector<Word>& words, std::string& text);

// (English word, German word), counted from 0, by German word and then English word.
std::vector<std::pair<int, int>> alignment(const Rendering& rendering);

}  // namespace gs::toy
