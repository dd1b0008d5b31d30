#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "datasets/fingerprint_set.h"
#include "datasets/toy_grammar.h"
#include "datasets/toy_rendering.h"

namespace gs {

// An English sentence, its only German translation, which words translate each other, and what the
// sentence shows. Words are separated by one space; marks are words.
struct ToyPair {
  std::string source, target;
  // (source word, target word), counted from 0, by target word and then source word.
  std::vector<std::pair<int, int>> alignment;
  // First the construction: main, question, subordinate, fronted, reported or nested. Then those of
  // relative, ditransitive, dative, separable, kein, negation, past, modal, copula, inversion,
  // anaphor, place that occur, in this order.
  std::vector<std::string> tags;

  bool operator==(const ToyPair&) const = default;
};

// The toy corpus: an endless stream of distinct pairs, the same for the same arguments on every
// machine. Levels: 1 has main clauses and yes/no questions; 2 adds ditransitive verbs and
// subordinate clauses; 3 adds relative clauses.
//
// Splits, none of which shares a sentence with the training split of any seed or level:
//   train   no held-out pair and no held-out role, at most 24 source words
//   iid     the same kind of sentence
//   pair    at least one held-out pair of words (adjective and noun, subject noun and verb, verb
//           and object noun), no held-out role, at most 24 source words
//   role    at least one word in a held-out role, no held-out pair, at most 24 source words
//   nested  "that" within "that" (levels 2 and 3), neither pair nor role held out
//   long    more than 24 source words (levels 2 and 3), neither pair nor role held out
// A hash of the source sentence decides between train and iid, a hash of the words which pairs are
// held out; so this holds for any number of sentences.
class ToyCorpus {
 public:
  // Throws Error on a level or split that does not exist.
  ToyCorpus(uint64_t seed, int64_t level, std::string_view split);

  // Throws Error when no new sentence turns up in a long search.
  ToyPair next();

  static std::span<const std::string_view> splits();
  // Whether the level has sentences of that split.
  static bool has(int64_t level, std::string_view split);

 private:
  enum class Split : uint8_t { train, iid, pair, role, nested, long_sentences };

  bool accepts(const toy::Sentence& sentence) const;
  bool accepts_length(size_t source_words) const;
  bool accepts_hash(uint64_t source_hash) const;

  Split split_;
  toy::Grammar grammar_;
  toy::Rendering rendering_;
  FingerprintSet seen_;  // hashes of the sources so far
};

// The first `count` pairs of the stream.
std::vector<ToyPair> toy_pairs(uint64_t seed, int64_t level, std::string_view split, int64_t count);

}  // namespace gs
