#include "datasets/toy_lexicon.h"

namespace gs::toy {
namespace {

using enum Agreement;
using enum Frame;
using enum Auxiliary;

constexpr Noun noun_table[] = {
    {"man", "men", masculine, "Mann", "Mann", "Männer", "Männern", person, "he"},
    {"woman", "women", feminine, "Frau", "Frau", "Frauen", "Frauen", person, "she"},
    {"child", "children", neuter, "Kind", "Kind", "Kinder", "Kindern", person, "it"},
    {"boy", "boys", masculine, "Junge", "Jungen", "Jungen", "Jungen", person, "he"},
    {"girl", "girls", neuter, "Mädchen", "Mädchen", "Mädchen", "Mädchen", person, "she"},
    {"teacher", "teachers", masculine, "Lehrer", "Lehrer", "Lehrer", "Lehrern", person, "he"},
    {"queen", "queens", feminine, "Königin", "Königin", "Königinnen", "Königinnen", person, "she"},
    {"king", "kings", masculine, "König", "König", "Könige", "Königen", person, "he"},
    {"student", "students", masculine, "Student", "Studenten", "Studenten", "Studenten", person,
     "he"},
    {"sister", "sisters", feminine, "Schwester", "Schwester", "Schwestern", "Schwestern", person,
     "she"},
    {"brother", "brothers", masculine, "Bruder", "Bruder", "Brüder", "Brüdern", person, "he"},
    {"baby", "babies", neuter, "Baby", "Baby", "Babys", "Babys", person, "it"},
    {"dog", "dogs", masculine, "Hund", "Hund", "Hunde", "Hunden", animal, "it"},
    {"cat", "cats", feminine, "Katze", "Katze", "Katzen", "Katzen", animal, "it"},
    {"horse", "horses", neuter, "Pferd", "Pferd", "Pferde", "Pferden", animal, "it"},
    {"bird", "birds", masculine, "Vogel", "Vogel", "Vögel", "Vögeln", animal, "it"},
    {"mouse", "mice", feminine, "Maus", "Maus", "Mäuse", "Mäusen", animal, "it"},
    {"rabbit", "rabbits", masculine, "Hase", "Hasen", "Hasen", "Hasen", animal, "it"},
    {"cow", "cows", feminine, "Kuh", "Kuh", "Kühe", "Kühen", animal, "it"},
    {"pig", "pigs", neuter, "Schwein", "Schwein", "Schweine", "Schweinen", animal, "it"},
    {"book", "books", neuter, "Buch", "Buch", "Bücher", "Büchern", thing | openable, "it"},
    {"table", "tables", masculine, "Tisch", "Tisch", "Tische", "Tischen", thing, "it"},
    {"lamp", "lamps", feminine, "Lampe", "Lampe", "Lampen", "Lampen", thing, "it"},
    {"letter", "letters", masculine, "Brief", "Brief", "Briefe", "Briefen", thing | openable, "it"},
    {"ball", "balls", masculine, "Ball", "Ball", "Bälle", "Bällen", thing, "it"},
    {"flower", "flowers", feminine, "Blume", "Blume", "Blumen", "Blumen", thing, "it"},
    {"door", "doors", feminine, "Tür", "Tür", "Türen", "Türen", thing | openable, "it"},
    {"window", "windows", neuter, "Fenster", "Fenster", "Fenster", "Fenstern", thing | openable,
     "it"},
    {"apple", "apples", masculine, "Apfel", "Apfel", "Äpfel", "Äpfeln", thing, "it"},
    {"picture", "pictures", neuter, "Bild", "Bild", "Bilder", "Bildern", thing, "it"},
    {"car", "cars", neuter, "Auto", "Auto", "Autos", "Autos", thing, "it"},
    {"key", "keys", masculine, "Schlüssel", "Schlüssel", "Schlüssel", "Schlüsseln", thing, "it"},
    {"cup", "cups", feminine, "Tasse", "Tasse", "Tassen", "Tassen", thing, "it"},
    {"chair", "chairs", masculine, "Stuhl", "Stuhl", "Stühle", "Stühlen", thing, "it"},
    {"bag", "bags", feminine, "Tasche", "Tasche", "Taschen", "Taschen", thing | openable, "it"},
    {"knife", "knives", neuter, "Messer", "Messer", "Messer", "Messern", thing, "it"},
    {"garden", "gardens", masculine, "Garten", "Garten", "Gärten", "Gärten", place, "it"},
    {"kitchen", "kitchens", feminine, "Küche", "Küche", "Küchen", "Küchen", place, "it"},
    {"forest", "forests", masculine, "Wald", "Wald", "Wälder", "Wäldern", place, "it"},
    {"town", "towns", feminine, "Stadt", "Stadt", "Städte", "Städten", place, "it"},
    {"room", "rooms", neuter, "Zimmer", "Zimmer", "Zimmer", "Zimmern", place, "it"},
    {"school", "schools", feminine, "Schule", "Schule", "Schulen", "Schulen", place, "it"},
    {"village", "villages", neuter, "Dorf", "Dorf", "Dörfer", "Dörfern", place, "it"},
    {"park", "parks", masculine, "Park", "Park", "Parks", "Parks", place, "it"},
};

// No stem changes when it is inflected.
constexpr Adjective adjective_table[] = {
    {"old", "alt", "alt", person | animal | thing | place},
    {"young", "jung", "jung", person | animal},
    {"small", "klein", "klein", person | animal | thing | place},
    {"big", "groß", "groß", person | animal | thing | place},
    {"new", "neu", "neu", person | thing | place},
    {"red", "rot", "rot", animal | thing},
    {"beautiful", "schön", "schön", person | animal | thing | place},
    {"tired", "müd", "müde", person | animal},
    {"happy", "fröhlich", "fröhlich", person | animal},
    {"sad", "traurig", "traurig", person | animal},
    {"clever", "klug", "klug", person | animal},
    {"black", "schwarz", "schwarz", animal | thing},
    {"white", "weiß", "weiß", animal | thing},
    {"blue", "blau", "blau", animal | thing},
    {"cheap", "billig", "billig", animal | thing},
    {"quiet", "ruhig", "ruhig", person | animal | place},
};

// Two lines a verb: English, German.
// clang-format off
constexpr Verb verb_table[] = {
    {"sleep", "sleeps", "slept", "", intransitive, person | animal, 0,
     {"schlafe", "schläfst", "schläft", "schlafen"}, "geschlafen", "", haben},
    {"laugh", "laughs", "laughed", "", intransitive, person, 0,
     {"lache", "lachst", "lacht", "lachen"}, "gelacht", "", haben},
    {"work", "works", "worked", "", intransitive, person, 0,
     {"arbeite", "arbeitest", "arbeitet", "arbeiten"}, "gearbeitet", "", haben},
    {"dance", "dances", "danced", "", intransitive, person, 0,
     {"tanze", "tanzt", "tanzt", "tanzen"}, "getanzt", "", haben},
    {"wait", "waits", "waited", "", intransitive, person | animal, 0,
     {"warte", "wartest", "wartet", "warten"}, "gewartet", "", haben},
    {"run", "runs", "ran", "", intransitive, person | animal, 0,
     {"laufe", "läufst", "läuft", "laufen"}, "gelaufen", "", sein},
    {"jump", "jumps", "jumped", "", intransitive, person | animal, 0,
     {"springe", "springst", "springt", "springen"}, "gesprungen", "", sein},
    {"fall", "falls", "fell", "", intransitive, person | animal | thing, 0,
     {"falle", "fällst", "fällt", "fallen"}, "gefallen", "", sein},
    {"arrive", "arrives", "arrived", "", intransitive, person | animal, 0,
     {"komme", "kommst", "kommt", "kommen"}, "gekommen", "an", sein},
    {"get", "gets", "got", "up", intransitive, person | animal, 0,
     {"stehe", "stehst", "steht", "stehen"}, "gestanden", "auf", sein},
    {"see", "sees", "saw", "", accusative, person | animal, every_kind,
     {"sehe", "siehst", "sieht", "sehen"}, "gesehen", "", haben},
    {"love", "loves", "loved", "", accusative, person, every_kind,
     {"liebe", "liebst", "liebt", "lieben"}, "geliebt", "", haben},
    {"find", "finds", "found", "", accusative, person | animal, every_kind,
     {"finde", "findest", "findet", "finden"}, "gefunden", "", haben},
    {"buy", "buys", "bought", "", accusative, person, animal | thing,
     {"kaufe", "kaufst", "kauft", "kaufen"}, "gekauft", "", haben},
    {"hear", "hears", "heard", "", accusative, person | animal, person | animal,
     {"höre", "hörst", "hört", "hören"}, "gehört", "", haben},
    {"look", "looks", "looked", "for", accusative, person | animal, every_kind,
     {"suche", "suchst", "sucht", "suchen"}, "gesucht", "", haben},
    {"need", "needs", "needed", "", accusative, person, person | animal | thing,
     {"brauche", "brauchst", "braucht", "brauchen"}, "gebraucht", "", haben},
    {"paint", "paints", "painted", "", accusative, person, every_kind,
     {"male", "malst", "malt", "malen"}, "gemalt", "", haben},
    {"wash", "washes", "washed", "", accusative, person, person | animal | thing,
     {"wasche", "wäschst", "wäscht", "waschen"}, "gewaschen", "", haben},
    {"carry", "carries", "carried", "", accusative, person, animal | thing,
     {"trage", "trägst", "trägt", "tragen"}, "getragen", "", haben},
    {"call", "calls", "called", "", accusative, person, person,
     {"rufe", "rufst", "ruft", "rufen"}, "gerufen", "an", haben},
    {"open", "opens", "opened", "", accusative, person, openable,
     {"mache", "machst", "macht", "machen"}, "gemacht", "auf", haben},
    {"close", "closes", "closed", "", accusative, person, openable,
     {"mache", "machst", "macht", "machen"}, "gemacht", "zu", haben},
    {"invite", "invites", "invited", "", accusative, person, person,
     {"lade", "lädst", "lädt", "laden"}, "geladen", "ein", haben},
    {"pick", "picks", "picked", "up", accusative, person, person | animal | thing,
     {"hole", "holst", "holt", "holen"}, "geholt", "ab", haben},
    {"help", "helps", "helped", "", dative, person, person | animal,
     {"helfe", "hilfst", "hilft", "helfen"}, "geholfen", "", haben},
    {"thank", "thanks", "thanked", "", dative, person, person,
     {"danke", "dankst", "dankt", "danken"}, "gedankt", "", haben},
    {"follow", "follows", "followed", "", dative, person | animal, person | animal,
     {"folge", "folgst", "folgt", "folgen"}, "gefolgt", "", sein},
    {"listen", "listens", "listened", "to", dative, person, person | animal,
     {"höre", "hörst", "hört", "hören"}, "gehört", "zu", haben},
    {"give", "gives", "gave", "", ditransitive, person, thing,
     {"gebe", "gibst", "gibt", "geben"}, "gegeben", "", haben},
    {"show", "shows", "showed", "", ditransitive, person, animal | thing | place,
     {"zeige", "zeigst", "zeigt", "zeigen"}, "gezeigt", "", haben},
    {"bring", "brings", "brought", "", ditransitive, person, animal | thing,
     {"bringe", "bringst", "bringt", "bringen"}, "gebracht", "", haben},
    {"sell", "sells", "sold", "", ditransitive, person, animal | thing,
     {"verkaufe", "verkaufst", "verkauft", "verkaufen"}, "verkauft", "", haben},
    {"send", "sends", "sent", "", ditransitive, person, thing,
     {"schicke", "schickst", "schickt", "schicken"}, "geschickt", "", haben},
    {"say", "says", "said", "", clausal, person, 0,
     {"sage", "sagst", "sagt", "sagen"}, "gesagt", "", haben},
    {"know", "knows", "knew", "", clausal, person, 0,
     {"weiß", "weißt", "weiß", "wissen"}, "gewusst", "", haben},
    {"believe", "believes", "believed", "", clausal, person, 0,
     {"glaube", "glaubst", "glaubt", "glauben"}, "geglaubt", "", haben},
};
// clang-format on

constexpr Modal modal_table[] = {
    {"can", {"kann", "kannst", "kann", "können"}},
    {"must", {"muss", "musst", "muss", "müssen"}},
    {"want", {"will", "willst", "will", "wollen"}},
};

constexpr Pronoun pronoun_table[] = {
    {"I", "ich", Person::first},     {"you", "du", Person::second}, {"we", "wir", Person::plural},
    {"they", "sie", Person::plural}, {"he", "er", Person::third},   {"she", "sie", Person::third},
};

constexpr Particle present_adverb_table[] = {
    {"today", "heute"}, {"now", "jetzt"}, {"here", "hier"}, {"there", "dort"}};
constexpr Particle past_adverb_table[] = {{"yesterday", "gestern"}};
constexpr Particle frequency_adverb_table[] = {
    {"often", "oft"}, {"sometimes", "manchmal"}, {"always", "immer"}, {"never", "nie"}};
constexpr Particle conjunction_table[] = {
    {"because", "weil"}, {"although", "obwohl"}, {"if", "wenn"}};
constexpr Particle that_word{"that", "dass"};

}  // namespace

std::span<const Noun> nouns() { return noun_table; }
std::span<const Adjective> adjectives() { return adjective_table; }
std::span<const Verb> verbs() { return verb_table; }
std::span<const Modal> modals() { return modal_table; }
std::span<const Pronoun> pronouns() { return pronoun_table; }
std::span<const Particle> present_adverbs() { return present_adverb_table; }
std::span<const Particle> past_adverbs() { return past_adverb_table; }
std::span<const Particle> frequency_adverbs() { return frequency_adverb_table; }
std::span<const Particle> conjunctions() { return conjunction_table; }
const Particle& that() { return that_word; }

}  // namespace gs::toy
