#pragma once

#include <string_view>

#include "datasets/toy_sentence.h"

// Word forms of the toy corpus that follow from a rule and not from the lexicon.
namespace gs::toy {

enum class Case : uint8_t { nominative, accusative, dative };

// A word in two parts, spelled one after the other.
struct Form {
  std::string_view stem, ending = {};
};

// der, die, das, den, dem.
std::string_view definite_article(Case c, Agreement agreement);
// The article, or kein- where `denied`.
Form german_determiner(const NounPhrase& phrase, Case c, bool denied);
// Weak after der, dies-, jed-; mixed after ein-, kein-, mein-, dein-; strong after zwei, viele.
Form german_adjective(const NounPhrase& phrase, Case c);
std::string_view german_noun(const NounPhrase& phrase, Case c);
// der, dem, denen, ...
std::string_view relative_pronoun(Case c, Agreement agreement);
// er, sie, es; ihn, ihm, ihr.
std::string_view german_pronoun(Case c, Agreement agreement);

std::string_view english_determiner(const NounPhrase& phrase);
std::string_view english_noun(const NounPhrase& phrase);
// him, her, it.
std::string_view english_object_pronoun(Agreement agreement);

// Auxiliary verbs, by Person.
using Paradigm = std::array<std::string_view, 4>;
inline constexpr Paradigm be_present{"am", "are", "is", "are"};
inline constexpr Paradigm be_past{"was", "were", "was", "were"};
inline constexpr Paradigm do_present{"do", "do", "does", "do"};
inline constexpr Paradigm want_present{"want", "want", "wants", "want"};
inline constexpr Paradigm sein_present{"bin", "bist", "ist", "sind"};
inline constexpr Paradigm sein_past{"war", "warst", "war", "waren"};
inline constexpr Paradigm haben_present{"habe", "hast", "hat", "haben"};

}  // namespace gs::toy
