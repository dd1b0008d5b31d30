#include "datasets/toy_grammar.h"

namespace gs::toy {
namespace {

constexpr double plural_rate = 0.30, adjective_rate = 0.40, relative_rate = 0.18;
constexpr double subject_relative_rate = 0.6;  // of the relative clauses of persons and animals
constexpr double copula_rate = 0.10, object_pronoun_rate = 0.15;
// Verb forms of I and you have no other source, and those of a verb-last clause are words of their
// own where the prefix is separable: these rates and `pronoun_places` make them common enough that
// each is seen 20 times in 60,000 sentences.
constexpr double pronoun_rate = 0.25, subordinate_pronoun_rate = 0.40;
constexpr double anaphor_rate = 0.6;
constexpr double past_rate = 0.30, modal_rate = 0.15, negation_rate = 0.12;
constexpr double place_rate = 0.22, adverb_rate = 0.35, fronted_rate = 0.6, frequency_rate = 0.20;

// Cumulative: main, question, subordinate, fronted; the rest is reported.
constexpr double main_rate = 0.45, question_rate = 0.10, subordinate_rate = 0.20,
                 fronted_clause_rate = 0.12;

using enum Determiner;
constexpr std::array singular_determiners{
    definite,   definite,   definite,      definite, definite, indefinite, indefinite,
    indefinite, indefinite, demonstrative, every,    my,       your};
constexpr std::array plural_determiners{definite, definite,      definite, definite, my,
                                        your,     demonstrative, two,      many};

// Places in pronouns(); the first five are not of the third person.
constexpr std::array<size_t, 8> pronoun_places{0, 0, 1, 1, 2, 3, 4, 5};

// The entries of a lexicon that share a kind with each possible set of kinds.
template <typename Entry>
using ByKinds = std::array<std::vector<const Entry*>, every_kind + 1>;

template <typename Entry, typename KindsOf>
ByKinds<Entry> by_kinds(std::span<const Entry> entries, const KindsOf& kinds_of) {
  ByKinds<Entry> lists;
  for (size_t kinds = 0; kinds < lists.size(); ++kinds)
    for (const Entry& entry : entries)
      if ((kinds_of(entry) & kinds) != 0) lists[kinds].push_back(&entry);
  return lists;
}

const std::vector<const Noun*>& nouns_of(Kinds kinds) {
  static const auto lists = by_kinds(nouns(), [](const Noun& noun) { return noun.kinds; });
  return lists[kinds];
}

const std::vector<const Adjective*>& adjectives_for(const Noun& noun) {
  static const auto lists = by_kinds(adjectives(), [](const Adjective& x) { return x.kinds; });
  return lists[noun.kinds];
}

// Verbs that take such a subject, but no clause; with or without ditransitives.
const std::vector<const Verb*>& verbs_with_subject(Kinds kinds, bool ditransitives) {
  static const auto all = by_kinds(verbs(), [](const Verb& verb) {
    return verb.frame == Frame::clausal ? Kinds{0} : verb.subjects;
  });
  static const auto simple = by_kinds(verbs(), [](const Verb& verb) {
    const bool left_out = verb.frame == Frame::clausal || verb.frame == Frame::ditransitive;
    return left_out ? Kinds{0} : verb.subjects;
  });
  return (ditransitives ? all : simple)[kinds];
}

bool takes_one_object(const Verb& verb) {
  return verb.frame == Frame::accusative || verb.frame == Frame::dative;
}

const std::vector<const Verb*>& verbs_with_object(Kinds kinds) {
  static const auto lists = by_kinds(
      verbs(), [](const Verb& verb) { return takes_one_object(verb) ? verb.objects : Kinds{0}; });
  return lists[kinds];
}

const std::vector<const Verb*>& clausal_verbs() {
  static const auto lists = by_kinds(verbs(), [](const Verb& verb) {
    return verb.frame == Frame::clausal ? verb.subjects : Kinds{0};
  });
  return lists[person];
}

// The noun and number alone.
NounPhrase reference_to(const NounPhrase& phrase) {
  NounPhrase reference;
  reference.noun = phrase.noun;
  reference.plural = phrase.plural;
  return reference;
}

}  // namespace

struct Grammar::ClauseRules {
  bool relatives = false;     // noun phrases may have relative clauses
  bool third_person = false;  // he, she and they may stand alone
  bool adverbs = true;
  bool fronting = false;
  bool subordinate = false;             // behind a conjunction
  bool clausal = false;                 // a verb of saying
  const NounPhrase* anaphor = nullptr;  // the subject repeats this one as a pronoun
  const NounPhrase* subject = nullptr;  // the clause is relative to this, its subject
  const NounPhrase* object = nullptr;   // the clause is relative to this, its object
};

Sentence Grammar::sentence() {
  Sentence result;
  result.clauses.reserve(3);
  if (rules_.nested) {
    result.kind = SentenceKind::nested;
    for (const bool last : {false, false, true})
      result.clauses.push_back(
          clause({.adverbs = last, .subordinate = !result.clauses.empty(), .clausal = !last}));
    return result;
  }
  constexpr double simple_rate = main_rate + question_rate;
  const double choice = random_.unit() * (rules_.several_clauses ? 1 : simple_rate);
  if (choice < main_rate) {
    result.kind = SentenceKind::main;
    result.clauses.push_back(
        clause({.relatives = rules_.relative_clauses, .third_person = true, .fronting = true}));
  } else if (choice < simple_rate) {
    result.kind = SentenceKind::question;
    result.clauses.push_back(clause({.third_person = true}));
  } else if (choice < simple_rate + subordinate_rate) {
    result.kind = SentenceKind::subordinate;
    result.conjunction = &pick(conjunctions());
    result.clauses.push_back(clause({.fronting = true}));
    result.clauses.push_back(other_clause(result.clauses.front(), true));
  } else if (choice < simple_rate + subordinate_rate + fronted_clause_rate) {
    result.kind = SentenceKind::fronted;
    result.conjunction = &pick(conjunctions());
    result.clauses.push_back(clause({.subordinate = true}));
    result.clauses.push_back(other_clause(result.clauses.front(), false));
  } else {
    result.kind = SentenceKind::reported;
    result.clauses.push_back(clause({.adverbs = false, .clausal = true}));
    result.clauses.push_back(clause({.subordinate = true}));
  }
  return result;
}

// The second of two clauses: often about the subject of the first.
Clause Grammar::other_clause(const Clause& first, bool subordinate) {
  const bool named = first.subject_kind == SubjectKind::phrase;
  const bool repeats = named && random_.chance(anaphor_rate);
  return clause({.adverbs = subordinate,
                 .subordinate = subordinate,
                 .anaphor = repeats ? &first.subject : nullptr});
}

Clause Grammar::clause(const ClauseRules& rules) {
  Clause result;
  const NounPhrase* known = rules.anaphor != nullptr ? rules.anaphor : rules.subject;
  result.verb = draw_verb(rules, known != nullptr ? known->noun : nullptr);
  draw_subject(result, rules);
  draw_tense(result, rules);
  if (result.verb == nullptr)
    draw_predicate(result);
  else
    draw_objects(result, rules);
  draw_adverbs(result, rules);
  return result;
}

// A verb that the noun, where it is known, can be the subject of; none for the copula.
const Verb* Grammar::draw_verb(const ClauseRules& rules, const Noun* noun) {
  if (rules.object != nullptr) return pick(verbs_with_object(rules.object->noun->kinds));
  if (rules.clausal) return pick(clausal_verbs());
  const Kinds kinds = noun != nullptr ? noun->kinds : every_kind;
  const std::vector<const Verb*>& choices = verbs_with_subject(kinds, rules_.ditransitives);
  if (choices.empty() || random_.chance(copula_rate)) return nullptr;
  return pick(choices);
}

void Grammar::draw_subject(Clause& clause, const ClauseRules& rules) {
  if (rules.anaphor != nullptr || rules.subject != nullptr) {
    const bool repeats = rules.anaphor != nullptr;
    clause.subject_kind = repeats ? SubjectKind::anaphor : SubjectKind::head;
    clause.subject = reference_to(repeats ? *rules.anaphor : *rules.subject);
  } else if (random_.chance(rules.subordinate ? subordinate_pronoun_rate : pronoun_rate)) {
    clause.subject_kind = SubjectKind::pronoun;
    const size_t choices = rules.third_person ? pronoun_places.size() : 5;
    clause.pronoun = &pronouns()[pronoun_places[random_.below(choices)]];
  } else {
    const Kinds kinds = clause.verb == nullptr ? every_kind : clause.verb->subjects;
    clause.subject = noun_phrase(kinds, rules.relatives);
  }
}

void Grammar::draw_tense(Clause& clause, const ClauseRules& rules) {
  const bool negatable = !rules.clausal && rules.object == nullptr &&
                         !(clause.subject_kind == SubjectKind::phrase &&
                           clause.subject.determiner == Determiner::every);
  clause.negated = negatable && random_.chance(negation_rate);
  const double choice = random_.unit();
  if (choice < past_rate) {
    clause.tense = Tense::past;
  } else if (choice < past_rate + modal_rate && clause.verb != nullptr && !rules.clausal) {
    clause.tense = Tense::modal;
    do clause.modal = &pick(modals());
    while (clause.negated && clause.modal->english == "must");
  }
}

void Grammar::draw_predicate(Clause& clause) {
  static const Noun& anyone = nouns().front();
  const bool pronoun = clause.subject_kind == SubjectKind::pronoun;
  clause.predicate = pick(adjectives_for(pronoun ? anyone : *clause.subject.noun));
}

void Grammar::draw_objects(Clause& clause, const ClauseRules& rules) {
  const Verb& verb = *clause.verb;
  if (rules.object != nullptr) {
    clause.object_kind = ObjectKind::head;
    clause.object = reference_to(*rules.object);
    return;
  }
  if (verb.frame == Frame::ditransitive) {
    do clause.recipient = object_phrase(person, false, clause.negated);
    while (clause.negated && clause.recipient.determiner == Determiner::indefinite);
    clause.object_kind = ObjectKind::phrase;
    clause.object = object_phrase(verb.objects, false, clause.negated);
  } else if (takes_one_object(verb)) {
    if ((verb.objects & person) != 0 && random_.chance(object_pronoun_rate)) {
      clause.object_kind = ObjectKind::pronoun;
      clause.object_pronoun = static_cast<Agreement>(random_.below(3));
    } else {
      clause.object_kind = ObjectKind::phrase;
      clause.object = object_phrase(verb.objects, rules.relatives, clause.negated);
    }
  }
  if (!clause.negated && verb.frame != Frame::clausal && clause.object.relative == nullptr &&
      random_.chance(place_rate))
    clause.place = noun_phrase(place, false);
}

void Grammar::draw_adverbs(Clause& clause, const ClauseRules& rules) {
  if (!rules.adverbs) return;
  if (random_.chance(adverb_rate)) {
    clause.adverb = &pick(clause.tense == Tense::past ? past_adverbs() : present_adverbs());
    clause.fronted = rules.fronting && random_.chance(fronted_rate);
  } else if (!clause.negated && random_.chance(frequency_rate)) {
    clause.frequency = &pick(frequency_adverbs());
  }
}

NounPhrase Grammar::noun_phrase(Kinds kinds, bool relatives) {
  NounPhrase result;
  result.noun = pick(nouns_of(kinds));
  result.plural = random_.chance(plural_rate);
  result.determiner = result.plural ? pick(plural_determiners) : pick(singular_determiners);
  if (random_.chance(adjective_rate)) result.adjective = pick(adjectives_for(*result.noun));
  if (relatives && random_.chance(relative_rate)) add_relative_clause(result);
  return result;
}

// An object that "not" can stand before without a doubt about what it covers.
NounPhrase Grammar::object_phrase(Kinds kinds, bool relatives, bool negated) {
  while (true) {
    NounPhrase result = noun_phrase(kinds, relatives);
    const bool counted = result.determiner == Determiner::every ||
                         result.determiner == Determiner::two ||
                         result.determiner == Determiner::many;
    if (!negated || !counted) return result;
  }
}

void Grammar::add_relative_clause(NounPhrase& head) {
  const bool can_act = (head.noun->kinds & (person | animal)) != 0;
  if (can_act && random_.chance(subject_relative_rate))
    head.relative = std::make_shared<const Clause>(clause({.adverbs = false, .subject = &head}));
  else
    head.relative = std::make_shared<const Clause>(clause({.adverbs = false, .object = &head}));
}

}  // namespace gs::toy
