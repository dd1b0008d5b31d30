#pragma once

#include <memory>
#include <vector>

#include "datasets/toy_lexicon.h"

// The derivation of one sentence of the toy corpus, from which both languages are read off.
namespace gs::toy {
enum class Determiner : uint8_t { definite, indefinite, demonstrative, every, my, your, two, many };

struct Clause;

struct NounPhrase {
  const Noun* noun = nullptr;  // none: there is no such phrase
  bool plural = false;
  Determiner determiner = Determiner::definite;
  const Adjective* adjective = nullptr;
  std::shared_ptr<const Clause> relative = nullptr;  // its relative clause, if any

  explicit operator bool() const { return noun != nullptr; }
};

// Who acts: a noun phrase; I, you, ...; a pronoun for the subject of the other clause, or the noun
// that a relative clause belongs to (both repeat its noun and number).
enum class SubjectKind : uint8_t { phrase, pronoun, anaphor, head };

// The object of an accusative, dative or ditransitive verb: a noun phrase; him, her or it; or the
// noun that a relative clause belongs to.
enum class ObjectKind : uint8_t { none, phrase, pronoun, head };

enum class Tense : uint8_t { present, past, modal };

struct Clause {
  SubjectKind subject_kind = SubjectKind::phrase;
  NounPhrase subject = {};
  const Pronoun* pronoun = nullptr;
  const Verb* verb = nullptr;            // none: the copula "be"
  const Adjective* predicate = nullptr;  // of the copula
  Tense tense = Tense::present;
  const Modal* modal = nullptr;
  bool negated = false;
  NounPhrase recipient = {};  // of a ditransitive verb
  ObjectKind object_kind = ObjectKind::none;
  NounPhrase object = {};
  Agreement object_pronoun = Agreement::masculine;
  NounPhrase place = {};             // "in ..."
  const Particle* adverb = nullptr;  // of time or place
  bool fronted = false;              // the adverb comes first
  const Particle* frequency = nullptr;

  Person person() const;
  // Whether a negated clause says "not ... a" in English, kein- in German.
  bool denies_object() const {
    return negated && object_kind == ObjectKind::phrase &&
           object.determiner == Determiner::indefinite;
  }
};

// main: one clause. question: one clause, answered by yes or no. subordinate: main clause,
// conjunction, clause. fronted: conjunction, clause, comma, main clause. reported: clause of
// saying, "that", clause; nested: the same twice over, three clauses.
enum class SentenceKind : uint8_t { main, question, subordinate, fronted, reported, nested };

struct Sentence {
  SentenceKind kind = SentenceKind::main;
  const Particle* conjunction = nullptr;  // of the kinds subordinate and fronted
  std::vector<Clause> clauses = {};       // in the order of the words

  // Whether the clause stands behind a conjunction, so that its German verb comes last.
  bool is_subordinate(size_t clause) const {
    return kind == SentenceKind::fronted ? clause == 0 : clause > 0;
  }
};

inline Agreement agreement(const NounPhrase& phrase) {
  return phrase.plural ? Agreement::plural : phrase.noun->gender;
}

inline Person Clause::person() const {
  if (subject_kind == SubjectKind::pronoun) return pronoun->person;
  return subject.plural ? Person::plural : Person::third;
}

}  // namespace gs::toy
