#pragma once

#include "datasets/toy_sentence.h"
#include "framework/core/xoshiro.h"

namespace gs::toy {

// What the sentences of a grammar may hold.
struct GrammarRules {
  bool ditransitives = true;
  bool several_clauses = true;   // subordinate clauses
  bool relative_clauses = true;  // in sentences of one clause
  bool nested = false;           // every sentence is SentenceKind::nested
};

// Draws derivations at random. One English sentence never has two German ones:
//   - he, she and they stand only in sentences of one clause, or for the subject of the other one;
//   - nothing negated holds "every", "two" or "many" as an object, nor "a" as a recipient, nor
//     "every" as its subject, nor "must": English leaves open what "not" covers;
//   - "in ..." neither follows an object with a relative clause nor stands under a negation;
//   - yesterday goes with the past only, the other adverbs of time and place with the rest.
class Grammar {
 public:
  Grammar(uint64_t seed, GrammarRules rules) : random_(seed), rules_(rules) {}

  Sentence sentence();

 private:
  struct ClauseRules;

  Clause clause(const ClauseRules& rules);
  Clause other_clause(const Clause& first, bool subordinate);
  const Verb* draw_verb(const ClauseRules& rules, const Noun* noun);
  void draw_subject(Clause& clause, const ClauseRules& rules);
  void draw_tense(Clause& clause, const ClauseRules& rules);
  void draw_predicate(Clause& clause);
  void draw_objects(Clause& clause, const ClauseRules& rules);
  void draw_adverbs(Clause& clause, const ClauseRules& rules);
  NounPhrase noun_phrase(Kinds kinds, bool relatives);
  NounPhrase object_phrase(Kinds kinds, bool relatives, bool negated);
  void add_relative_clause(NounPhrase& head);

  template <typename Values>
  const auto& pick(const Values& values) {
    return values[random_.below(values.size())];
  }

  Xoshiro random_;
  GrammarRules rules_;
};

}  // namespace gs::toy
