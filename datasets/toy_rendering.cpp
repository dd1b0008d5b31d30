#include "datasets/toy_rendering.h"

#include <algorithm>

namespace gs::toy {
namespace {

// The parts of a clause. A noun phrase has three: determiner, adjective, noun (or pronoun).
enum Part : uint16_t {
  subject = 1,
  object = 4,
  recipient = 7,
  place = 10,
  verb = 13,
  particle,
  auxiliary,
  modal,
  negation,
  predicate,
  adverb,
  frequency,
  preposition,
  relative,
  conjunction,
  comma,
  stop,
};
constexpr uint16_t parts_per_clause = 32;
constexpr uint16_t clauses_per_clause = 3;  // itself, the relative clauses of subject and object
constexpr uint16_t most_clauses = 3;
static_assert(stop < parts_per_clause);
static_assert(most_clauses * clauses_per_clause * parts_per_clause == part_count);

// Numbers the parts of one clause of the derivation.
struct Numbers {
  uint16_t first;

  uint16_t of(uint16_t part) const { return static_cast<uint16_t>(first + part); }
  Numbers relative_clause(uint16_t phrase) const {
    const int place_of_clause = phrase == subject ? 1 : 2;
    return {static_cast<uint16_t>(first + place_of_clause * parts_per_clause)};
  }
  static Numbers of_clause(size_t index) {
    return {static_cast<uint16_t>(index * clauses_per_clause * parts_per_clause)};
  }
};

class EnglishWriter {
 public:
  explicit EnglishWriter(std::vector<Word>& words) : words_(words) {}

  void put(std::string_view word, uint16_t part, uint16_t second_part = 0) {
    words_.push_back({{word}, {part, second_part}});
  }

  void statement(const Clause& clause, Numbers n) {
    if (clause.fronted) put(clause.adverb->english, n.of(adverb));
    put_subject(clause, n);
    verb_phrase(clause, n, false);
  }

  void question(const Clause& clause, Numbers n) { verb_phrase(clause, n, true); }

 private:
  void phrase(const NounPhrase& x, uint16_t part, Numbers n) {
    put(english_determiner(x), n.of(part));
    if (x.adjective != nullptr) put(x.adjective->english, n.of(part + 1));
    put(english_noun(x), n.of(part + 2));
    if (x.relative == nullptr) return;
    const Clause& clause = *x.relative;
    const Numbers inner = n.relative_clause(part);
    put((x.noun->kinds & person) != 0 ? "who" : "that", inner.of(relative));
    statement(clause, inner);
  }

  void put_subject(const Clause& clause, Numbers n) {
    switch (clause.subject_kind) {
      case SubjectKind::phrase:
        return phrase(clause.subject, subject, n);
      case SubjectKind::pronoun:
        return put(clause.pronoun->english, n.of(subject));
      case SubjectKind::anaphor:
        return put(clause.subject.plural ? "they" : clause.subject.noun->pronoun, n.of(subject));
      case SubjectKind::head:
        return;
    }
  }

  // The finite verb that stands before "not" and before the subject of a question, if any.
  bool put_auxiliary(const Clause& clause, Numbers n, bool asked) {
    const size_t who = static_cast<size_t>(clause.person());
    if (clause.verb == nullptr) {
      put((clause.tense == Tense::past ? be_past : be_present)[who], n.of(verb));
      return true;
    }
    if (clause.tense == Tense::modal && clause.modal->english != "want") {
      put(clause.modal->english, n.of(modal));
      return true;
    }
    if (!clause.negated && !asked) return false;
    put(clause.tense == Tense::past ? "did" : do_present[who], n.of(auxiliary));
    return true;
  }

  void put_verb(const Clause& clause, Numbers n, bool inflected) {
    const Verb& word = *clause.verb;
    const size_t who = static_cast<size_t>(clause.person());
    if (clause.tense == Tense::modal) {
      if (clause.modal->english == "want") {
        put(inflected ? want_present[who] : "want", n.of(modal));
        put("to", n.of(modal));
      }
      put(word.english, n.of(verb));
    } else if (!inflected) {
      put(word.english, n.of(verb));
    } else if (clause.tense == Tense::past) {
      put(word.english_past, n.of(verb), n.of(auxiliary));  // the whole Perfekt
    } else {
      put(clause.person() == Person::third ? word.english_third : word.english, n.of(verb));
    }
  }

  void put_objects(const Clause& clause, Numbers n) {
    const std::string_view word = clause.verb->particle;
    const bool particle_last = clause.object_kind == ObjectKind::pronoun && word == "up";
    if (!word.empty() && !particle_last) put(word, n.of(particle));
    if (clause.recipient) phrase(clause.recipient, recipient, n);
    if (clause.object_kind == ObjectKind::phrase) phrase(clause.object, object, n);
    if (clause.object_kind == ObjectKind::pronoun)
      put(english_object_pronoun(clause.object_pronoun), n.of(object));
    if (particle_last) put(word, n.of(particle));
  }

