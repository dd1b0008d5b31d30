#include "datasets/toy_rendering.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <string>

#include "framework/core/error.h"

// Sentences whose derivation is built by hand: the German words and the links are what a person
// writes down, not what the generator printed.
namespace gs::toy {
namespace {

template <typename Entry>
const Entry* find(std::span<const Entry> entries, std::string_view english) {
  const auto found = std::find_if(entries.begin(), entries.end(),
                                  [&](const Entry& entry) { return entry.english == english; });
  check(found != entries.end(), "lexicon: no such word, got {}; add it", english);
  return &*found;
}

const Noun* noun(std::string_view word) { return find(nouns(), word); }
const Verb* verb(std::string_view word) { return find(verbs(), word); }
const Adjective* adjective(std::string_view word) { return find(adjectives(), word); }
const Pronoun* pronoun(std::string_view word) { return find(pronouns(), word); }
const Modal* modal(std::string_view word) { return find(modals(), word); }
const Particle* conjunction(std::string_view word) { return find(conjunctions(), word); }
const Particle* yesterday() { return &past_adverbs().front(); }

// A noun phrase in the singular, or with plural() in the plural.
NounPhrase phrase(Determiner determiner, std::string_view word, std::string_view attribute = "") {
  return {.noun = noun(word),
          .determiner = determiner,
          .adjective = attribute.empty() ? nullptr : adjective(attribute)};
}
NounPhrase plural(NounPhrase x) {
  x.plural = true;
  return x;
}
constexpr auto the = Determiner::definite;
constexpr auto a = Determiner::indefinite;

Sentence main_clause(Clause clause) {
  return {.kind = SentenceKind::main, .clauses = {std::move(clause)}};
}

// "English | German", as both are spelled.
std::string both(const Sentence& sentence) {
  Rendering rendering;
  render(sentence, rendering);
  std::string english, german;
  spell(rendering.english, english);
  spell(rendering.german, german);
  return english + " | " + german;
}

// The alignment as Pharaoh writes it: source-target.
std::string links(const Sentence& sentence) {
  Rendering rendering;
  render(sentence, rendering);
  std::string result;
  for (const auto& [from, to] : alignment(rendering))
    result += (result.empty() ? "" : " ") + std::to_string(from) + "-" + std::to_string(to);
  return result;
}

TEST(ToyRendering, InflectsForGenderCaseAndNumber) {
  EXPECT_EQ(both(main_clause({.subject = phrase(the, "boy", "small"),
                              .verb = verb("give"),
                              .recipient = phrase(a, "queen", "old"),
                              .object_kind = ObjectKind::phrase,
                              .object = plural(phrase(the, "apple", "red"))})),
            "the small boy gives an old queen the red apples . | "
            "der kleine Junge gibt einer alten Königin die roten Äpfel .");
}

TEST(ToyRendering, PutsTheVerbSecondBehindAFrontedAdverb) {
  EXPECT_EQ(both(main_clause({.subject = phrase(the, "man"),
                              .verb = verb("see"),
                              .tense = Tense::past,
                              .object_kind = ObjectKind::phrase,
                              .object = phrase(the, "dog"),
                              .adverb = yesterday(),
                              .fronted = true})),
            "yesterday the man saw the dog . | gestern hat der Mann den Hund gesehen .");
}

TEST(ToyRendering, FormsThePerfectWithHabenOrSein) {
  EXPECT_EQ(both(main_clause(
                {.subject = phrase(the, "sister"), .verb = verb("run"), .tense = Tense::past})),
            "the sister ran . | die Schwester ist gelaufen .");
}

TEST(ToyRendering, PutsTheInfinitiveOfAModalLast) {
  EXPECT_EQ(both(main_clause({.subject = phrase(a, "brother", "young"),
                              .verb = verb("carry"),
                              .tense = Tense::modal,
                              .modal = modal("want"),
                              .object_kind = ObjectKind::phrase,
                              .object = phrase(a, "knife", "black")})),
            "a young brother wants to carry a black knife . | "
            "ein junger Bruder will ein schwarzes Messer tragen .");
}

TEST(ToyRendering, InvertsTheMainClauseBehindAFrontedClause) {
  EXPECT_EQ(both({.kind = SentenceKind::fronted,
                  .conjunction = conjunction("because"),
                  .clauses = {{.subject = phrase(a, "baby"), .verb = verb("work")},
                              {.subject_kind = SubjectKind::anaphor,
                               .subject = {.noun = noun("baby")},
                               .verb = verb("see"),
                               .tense = Tense::modal,
                               .modal = modal("want"),
                               .object_kind = ObjectKind::phrase,
                               .object = phrase(the, "woman")}}}),
            "because a baby works , it wants to see the woman . | "
            "weil ein Baby arbeitet , will es die Frau sehen .");
}

Clause he_closes_the_door(Tense tense) {
  return {.subject_kind = SubjectKind::pronoun,
          .pronoun = pronoun("he"),
          .verb = verb("close"),
          .tense = tense,
          .object_kind = ObjectKind::phrase,
          .object = phrase(the, "door")};
}

TEST(ToyRendering, PartsAndJoinsSeparableVerbs) {
  EXPECT_EQ(both(main_clause(he_closes_the_door(Tense::present))),
            "he closes the door . | er macht die Tür zu .");
  Sentence sentence{.kind = SentenceKind::subordinate,
                    .conjunction = conjunction("because"),
                    .clauses = {{.subject = phrase(the, "man"), .verb = verb("wait")},
                                he_closes_the_door(Tense::past)}};
  EXPECT_EQ(both(sentence),
            "the man waits because he closed the door . | "
            "der Mann wartet , weil er die Tür zugemacht hat .");
  sentence.clauses[1].tense = Tense::present;
  EXPECT_EQ(both(sentence),
            "the man waits because he closes the door . | "
            "der Mann wartet , weil er die Tür zumacht .");
}

TEST(ToyRendering, KnowsDativeVerbsAndContractsInDem) {
  Clause clause{.subject = phrase(Determiner::every, "woman"),
                .verb = verb("follow"),
                .object_kind = ObjectKind::phrase,
                .object = phrase(the, "dog"),
                .place = phrase(the, "garden")};
  EXPECT_EQ(both(main_clause(clause)),
            "every woman follows the dog in the garden . | jede Frau folgt dem Hund im Garten .");
  clause.place = phrase(the, "town");
  EXPECT_EQ(both(main_clause(clause)),
            "every woman follows the dog in the town . | jede Frau folgt dem Hund in der Stadt .");
  clause.place = plural(phrase(Determiner::many, "park", "quiet"));
  EXPECT_EQ(both(main_clause(clause)),
            "every woman follows the dog in many quiet parks . | "
            "jede Frau folgt dem Hund in vielen ruhigen Parks .");
}

TEST(ToyRendering, DeniesAnIndefiniteObjectWithKein) {
  Clause clause{.subject = plural(phrase(the, "man")),
                .verb = verb("buy"),
                .negated = true,
                .object_kind = ObjectKind::phrase,
                .object = phrase(a, "chair")};
  EXPECT_EQ(both(main_clause(clause)),
            "the men do not buy a chair . | die Männer kaufen keinen Stuhl .");
  clause.object = phrase(the, "chair");
  EXPECT_EQ(both(main_clause(clause)),
            "the men do not buy the chair . | die Männer kaufen den Stuhl nicht .");
}

TEST(ToyRendering, AsksWithTheVerbFirst) {
  EXPECT_EQ(both({.kind = SentenceKind::question,
                  .clauses = {{.subject = phrase(the, "king", "tired"), .verb = verb("get")}}}),
            "does the tired king get up ? | steht der müde König auf ?");
}

TEST(ToyRendering, GivesAPronounTheGenderOfItsAntecedent) {
  const auto falls = [](std::string_view word) {
    return both({.kind = SentenceKind::subordinate,
                 .conjunction = conjunction("because"),
                 .clauses = {{.subject = phrase(the, word), .verb = verb("fall")},
                             {.subject_kind = SubjectKind::anaphor,
                              .subject = {.noun = noun(word)},
                              .predicate = adjective("old")}}});
  };
  EXPECT_EQ(falls("lamp"),
            "the lamp falls because it is old . | die Lampe fällt , weil sie alt ist .");
  EXPECT_EQ(falls("ball"),
            "the ball falls because it is old . | der Ball fällt , weil er alt ist .");
  EXPECT_EQ(falls("girl"),
            "the girl falls because she is old . | das Mädchen fällt , weil es alt ist .");
}

TEST(ToyRendering, PlacesTheParticleUpBehindAPronoun) {
  Clause clause{.subject_kind = SubjectKind::pronoun,
                .pronoun = pronoun("he"),
                .verb = verb("pick"),
                .object_kind = ObjectKind::pronoun,
                .object_pronoun = Agreement::feminine};
  EXPECT_EQ(both(main_clause(clause)), "he picks her up . | er holt sie ab .");
  clause.object_kind = ObjectKind::phrase;
  clause.object = phrase(the, "cup");
  EXPECT_EQ(both(main_clause(clause)), "he picks up the cup . | er holt die Tasse ab .");
  clause.verb = verb("look");
  clause.object_kind = ObjectKind::pronoun;
  clause.object = {};
  EXPECT_EQ(both(main_clause(clause)), "he looks for her . | er sucht sie .");
  clause.verb = verb("listen");
  EXPECT_EQ(both(main_clause(clause)), "he listens to her . | er hört ihr zu .");
}

TEST(ToyRendering, DeclinesWeakMasculineNounsAndDativePlurals) {
  const auto helps = [](const NounPhrase& x) {
    return both(main_clause({.subject_kind = SubjectKind::pronoun,
                             .pronoun = pronoun("I"),
                             .verb = verb("help"),
                             .object_kind = ObjectKind::phrase,
                             .object = x}));
  };
  EXPECT_EQ(helps(phrase(the, "boy")), "I help the boy . | ich helfe dem Jungen .");
  EXPECT_EQ(helps(phrase(the, "student")), "I help the student . | ich helfe dem Studenten .");
  EXPECT_EQ(helps(phrase(the, "rabbit")), "I help the rabbit . | ich helfe dem Hasen .");
  EXPECT_EQ(helps(plural(phrase(the, "dog"))), "I help the dogs . | ich helfe den Hunden .");
}

TEST(ToyRendering, RelativeClausesAgreeWithTheirHeadAndTakeTheirCaseFromTheVerb) {
  Clause clause{.subject = plural(phrase(the, "baby")), .verb = verb("wait")};
  clause.subject.relative =
      std::make_shared<const Clause>(Clause{.subject = phrase(a, "child"),
                                            .verb = verb("listen"),
                                            .tense = Tense::past,
                                            .object_kind = ObjectKind::head,
                                            .object = {.noun = noun("baby"), .plural = true}});
  EXPECT_EQ(both(main_clause(clause)),
            "the babies who a child listened to wait . | "
            "die Babys , denen ein Kind zugehört hat , warten .");
  Clause seen{.subject_kind = SubjectKind::pronoun,
              .pronoun = pronoun("she"),
              .verb = verb("see"),
              .object_kind = ObjectKind::phrase,
              .object = phrase(the, "dog")};
  seen.object.relative = std::make_shared<const Clause>(Clause{.subject_kind = SubjectKind::head,
                                                               .subject = {.noun = noun("dog")},
                                                               .verb = verb("sleep"),
                                                               .place = phrase(the, "room")});
  // The comma that closes the clause gives way to the full stop.
  EXPECT_EQ(both(main_clause(seen)),
            "she sees the dog that sleeps in the room . | "
            "sie sieht den Hund , der im Zimmer schläft .");
}

TEST(ToyRendering, NestsReportedClauses) {
  EXPECT_EQ(
      both({.kind = SentenceKind::nested,
            .clauses = {{.subject_kind = SubjectKind::pronoun,
                         .pronoun = pronoun("I"),
                         .verb = verb("know")},
                        {.subject = phrase(the, "man"), .verb = verb("say"), .tense = Tense::past},
                        {.subject_kind = SubjectKind::pronoun,
                         .pronoun = pronoun("you"),
                         .verb = verb("arrive")}}}),
      "I know that the man said that you arrive . | "
      "ich weiß , dass der Mann gesagt hat , dass du ankommst .");
}

TEST(ToyRendering, AlignsSeparableVerbPerfectAndVerbLast) {
  const Sentence sentence{.kind = SentenceKind::subordinate,
                          .conjunction = conjunction("because"),
                          .clauses = {{.subject = phrase(a, "brother"),
                                       .verb = verb("open"),
                                       .tense = Tense::past,
                                       .object_kind = ObjectKind::phrase,
                                       .object = phrase(Determiner::your, "door"),
                                       .adverb = yesterday(),
                                       .fronted = true},
                                      {.subject_kind = SubjectKind::anaphor,
                                       .subject = {.noun = noun("brother")},
                                       .verb = verb("arrive"),
                                       .tense = Tense::past,
                                       .negated = true}}};
  EXPECT_EQ(both(sentence),
            "yesterday a brother opened your door because he did not arrive . | "
            "gestern hat ein Bruder deine Tür aufgemacht , weil er nicht angekommen ist .");
  EXPECT_EQ(links(sentence), "0-0 3-1 1-2 2-3 4-4 5-5 3-6 6-7 6-8 7-9 9-10 10-11 8-12 11-13");
}

TEST(ToyRendering, AlignsKeinWithNotAndA) {
  const Sentence sentence = main_clause({.subject = plural(phrase(the, "sister", "beautiful")),
                                         .verb = verb("invite"),
                                         .negated = true,
                                         .object_kind = ObjectKind::phrase,
                                         .object = phrase(a, "boy")});
  EXPECT_EQ(both(sentence),
            "the beautiful sisters do not invite a boy . | "
            "die schönen Schwestern laden keinen Jungen ein .");
  EXPECT_EQ(links(sentence), "0-0 1-1 2-2 5-3 4-4 6-4 7-5 5-6 8-7");
}

TEST(ToyRendering, AlignsWantToInQuestions) {
  const Sentence sentence{.kind = SentenceKind::question,
                          .clauses = {{.subject = phrase(the, "baby", "clever"),
                                       .verb = verb("help"),
                                       .tense = Tense::modal,
                                       .modal = modal("want"),
                                       .object_kind = ObjectKind::phrase,
                                       .object = plural(phrase(the, "bird"))}}};
  EXPECT_EQ(both(sentence),
            "does the clever baby want to help the birds ? | "
            "will das kluge Baby den Vögeln helfen ?");
  EXPECT_EQ(links(sentence), "4-0 5-0 1-1 2-2 3-3 7-4 8-5 6-6 9-7");
}

TEST(ToyRendering, AlignsRelativeClauses) {
  Clause clause{.subject = plural(phrase(the, "woman", "beautiful")), .verb = verb("arrive")};
  clause.subject.relative =
      std::make_shared<const Clause>(Clause{.subject = phrase(a, "girl"),
                                            .verb = verb("help"),
                                            .object_kind = ObjectKind::head,
                                            .object = {.noun = noun("woman"), .plural = true}});
  const Sentence sentence = main_clause(clause);
  EXPECT_EQ(both(sentence),
            "the beautiful women who a girl helps arrive . | "
            "die schönen Frauen , denen ein Mädchen hilft , kommen an .");
  EXPECT_EQ(links(sentence), "0-0 1-1 2-2 3-3 3-4 4-5 5-6 6-7 7-9 7-10 8-11");
}

}  // namespace
}  // namespace gs::toy
