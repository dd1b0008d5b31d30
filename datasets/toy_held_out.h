#pragma once

#include <cstdint>
#include <string_view>

#include "datasets/toy_sentence.h"

// What the training split of the toy corpus never shows, so that other splits can ask for it.
namespace gs::toy {

// Whether two words never meet in training. The relation: "an" adjective and noun, "sv" subject
// noun and verb, "vo" verb and object noun; words are the English dictionary forms. About a tenth
// of all pairs, chosen by hash_text("an|old|dog") % 10 == 0.
bool is_held_out(std::string_view relation, std::string_view first, std::string_view second);

// Whether the sentence holds such a pair.
bool has_held_out_pair(const Sentence& sentence);

// Whether it holds a word in a role which that word never plays in training: the verbs see, carry
// and sleep in a question; the nouns teacher, sister and baby as recipients; the verbs hear, help
// and laugh in a clause behind a conjunction.
bool has_held_out_role(const Sentence& sentence);

}  // namespace gs::toy
