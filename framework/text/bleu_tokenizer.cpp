#include "framework/text/bleu_tokenizer.h"

#include <algorithm>
#include <array>
#include <utility>
#include <vector>

#include "framework/core/error.h"
#include "framework/text/unicode.h"
#include "framework/text/utf8.h"

namespace gs {
namespace {

constexpr std::array<std::pair<BleuTokenizer, std::string_view>, 4> kNames{{
    {BleuTokenizer::kNone, "none"},
    {BleuTokenizer::k13a, "13a"},
    {BleuTokenizer::kInternational, "intl"},
    {BleuTokenizer::kCharacter, "char"},
}};

std::string joined(const std::vector<std::string_view>& words) {
  std::string line;
  for (const std::string_view word : words) {
    if (!line.empty()) line += ' ';
    line += word;
  }
  return line;
}

void replace_all(std::string& text, std::string_view from, std::string_view to) {
  size_t found = text.find(from), done = 0;
  if (found == std::string::npos) return;
  std::string replaced;
  for (; found != std::string::npos; found = text.find(from, done)) {
    replaced.append(text, done, found - done).append(to);
    done = found + from.size();
  }
  text = replaced.append(text, done);
}

bool is_digit(char c) { return c >= '0' && c <= '9'; }
bool is_period_or_comma(char c) { return c == '.' || c == ','; }

// ASCII punctuation except apostrophe, comma, dash and period.
bool is_split_by_13a(char c) {
  return (c >= ' ' && c <= '&') || (c >= '(' && c <= '+') || c == '/' || (c >= ':' && c <= '@') ||
         (c >= '[' && c <= '`') || (c >= '{' && c <= '~');
}

// Where first(a) and second(b) hold for two neighbours, puts spaces before or after them. Pairs do
// not overlap, as matches of a regular expression do not: what ended one pair begins no other.
template <typename Unit, typename First, typename Second>
std::string space_pairs(const std::vector<Unit>& units, First first, Second second, bool before) {
  std::string spaced;
  for (size_t i = 0; i < units.size(); ++i) {
    if (i + 1 == units.size() || !first(units[i]) || !second(units[i + 1])) {
      spaced += units[i];
      continue;
    }
    if (before) spaced += ' ';
    spaced += units[i];
    spaced += ' ';
    spaced += units[++i];
    if (!before) spaced += ' ';
  }
  return spaced;
}

// The bytes alone tell: in UTF-8 every byte of other characters is above those asked for.
std::string tokenize_13a(std::string_view line) {
  std::string text(line);
  replace_all(text, "<skipped>", "");
  replace_all(text, "-\n", "");
  replace_all(text, "\n", " ");
  replace_all(text, "&quot;", "\"");
  replace_all(text, "&amp;", "&");
  replace_all(text, "&lt;", "<");
  replace_all(text, "&gt;", ">");
  std::vector<char> bytes{' '};
  for (const char c : text) {
    if (is_split_by_13a(c))
      bytes.insert(bytes.end(), {' ', c, ' '});
    else
      bytes.push_back(c);
  }
  bytes.push_back(' ');
  const auto no_digit = [](char c) { return !is_digit(c); };
  const auto again = [&](auto first, auto second, bool before) {
    const std::string spaced = space_pairs(bytes, first, second, before);
    bytes.assign(spaced.begin(), spaced.end());
  };
  again(no_digit, is_period_or_comma, false);
  again(is_period_or_comma, no_digit, true);
  again(
      is_digit, [](char c) { return c == '-'; }, false);
  const std::string spaced(bytes.begin(), bytes.end());
  return joined(split_words(spaced));
}

std::string tokenize_internationally(std::string_view line) {
  const auto is = [](CharacterClass wanted) {
    return [wanted](std::string_view c) { return character_class(c) == wanted; };
  };
  const auto no_number = [](std::string_view c) {
    return character_class(c) != CharacterClass::kNumber;
  };
  const auto punctuation = is(CharacterClass::kPunctuation);
  const std::string once = space_pairs(split_characters(line), no_number, punctuation, false);
  const std::string twice = space_pairs(split_characters(once), punctuation, no_number, true);
  std::string spaced;
  for (const std::string_view character : split_characters(twice)) {
    const bool symbol = character_class(character) == CharacterClass::kSymbol;
    if (symbol) spaced += ' ';
    spaced += character;
    if (symbol) spaced += ' ';
  }
  return joined(split_words(spaced));
}

// A line as sacreBLEU hands it to a tokenizer: without spaces at its end.
std::string_view without_last_spaces(std::string_view line) {
  const std::vector<std::string_view> words = split_words(line);
  if (words.empty()) return {};
  return line.substr(0,
                     static_cast<size_t>(words.back().data() + words.back().size() - line.data()));
}

}  // namespace

BleuTokenizer parse_bleu_tokenizer(std::string_view name) {
  const auto* const found = std::find_if(kNames.begin(), kNames.end(),
                                         [&](const auto& entry) { return entry.second == name; });
  check(found != kNames.end(),
        "bleu: there is no such tokenizer, got {}; use none, 13a, intl or char", name);
  return found->first;
}

std::string_view name_of(BleuTokenizer tokenizer) {
  return kNames[static_cast<size_t>(tokenizer)].second;
}

std::string tokenize_for_bleu(std::string_view line, BleuTokenizer tokenizer) {
  switch (tokenizer) {
    case BleuTokenizer::k13a:
      return tokenize_13a(without_last_spaces(line));
    case BleuTokenizer::kInternational:
      return tokenize_internationally(without_last_spaces(line));
    case BleuTokenizer::kCharacter: {
      std::string spaced;
      for (const std::string_view character : split_characters(line)) {
        spaced += character;
        spaced += ' ';
      }
      return joined(split_words(spaced));
    }
    case BleuTokenizer::kNone:
      break;
  }
  return joined(split_words(line));
}

}  // namespace gs
