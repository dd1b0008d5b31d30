#include "datasets/toy_held_out.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <sstream>

#include "datasets/toy_corpus.h"

namespace gs::toy {
namespace {

TEST(ToyHeldOut, TakesATenthOfThePairs) {
  int held_out = 0, all = 0;
  for (const Adjective& adjective : adjectives())
    for (const Noun& noun : nouns()) {
      held_out += is_held_out("an", adjective.english, noun.english);
      ++all;
    }
  EXPECT_NEAR(held_out, 0.1 * all, 25);
  held_out = all = 0;
  for (const Verb& verb : verbs())
    for (const Noun& noun : nouns()) {
      held_out += is_held_out("sv", noun.english, verb.english);
      held_out += is_held_out("vo", verb.english, noun.english);
      all += 2;
    }
  EXPECT_NEAR(held_out, 0.1 * all, 50);
}

std::vector<std::string> words_of(const std::string& text) {
  std::istringstream stream(text);
  return {std::istream_iterator<std::string>(stream), {}};
}

// Adjective directly before a noun, anywhere in a sentence: "an|old|dog" for "old dogs".
std::vector<std::string> attributes_in(const std::string& source) {
  static const auto nouns_by_form = [] {
    std::map<std::string, std::string, std::less<>> forms;
    for (const Noun& noun : nouns())
      for (const std::string_view form : {noun.english, noun.english_plural})
        forms[std::string(form)] = noun.english;
    return forms;
  }();
  static const auto known = [] {
    std::set<std::string, std::less<>> words;
    for (const Adjective& adjective : adjectives()) words.emplace(adjective.english);
    return words;
  }();
  std::vector<std::string> pairs;
  const auto words = words_of(source);
  for (size_t i = 1; i < words.size(); ++i)
    if (known.count(words[i - 1]) == 1 && nouns_by_form.count(words[i]) == 1)
      pairs.push_back(words[i - 1] + "|" + nouns_by_form.at(words[i]));
  return pairs;
}

bool is_held_out_attribute(const std::string& pair) {
  const size_t bar = pair.find('|');
  return is_held_out("an", pair.substr(0, bar), pair.substr(bar + 1));
}

TEST(ToyHeldOut, TrainingHoldsNoHeldOutAttribute) {
  std::set<std::string> trained, asked;
  for (const ToyPair& pair : toy_pairs(1, 3, "train", 20000))
    for (const std::string& attribute : attributes_in(pair.source)) {
      EXPECT_FALSE(is_held_out_attribute(attribute)) << pair.source;
      trained.insert(attribute);
    }
  int new_pairs = 0;
  for (const ToyPair& pair : toy_pairs(1, 3, "pair", 2000))
    for (const std::string& attribute : attributes_in(pair.source))
      if (trained.insert(attribute).second) {
        EXPECT_TRUE(is_held_out_attribute(attribute)) << pair.source;
        ++new_pairs;
      }
  EXPECT_GT(new_pairs, 20);
}

// Sentences "the NOUN VERBs the NOUN .", where all pairs can be read off the English.
std::optional<std::array<std::string, 3>> simple(const ToyPair& pair) {
  static const auto third = [] {
    std::map<std::string, std::string, std::less<>> forms;
    for (const Verb& verb : verbs())
      if (verb.particle.empty()) {
        forms[std::string(verb.english_third)] = verb.english;
        forms[std::string(verb.english_past)] = verb.english;
      }
    return forms;
  }();
  static const auto singular = [] {
    std::set<std::string, std::less<>> words;
    for (const Noun& noun : nouns()) words.emplace(noun.english);
    return words;
  }();
  const auto words = words_of(pair.source);
  if (words.size() != 6 || singular.count(words[1]) == 0 || third.count(words[2]) == 0 ||
      singular.count(words[4]) == 0)
    return std::nullopt;
  return std::array{words[1], third.at(words[2]), words[4]};
}

TEST(ToyHeldOut, EachPairSentenceHoldsAHeldOutPair) {
  int found = 0;
  for (const ToyPair& pair : toy_pairs(1, 1, "pair", 5000))
    if (const auto words = simple(pair)) {
      const auto& [subject, verb, object] = *words;
      EXPECT_TRUE(is_held_out("sv", subject, verb) || is_held_out("vo", verb, object))
          << pair.source;
      ++found;
    }
  EXPECT_GT(found, 50);
  found = 0;
  for (const std::string_view split : {"train", "iid"})
    for (const ToyPair& pair : toy_pairs(1, 1, split, 5000))
      if (const auto words = simple(pair)) {
        const auto& [subject, verb, object] = *words;
        EXPECT_FALSE(is_held_out("sv", subject, verb) || is_held_out("vo", verb, object))
            << pair.source;
        ++found;
      }
  EXPECT_GT(found, 100);
}

template <typename Entry>
const Entry* find(std::span<const Entry> entries, std::string_view english) {
  return &*std::find_if(entries.begin(), entries.end(),
                        [&](const Entry& entry) { return entry.english == english; });
}

const Verb* verb(std::string_view word) { return find(verbs(), word); }
const Noun* noun(std::string_view word) { return find(nouns(), word); }

// Each place in a derivation where two words can meet.
TEST(ToyHeldOut, FindsPairsWhereverTheyStand) {
  const auto holds = [](Clause clause) {
    return has_held_out_pair({.clauses = {std::move(clause)}});
  };
  int held_out = 0;
  for (const Noun& x : nouns()) {
    const Noun* const other = &x;
    const Clause as_subject{.subject = {.noun = other}, .verb = verb("fall")};
    EXPECT_EQ(holds(as_subject), is_held_out("sv", x.english, "fall"));
    Clause as_anaphor = as_subject;
    as_anaphor.subject_kind = SubjectKind::anaphor;
    EXPECT_EQ(holds(as_anaphor), is_held_out("sv", x.english, "fall"));
    const Adjective& old = *find(adjectives(), "old");
    const bool is_attribute = is_held_out("an", "old", x.english);
    held_out += is_attribute;
    EXPECT_EQ(holds({.subject = {.noun = other}, .predicate = &old}), is_attribute);
    const Pronoun* const i = &pronouns().front();
    const auto said_by_me = [&](std::string_view word) {
      return Clause{.subject_kind = SubjectKind::pronoun, .pronoun = i, .verb = verb(word)};
    };
    Clause seen = said_by_me("see");
    seen.object_kind = ObjectKind::phrase;
    seen.object = {.noun = other};
    EXPECT_EQ(holds(seen), is_held_out("vo", "see", x.english));
    Clause placed = said_by_me("sleep");
    placed.place = {.noun = other, .adjective = &old};
    EXPECT_EQ(holds(placed), is_attribute);
    Clause given = said_by_me("give");
    given.recipient = {.noun = other, .adjective = &old};
    EXPECT_EQ(holds(given), is_attribute);
    // "the X that I see falls": the head is the object of its relative clause.
    Clause relative = said_by_me("see");
    relative.object_kind = ObjectKind::head;
    relative.object = {.noun = other};
    Clause headed = as_subject;
    headed.subject.relative = std::make_shared<const Clause>(relative);
    EXPECT_EQ(holds(headed),
              is_held_out("sv", x.english, "fall") || is_held_out("vo", "see", x.english));
  }
  EXPECT_GT(held_out, 0);
}

TEST(ToyHeldOut, FindsRoles) {
  const Pronoun* const i = &pronouns().front();
  const auto sentence = [&](SentenceKind kind, std::string_view first, std::string_view second) {
    Sentence result{.kind = kind};
    for (const std::string_view word : {first, second})
      if (!word.empty())
        result.clauses.push_back(
            {.subject_kind = SubjectKind::pronoun, .pronoun = i, .verb = verb(word)});
    return has_held_out_role(result);
  };
  for (const std::string_view word : {"see", "carry", "sleep"}) {
    EXPECT_TRUE(sentence(SentenceKind::question, word, ""));
    EXPECT_FALSE(sentence(SentenceKind::main, word, ""));
    EXPECT_FALSE(sentence(SentenceKind::subordinate, "wait", word));
  }
  for (const std::string_view word : {"hear", "help", "laugh"}) {
    EXPECT_FALSE(sentence(SentenceKind::question, word, ""));
    EXPECT_TRUE(sentence(SentenceKind::subordinate, "wait", word));
    EXPECT_FALSE(sentence(SentenceKind::subordinate, word, "wait"));
    EXPECT_TRUE(sentence(SentenceKind::fronted, word, "wait"));
    EXPECT_FALSE(sentence(SentenceKind::fronted, "wait", word));
    EXPECT_TRUE(sentence(SentenceKind::reported, "say", word));
  }
  for (const std::string_view word : {"teacher", "sister", "baby", "man"}) {
    const Clause clause{.subject_kind = SubjectKind::pronoun,
                        .pronoun = i,
                        .verb = verb("give"),
                        .recipient = {.noun = noun(word)},
                        .object_kind = ObjectKind::phrase,
                        .object = {.noun = noun("book")}};
    EXPECT_EQ(has_held_out_role({.clauses = {clause}}), word != "man");
    Clause headed{.subject = {.noun = noun("boy")}, .verb = verb("wait")};
    headed.subject.relative = std::make_shared<const Clause>(clause);
    EXPECT_EQ(has_held_out_role({.clauses = {headed}}), word != "man");
  }
}

TEST(ToyHeldOut, TrainingShowsNoHeldOutRole) {
  const auto asks = [](const ToyPair& pair) {
    const auto words = words_of(pair.source);
    return words.back() == "?" && std::any_of(words.begin(), words.end(), [](const auto& word) {
             return word == "see" || word == "carry" || word == "sleep";
           });
  };
  for (const std::string_view split : {"train", "iid", "pair"})
    for (const ToyPair& pair : toy_pairs(1, 1, split, 5000))
      EXPECT_FALSE(asks(pair)) << pair.source;
  // At level 1 there is no other role.
  for (const ToyPair& pair : toy_pairs(1, 1, "role", 2000)) EXPECT_TRUE(asks(pair)) << pair.source;
}

}  // namespace
}  // namespace gs::toy
