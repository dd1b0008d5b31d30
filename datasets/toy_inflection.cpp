#include "datasets/toy_inflection.h"

namespace gs::toy {
namespace {

// By case, then masculine, feminine, neuter, plural.
using Endings = std::array<std::array<std::string_view, 4>, 3>;

constexpr Endings definite{
    {{"der", "die", "das", "die"}, {"den", "die", "das", "die"}, {"dem", "der", "dem", "den"}}};
constexpr Endings of_ein{{{"", "e", "", "e"}, {"en", "e", "", "e"}, {"em", "er", "em", "en"}}};
constexpr Endings of_dies{
    {{"er", "e", "es", "e"}, {"en", "e", "es", "e"}, {"em", "er", "em", "en"}}};
constexpr Endings weak{{{"e", "e", "e", "en"}, {"en", "e", "e", "en"}, {"en", "en", "en", "en"}}};
constexpr Endings mixed{
    {{"er", "e", "es", "en"}, {"en", "e", "es", "en"}, {"en", "en", "en", "en"}}};
constexpr std::array<std::string_view, 3> strong_plural{"e", "e", "en"};
constexpr Endings personal{
    {{"er", "sie", "es", "sie"}, {"ihn", "sie", "es", "sie"}, {"ihm", "ihr", "ihm", "ihnen"}}};

std::string_view find(const Endings& endings, Case c, Agreement agreement) {
  return endings[static_cast<size_t>(c)][static_cast<size_t>(agreement)];
}

}  // namespace

std::string_view definite_article(Case c, Agreement agreement) {
  return find(definite, c, agreement);
}

Form german_determiner(const NounPhrase& phrase, Case c, bool denied) {
  const Agreement a = agreement(phrase);
  if (denied) return {"kein", find(of_ein, c, a)};
  switch (phrase.determiner) {
    case Determiner::definite:
      return {find(definite, c, a)};
    case Determiner::indefinite:
      return {"ein", find(of_ein, c, a)};
    case Determiner::demonstrative:
      return {"dies", find(of_dies, c, a)};
    case Determiner::every:
      return {"jed", find(of_dies, c, a)};
    case Determiner::my:
      return {"mein", find(of_ein, c, a)};
    case Determiner::your:
      return {"dein", find(of_ein, c, a)};
    case Determiner::two:
      return {"zwei"};
    case Determiner::many:
      break;
  }
  return {"viel", strong_plural[static_cast<size_t>(c)]};
}

Form german_adjective(const NounPhrase& phrase, Case c) {
  const std::string_view stem = phrase.adjective->german_stem;
  const Agreement a = agreement(phrase);
  switch (phrase.determiner) {
    case Determiner::two:
    case Determiner::many:
      return {stem, strong_plural[static_cast<size_t>(c)]};
    case Determiner::indefinite:
    case Determiner::my:
    case Determiner::your:
      return {stem, find(mixed, c, a)};
    default:
      return {stem, find(weak, c, a)};
  }
}

std::string_view german_noun(const NounPhrase& phrase, Case c) {
  const Noun& noun = *phrase.noun;
  if (phrase.plural) return c == Case::dative ? noun.german_dative_plural : noun.german_plural;
  return c == Case::nominative ? noun.german : noun.german_oblique;
}

std::string_view relative_pronoun(Case c, Agreement agreement) {
  if (c == Case::dative && agreement == Agreement::plural) return "denen";
  return definite_article(c, agreement);
}

std::string_view german_pronoun(Case c, Agreement agreement) {
  return find(personal, c, agreement);
}

std::string_view english_determiner(const NounPhrase& phrase) {
  switch (phrase.determiner) {
    case Determiner::definite:
      return "the";
    case Determiner::indefinite: {
      const std::string_view next =
          phrase.adjective != nullptr ? phrase.adjective->english : english_noun(phrase);
      return std::string_view("aeiou").find(next[0]) != std::string_view::npos ? "an" : "a";
    }
    case Determiner::demonstrative:
      return phrase.plural ? "these" : "this";
    case Determiner::every:
      return "every";
    case Determiner::my:
      return "my";
    case Determiner::your:
      return "your";
    case Determiner::two:
      return "two";
    case Determiner::many:
      break;
  }
  return "many";
}

std::string_view english_noun(const NounPhrase& phrase) {
  return phrase.plural ? phrase.noun->english_plural : phrase.noun->english;
}

std::string_view english_object_pronoun(Agreement agreement) {
  constexpr std::array<std::string_view, 4> forms{"him", "her", "it", "them"};
  return forms[static_cast<size_t>(agreement)];
}

}  // namespace gs::toy
