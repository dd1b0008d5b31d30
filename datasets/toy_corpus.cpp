#include "datasets/toy_corpus.h"

#include <algorithm>

#include "datasets/text_hash.h"
#include "datasets/toy_held_out.h"
#include "framework/core/error.h"

namespace gs {
namespace {

constexpr std::array<std::string_view, 6> split_names{"train", "iid",    "pair",
                                                      "role",  "nested", "long"};
constexpr size_t longest_in_training = 24;   // source words
constexpr uint64_t kept_from_training = 16;  // one sentence in so many
constexpr int64_t longest_search = 10'000'000;

size_t number_of(int64_t level, std::string_view split) {
  check(level >= 1 && level <= 3, "toy corpus: there is no such level, got {}; use 1, 2 or 3",
        level);
  const auto found = std::find(split_names.begin(), split_names.end(), split);
  if (found == split_names.end()) {
    std::string names;
    for (const std::string_view name : split_names)
      names.append(names.empty() ? "" : ", ").append(name);
    fail("toy corpus: there is no such split, got \"{}\"; use one of {}", split, names);
  }
  check(
      ToyCorpus::has(level, split),
      "toy corpus: the split \"{}\" needs sentences of several clauses, got level {}; use level 2 "
      "or 3",
      split, level);
  return static_cast<size_t>(found - split_names.begin());
}

// Streams of different splits and levels are unrelated.
uint64_t seed_of(uint64_t seed, int64_t level, size_t split) {
  uint64_t state = seed;
  state = splitmix64(state) + static_cast<uint64_t>(level);
  state = splitmix64(state) + split;
  return splitmix64(state);
}

// The tags after the first, in the order of ToyPair::tags.
enum Tag : uint32_t {
  relative,
  ditransitive,
  dative,
  separable,
  kein,
  negation,
  past,
  modal,
  copula,
  inversion,
  anaphor,
  place,
};
constexpr std::array<const char*, 12> tag_names{"relative", "ditransitive", "dative",  "separable",
                                                "kein",     "negation",     "past",    "modal",
                                                "copula",   "inversion",    "anaphor", "place"};

uint32_t tags_of(const toy::Clause& clause) {
  uint32_t tags = 0;
  const auto set = [&](Tag tag, bool holds) { tags |= static_cast<uint32_t>(holds) << tag; };
  for (const toy::NounPhrase* phrase : {&clause.subject, &clause.object})
    if (phrase->relative != nullptr) {
      set(relative, true);
      tags |= tags_of(*phrase->relative);
    }
  if (clause.verb != nullptr) {
    set(ditransitive, clause.verb->frame == toy::Frame::ditransitive);
    set(dative, clause.verb->frame == toy::Frame::dative);
    set(separable, !clause.verb->german_prefix.empty());
  }
  set(kein, clause.denies_object());
  set(negation, clause.negated);
  set(past, clause.tense == toy::Tense::past);
  set(modal, clause.tense == toy::Tense::modal);
  set(copula, clause.verb == nullptr);
  set(inversion, clause.fronted);
  set(anaphor, clause.subject_kind == toy::SubjectKind::anaphor);
  set(place, static_cast<bool>(clause.place));
  return tags;
}

std::vector<std::string> tags_of(const toy::Sentence& sentence) {
  constexpr std::array kinds{"main", "question", "subordinate", "fronted", "reported", "nested"};
  uint32_t set = 0;
  for (const toy::Clause& clause : sentence.clauses) set |= tags_of(clause);
  std::vector<std::string> tags;
  tags.reserve(8);
  tags.emplace_back(kinds[static_cast<size_t>(sentence.kind)]);
  for (size_t tag = 0; tag < tag_names.size(); ++tag)
    if ((set >> tag & 1) != 0) tags.emplace_back(tag_names[tag]);
  return tags;
}

}  // namespace

ToyCorpus::ToyCorpus(uint64_t seed, int64_t level, std::string_view split)
    : split_(static_cast<Split>(number_of(level, split))),
      grammar_(seed_of(seed, level, static_cast<size_t>(split_)),
               {.ditransitives = level >= 2,
                .several_clauses = level >= 2,
                .relative_clauses = level >= 3,
                .nested = split_ == Split::nested}) {}

std::span<const std::string_view> ToyCorpus::splits() { return split_names; }

bool ToyCorpus::has(int64_t level, std::string_view split) {
  const bool known = std::find(split_names.begin(), split_names.end(), split) != split_names.end();
  return known && level >= 1 && level <= 3 &&
         (level >= 2 || (split != "nested" && split != "long"));
}

bool ToyCorpus::accepts(const toy::Sentence& sentence) const {
  const bool pair = toy::has_held_out_pair(sentence), role = toy::has_held_out_role(sentence);
  return pair == (split_ == Split::pair) && role == (split_ == Split::role);
}

bool ToyCorpus::accepts_length(size_t source_words) const {
  if (split_ == Split::nested) return true;
  return (source_words > longest_in_training) == (split_ == Split::long_sentences);
}

bool ToyCorpus::accepts_hash(uint64_t source_hash) const {
  const bool kept = source_hash % kept_from_training == 0;
  return split_ == Split::train ? !kept : split_ == Split::iid ? kept : true;
}

ToyPair ToyCorpus::next() {
  ToyPair pair;
  for (int64_t tries = 0; tries < longest_search; ++tries) {
    const toy::Sentence sentence = grammar_.sentence();
    if (!accepts(sentence)) continue;
    toy::render(sentence, rendering_);
    if (!accepts_length(rendering_.english.size())) continue;
    toy::spell(rendering_.english, pair.source);
    const uint64_t source_hash = hash_text(pair.source);
    if (!accepts_hash(source_hash) || !seen_.insert(source_hash)) continue;
    toy::spell(rendering_.german, pair.target);
    pair.alignment = toy::alignment(rendering_);
    pair.tags = tags_of(sentence);
    return pair;
  }
  fail("toy corpus: no new sentence in {} tries, got {} distinct ones; ask for fewer",
       longest_search, seen_.size());
}

std::vector<ToyPair> toy_pairs(uint64_t seed, int64_t level, std::string_view split,
                               int64_t count) {
  check(count >= 0, "toy corpus: the number of pairs is negative, got {}; use 0 or more", count);
  ToyCorpus corpus(seed, level, split);
  std::vector<ToyPair> pairs;
  constexpr int64_t reserved_at_most = 1 << 20;
  pairs.reserve(static_cast<size_t>(std::min(count, reserved_at_most)));
  for (int64_t i = 0; i < count; ++i) pairs.push_back(corpus.next());
  return pairs;
}

}  // namespace gs
