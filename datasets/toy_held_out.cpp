#include "datasets/toy_held_out.h"

#include <algorithm>
#include <string>

#include "datasets/text_hash.h"

namespace gs::toy {
namespace {

// is_held_out for all words of two lexica, looked up by their places.
template <typename First, typename Second>
class Table {
 public:
  Table(std::string_view relation, std::span<const First> first, std::span<const Second> second)
      : first_(first), second_(second), held_out_(first.size() * second.size()) {
    for (size_t i = 0; i < first.size(); ++i)
      for (size_t j = 0; j < second.size(); ++j)
        held_out_[i * second.size() + j] =
            is_held_out(relation, first[i].english, second[j].english);
  }

  bool operator()(const First& a, const Second& b) const {
    const auto i = static_cast<size_t>(&a - first_.data());
    const auto j = static_cast<size_t>(&b - second_.data());
    return held_out_[i * second_.size() + j];
  }

 private:
  std::span<const First> first_;
  std::span<const Second> second_;
  std::vector<bool> held_out_;
};

bool adjective_noun(const Adjective& adjective, const Noun& noun) {
  static const Table table("an", adjectives(), nouns());
  return table(adjective, noun);
}

bool subject_verb(const Noun& noun, const Verb& verb) {
  static const Table table("sv", nouns(), verbs());
  return table(noun, verb);
}

bool verb_object(const Verb& verb, const Noun& noun) {
  static const Table table("vo", verbs(), nouns());
  return table(verb, noun);
}

bool holds_pair(const Clause& clause);

bool holds_pair(const NounPhrase& x) {
  if (!x) return false;
  if (x.adjective != nullptr && adjective_noun(*x.adjective, *x.noun)) return true;
  return x.relative != nullptr && holds_pair(*x.relative);
}

bool holds_pair(const Clause& clause) {
  if (const Noun* noun = clause.subject.noun) {
    if (clause.verb != nullptr && subject_verb(*noun, *clause.verb)) return true;
    if (clause.predicate != nullptr && adjective_noun(*clause.predicate, *noun)) return true;
  }
  if (clause.object && verb_object(*clause.verb, *clause.object.noun)) return true;
  return holds_pair(clause.subject) || holds_pair(clause.object) || holds_pair(clause.recipient) ||
         holds_pair(clause.place);
}

bool is_one_of(std::string_view word, const std::array<std::string_view, 3>& words) {
  return std::find(words.begin(), words.end(), word) != words.end();
}

bool holds_recipient(const Clause& clause) {
  const auto in_relative = [](const NounPhrase& x) {
    return x.relative != nullptr && holds_recipient(*x.relative);
  };
  if (clause.recipient && is_one_of(clause.recipient.noun->english, {"teacher", "sister", "baby"}))
    return true;
  return in_relative(clause.subject) || in_relative(clause.object);
}

}  // namespace

bool is_held_out(std::string_view relation, std::string_view first, std::string_view second) {
  return hash_text(std::string(relation).append("|").append(first).append("|").append(second)) %
             10 ==
         0;
}

bool has_held_out_pair(const Sentence& sentence) {
  return std::any_of(sentence.clauses.begin(), sentence.clauses.end(),
                     [](const Clause& clause) { return holds_pair(clause); });
}

bool has_held_out_role(const Sentence& sentence) {
  for (size_t i = 0; i < sentence.clauses.size(); ++i) {
    const Clause& clause = sentence.clauses[i];
    if (holds_recipient(clause)) return true;
    if (clause.verb == nullptr) continue;
    const std::string_view verb = clause.verb->english;
    if (sentence.kind == SentenceKind::question && is_one_of(verb, {"see", "carry", "sleep"}))
      return true;
    if (sentence.is_subordinate(i) && is_one_of(verb, {"hear", "help", "laugh"})) return true;
  }
  return false;
}

}  // namespace gs::toy
