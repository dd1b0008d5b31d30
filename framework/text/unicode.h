#pragma once

#include <string>
#include <string_view>

namespace gs {

// What the Unicode general category of a character says about splitting text: N*, P*, S*, others.
enum class CharacterClass { kOther, kNumber, kPunctuation, kSymbol };

// The class of one character, given as its bytes (see split_characters). Bytes that are not one
// valid character are kOther.
CharacterClass character_class(std::string_view character);

// The text in lower case, as Python's str.lower() gives it: the full mapping of the Unicode
// standard without a language, so that a capital dotted I becomes two characters and a capital
// sigma at the end of a word the final one. Bytes that are not UTF-8 stay as they are.
std::string lower_case(std::string_view text);

}  // namespace gs
