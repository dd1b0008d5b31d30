#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <string_view>

// The words of the toy corpus and what the grammar must know of each. Texts are UTF-8, NFC.
namespace gs::toy {

// What a noun stands for, as a set: which nouns a verb or an adjective goes with.
using Kinds = uint8_t;
inline constexpr Kinds person = 1, animal = 2, thing = 4, place = 8, openable = 16;
inline constexpr Kinds every_kind = 31;

// The gender that German articles, adjectives and pronouns agree with; the plural has none.
enum class Agreement : uint8_t { masculine, feminine, neuter, plural };

// Who acts, for verb forms; the plural forms are all alike in German.
enum class Person : uint8_t { first, second, third, plural };

struct Noun {
  std::string_view english, english_plural;
  Agreement gender;
  // `oblique` is the accusative and dative singular.
  std::string_view german, german_oblique, german_plural, german_dative_plural;
  Kinds kinds;
  std::string_view pronoun;  // English: he, she or it
};

struct Adjective {
  std::string_view english, german_stem, german_predicative;
  Kinds kinds;
};

// The complements that a verb takes.
enum class Frame : uint8_t { intransitive, accusative, dative, ditransitive, clausal };

enum class Auxiliary : uint8_t { haben, sein };

struct Verb {
  std::string_view english, english_third, english_past, particle;
  Frame frame;
  Kinds subjects, objects;
  std::array<std::string_view, 4> german_present;     // by Person; the plural is the infinitive too
  std::string_view german_participle, german_prefix;  // the prefix is separable, or empty
  Auxiliary auxiliary;

  std::string_view german_infinitive() const { return german_present[3]; }
};

struct Modal {
  std::string_view english;  // "want" is an ordinary verb with "to" in English
  std::array<std::string_view, 4> german;
};

struct Pronoun {
  std::string_view english, german;
  Person person;
};

// An adverb or a conjunction.
struct Particle {
  std::string_view english, german;
};

std::span<const Noun> nouns();
std::span<const Adjective> adjectives();
std::span<const Verb> verbs();
std::span<const Modal> modals();
std::span<const Pronoun> pronouns();          // I, you, we; then they, he, she
std::span<const Particle> present_adverbs();  // of time and place, with the present only
std::span<const Particle> past_adverbs();
std::span<const Particle> frequency_adverbs();
std::span<const Particle> conjunctions();
const Particle& that();

}  // namespace gs::toy