  void verb_phrase(const Clause& clause, Numbers n, bool asked) {
    const bool has_auxiliary = put_auxiliary(clause, n, asked);
    if (asked) put_subject(clause, n);
    if (clause.negated) put("not", n.of(negation));
    if (clause.frequency != nullptr) put(clause.frequency->english, n.of(frequency));
    if (clause.verb == nullptr) {
      put(clause.predicate->english, n.of(predicate));
    } else {
      put_verb(clause, n, !has_auxiliary);
      put_objects(clause, n);
    }
    if (clause.place) {
      put("in", n.of(preposition));
      phrase(clause.place, place, n);
    }
    if (clause.adverb != nullptr && !clause.fronted) put(clause.adverb->english, n.of(adverb));
  }

  std::vector<Word>& words_;
};

class GermanWriter {
 public:
  explicit GermanWriter(std::vector<Word>& words) : words_(words) {}

  // A comma gives way to the mark that follows it.
  void mark(std::string_view mark, uint16_t part) {
    if (!words_.empty() && words_.back().form.stem == ",") words_.pop_back();
    put({mark}, part);
  }

  void put(Form form, uint16_t part, uint16_t second_part = 0) {
    words_.push_back({form, {part, second_part}});
  }

  // The verb comes second.
  void statement(const Clause& clause, Numbers n) {
    if (clause.fronted) {
      put({clause.adverb->german}, n.of(adverb));
      return inverted(clause, n);
    }
    put_subject(clause, n);
    finite(clause, n);
    middle_field(clause, n);
    verb_end(clause, n);
  }

  // The verb comes before the subject: questions, and main clauses behind another part.
  void inverted(const Clause& clause, Numbers n) {
    finite(clause, n);
    put_subject(clause, n);
    middle_field(clause, n);
    verb_end(clause, n);
  }

  // The verb comes last.
  void subordinate(const Clause& clause, Numbers n) {
    put_subject(clause, n);
    middle_field(clause, n);
    if (clause.verb != nullptr && clause.tense == Tense::present) {
      const Verb& word = *clause.verb;
      put({word.german_prefix, word.german_present[static_cast<size_t>(clause.person())]},
          n.of(verb), n.of(particle));
      return;
    }
    verb_end(clause, n);
    finite(clause, n);
  }

 private:
  void phrase(const NounPhrase& x, Case c, uint16_t part, Numbers n, bool denied = false) {
    put(german_determiner(x, c, denied), n.of(part), denied ? n.of(negation) : 0);
    phrase_without_determiner(x, c, part, n);
  }

  void phrase_without_determiner(const NounPhrase& x, Case c, uint16_t part, Numbers n) {
    if (x.adjective != nullptr) put(german_adjective(x, c), n.of(part + 1));
    put({german_noun(x, c)}, n.of(part + 2));
    if (x.relative != nullptr) relative_clause(x, n.relative_clause(part));
  }

  void relative_clause(const NounPhrase& head, Numbers n) {
    const Clause& clause = *head.relative;
    Case c = Case::nominative;
    if (clause.object_kind == ObjectKind::head)
      c = clause.verb->frame == Frame::dative ? Case::dative : Case::accusative;
    mark(",", n.of(relative));
    put({relative_pronoun(c, agreement(head))}, n.of(relative));
    subordinate(clause, n);
    mark(",", 0);
  }

  void put_subject(const Clause& clause, Numbers n) {
    switch (clause.subject_kind) {
      case SubjectKind::phrase:
        return phrase(clause.subject, Case::nominative, subject, n);
      case SubjectKind::pronoun:
        return put({clause.pronoun->german}, n.of(subject));
      case SubjectKind::anaphor:
        return put({german_pronoun(Case::nominative, agreement(clause.subject))}, n.of(subject));
      case SubjectKind::head:
        return;
    }
  }

  void finite(const Clause& clause, Numbers n) {
    const size_t who = static_cast<size_t>(clause.person());
    if (clause.verb == nullptr) {
      put({(clause.tense == Tense::past ? sein_past : sein_present)[who]}, n.of(verb));
    } else if (clause.tense == Tense::past) {
      const bool is_sein = clause.verb->auxiliary == Auxiliary::sein;
      put({(is_sein ? sein_present : haben_present)[who]}, n.of(auxiliary));
    } else if (clause.tense == Tense::modal) {
      put({clause.modal->german[who]}, n.of(modal));
    } else {
      put({clause.verb->german_present[who]}, n.of(verb), n.of(particle));
    }
  }

  // The participle, the infinitive or the separated prefix.
  void verb_end(const Clause& clause, Numbers n) {
    if (clause.verb == nullptr) return;
    const Verb& word = *clause.verb;
    if (clause.tense == Tense::past)
      put({word.german_prefix, word.german_participle}, n.of(verb), n.of(particle));
    else if (clause.tense == Tense::modal)
      put({word.german_prefix, word.german_infinitive()}, n.of(verb), n.of(particle));
    else if (!word.german_prefix.empty())
      put({word.german_prefix}, n.of(verb), n.of(particle));
  }

  void middle_field(const Clause& clause, Numbers n) {
    const bool dative = clause.verb != nullptr && clause.verb->frame == Frame::dative;
    const Case c = dative ? Case::dative : Case::accusative;
    if (clause.object_kind == ObjectKind::pronoun)
      put({german_pronoun(c, clause.object_pronoun)}, n.of(object));
    if (clause.adverb != nullptr && !clause.fronted) put({clause.adverb->german}, n.of(adverb));
    if (clause.frequency != nullptr) put({clause.frequency->german}, n.of(frequency));
    if (clause.recipient) phrase(clause.recipient, Case::dative, recipient, n);
    if (clause.object_kind == ObjectKind::phrase)
      phrase(clause.object, c, object, n, clause.denies_object());
    if (clause.negated && !clause.denies_object()) put({"nicht"}, n.of(negation));
    if (clause.predicate != nullptr) put({clause.predicate->german_predicative}, n.of(predicate));
    if (clause.place) put_place(clause.place, n);
  }

  void put_place(const NounPhrase& x, Numbers n) {
    const Agreement a = agreement(x);
    const bool contracted = x.determiner == Determiner::definite &&
                            (a == Agreement::masculine || a == Agreement::neuter);
    if (contracted) {
      put({"im"}, n.of(preposition), n.of(place));
      return phrase_without_determiner(x, Case::dative, place, n);
    }
    put({"in"}, n.of(preposition));
    phrase(x, Case::dative, place, n);
  }

  std::vector<Word>& words_;
};

}  // namespace

void render(const Sentence& sentence, Rendering& rendering) {
  rendering.english.clear();
  rendering.german.clear();
  EnglishWriter english(rendering.english);
  GermanWriter german(rendering.german);
  for (size_t i = 0; i < sentence.clauses.size(); ++i) {
    const Clause& clause = sentence.clauses[i];
    const Numbers n = Numbers::of_clause(i);
    if (sentence.kind == SentenceKind::question) {
      english.question(clause, n);
      german.inverted(clause, n);
      continue;
    }
    const bool subordinate = sentence.is_subordinate(i);
    const bool fronted = sentence.kind == SentenceKind::fronted;
    if (fronted && i == 1) {
      english.put(",", n.of(comma));
      german.mark(",", n.of(comma));
    }
    if (subordinate) {
      const Particle& word = sentence.conjunction != nullptr ? *sentence.conjunction : that();
      english.put(word.english, n.of(conjunction));
      if (i > 0) german.mark(",", n.of(conjunction));
      german.put({word.german}, n.of(conjunction));
    }
    english.statement(clause, n);
    if (subordinate) {
      german.subordinate(clause, n);
    } else if (fronted) {
      german.inverted(clause, n);
    } else {
      german.statement(clause, n);
    }
  }
  const std::string_view end = sentence.kind == SentenceKind::question ? "?" : ".";
  english.put(end, stop);
  german.mark(end, stop);
}

void spell(const std::vector<Word>& words, std::string& text) {
  text.clear();
  for (const Word& word : words) {
    if (!text.empty()) text += ' ';
    text += word.form.stem;
    text += word.form.ending;
  }
}

std::vector<std::pair<int, int>> alignment(const Rendering& rendering) {
  // The English words of each part: at most two, as in "want to".
  constexpr int none = -1;
  std::array<std::array<int, 2>, part_count> words;
  words.fill({none, none});
  for (size_t i = 0; i < rendering.english.size(); ++i)
    for (const uint16_t part : rendering.english[i].parts)
      words[part][words[part][0] == none ? 0 : 1] = static_cast<int>(i);
  std::vector<std::pair<int, int>> links;
  links.reserve(rendering.german.size() + 8);
  for (size_t j = 0; j < rendering.german.size(); ++j) {
    const auto first = static_cast<std::ptrdiff_t>(links.size());
    for (const uint16_t part : rendering.german[j].parts)
      for (const int word : words[part])
        if (part != 0 && word != none) links.emplace_back(word, static_cast<int>(j));
    std::sort(links.begin() + first, links.end());
  }
  return links;
}

}  // namespace gs::toy
