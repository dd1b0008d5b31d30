#include "framework/train/options.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstdio>
#include <cxxopts.hpp>
#include <numeric>
#include <type_traits>

#include "framework/core/error.h"
#include "framework/core/version.h"
#include "framework/train/program.h"
#include "framework/train/program_profile.h"

namespace gs {
namespace {

constexpr const char* kCommon = "Common";  // heading of what every program has

template <typename T>
struct ListOf {
  static constexpr bool is_list = false;
  using Element = T;
};
template <typename T>
struct ListOf<std::vector<T>> {
  static constexpr bool is_list = true;
  using Element = T;
};

std::vector<std::string> split_at_commas(const std::string& text) {
  std::vector<std::string> parts;
  if (text.empty()) return parts;
  for (size_t first = 0; first <= text.size();) {
    const size_t last = std::min(text.find(',', first), text.size());
    parts.push_back(text.substr(first, last - first));
    first = last + 1;
  }
  return parts;
}

template <typename T>
std::string text_of(const T& value) {
  if constexpr (ListOf<T>::is_list)
    return fmt::format("{}", fmt::join(value, ","));
  else
    return fmt::format("{}", value);
}

std::string text_of(const Options::Value& value) {
  return std::visit([](const auto& v) { return text_of(v); }, value);
}

std::string describe(const Allowed& allowed) {
  const bool has_least = std::isfinite(allowed.least), has_most = std::isfinite(allowed.most);
  std::string text;
  if (!allowed.words.empty()) return fmt::format("one of {}", fmt::join(allowed.words, ", "));
  if (has_least && has_most && !allowed.least_excluded && !allowed.most_excluded)
    return fmt::format("{} to {}", allowed.least, allowed.most);
  if (has_least) text = fmt::format("{}{}", allowed.least_excluded ? "above " : "", allowed.least);
  if (has_least && !allowed.least_excluded) text += " or more";
  if (has_least && has_most) text += " and ";
  if (has_most) text += fmt::format("{}{}", allowed.most_excluded ? "below " : "", allowed.most);
  if (has_most && !allowed.most_excluded) text += " or less";
  return text;
}

template <typename T>
void check_range(const std::string& option, T value, const Allowed& allowed) {
  const auto number = static_cast<long double>(value);  // holds every int64_t and uint64_t exactly
  const bool low = allowed.least_excluded ? number <= allowed.least : number < allowed.least;
  const bool high = allowed.most_excluded ? number >= allowed.most : number > allowed.most;
  check(!low && !high, "{}: out of range, got {}; use {}", option, value, describe(allowed));
}

// One number or word. The whole text must be used up: "1e-4x" is no number.
template <typename T>
T element_of(const std::string& option, const std::string& text, const Allowed& allowed) {
  if constexpr (std::is_same_v<T, std::string>) {
    const auto& words = allowed.words;
    check(words.empty() || std::find(words.begin(), words.end(), text) != words.end(),
          "{}: unknown choice, got '{}'; use {}", option, text, describe(allowed));
    return text;
  } else {
    T value{};
    const char* const end = text.data() + text.size();
    const auto result = std::from_chars(text.data(), end, value);
    constexpr bool whole = std::is_integral_v<T>;
    const char* const kind = whole ? "a whole number" : "a number";
    if (result.ec == std::errc::result_out_of_range)
      fail("{}: out of range, got {}; use a less extreme number", option, text);
    const bool negative = std::is_unsigned_v<T> && text.size() > 1 && text[0] == '-' &&
                          text.find_first_not_of("0123456789", 1) == std::string::npos;
    check(!negative, "{}: out of range, got {}; use 0 or more", option, text);
    check(result.ec == std::errc() && result.ptr == end, "{}: not {}, got '{}'; use a form like {}",
          option, kind, text, whole ? "20" : "0.001 or 1e-3");
    if constexpr (!whole)
      check(std::isfinite(value), "{}: not finite, got {}; use a finite number", option, text);
    check_range(option, value, allowed);
    return value;
  }
}

template <>
bool element_of<bool>(const std::string& option, const std::string& text, const Allowed&) {
  check(text == "true" || text == "false", "{}: neither true nor false, got '{}'; use {}=false",
        option, text, option);
  return text == "true";
}

template <typename T>
T parsed(const std::string& option, const std::string& text, const Allowed& allowed) {
  if constexpr (ListOf<T>::is_list) {
    T list;
    for (const std::string& part : split_at_commas(text)) {
      check(!part.empty(), "{}: an empty place in a list, got '{}'; use a form like a,b,c", option,
            text);
      list.push_back(element_of<typename ListOf<T>::Element>(option, part, allowed));
    }
    return list;
  } else {
    return element_of<T>(option, text, allowed);
  }
}

// A value of the same type as `like`.
Options::Value parsed_like(const Options::Value& like, const std::string& name,
                           const std::string& text, const Allowed& allowed) {
  return std::visit(
      [&](const auto& v) -> Options::Value {
        return parsed<std::decay_t<decltype(v)>>("--" + name, text, allowed);
      },
      like);
}

// What several occurrences of an option say together.
void add_occurrence(Options::Value& value, Options::Value next) {
  auto* const words = std::get_if<std::vector<std::string>>(&value);
  if (words == nullptr)
    value = std::move(next);
  else
    for (std::string& word : std::get<std::vector<std::string>>(next))
      words->push_back(std::move(word));
}

std::string placeholder(const Options::Value& value, const Allowed& allowed) {
  if (!allowed.words.empty() && std::holds_alternative<std::string>(value)) return "WORD";
  return std::visit(
      [](const auto& v) -> std::string {
        using T = std::decay_t<decltype(v)>;
        using Element = typename ListOf<T>::Element;
        std::string element = "X";
        if (std::is_same_v<Element, std::string>) element = "TEXT";
        if (std::is_integral_v<Element>) element = "N";
        return ListOf<T>::is_list ? element + "," + element + ",..." : element;
      },
      value);
}

bool looks_like_number(const std::string& word) {
  return word.size() > 1 && word[0] == '-' && (std::isdigit(word[1]) != 0 || word[1] == '.');
}

// Levenshtein's edit distance, row by row.
size_t edit_distance(const std::string& a, const std::string& b) {
  std::vector<size_t> row(b.size() + 1);
  std::iota(row.begin(), row.end(), size_t{0});
  for (size_t i = 0; i < a.size(); ++i) {
    size_t diagonal = row[0];
    row[0] = i + 1;
    for (size_t j = 0; j < b.size(); ++j) {
      const size_t substituted = diagonal + (a[i] == b[j] ? 0 : 1);
      diagonal = row[j + 1];
      row[j + 1] = std::min({substituted, row[j] + 1, row[j + 1] + 1});
    }
  }
  return row.back();
}

}  // namespace

Allowed at_least(double least) { return {.least = least}; }
Allowed above(double least) { return {.least = least, .least_excluded = true}; }
Allowed between(double least, double most) { return {.least = least, .most = most}; }
Allowed at_least_and_below(double least, double most) {
  return {.least = least, .most = most, .most_excluded = true};
}
Allowed one_of(std::vector<std::string> words) { return {.words = std::move(words)}; }

Options::Options(std::string program, std::string description)
    : program_(std::move(program)), description_(std::move(description)), heading_(kCommon) {
  add("profile", false, "show at the end where the time went, by operation");
  add("profile-trace", std::string(),
      "like --profile, and write the first calls to a file for chrome://tracing or Perfetto");
  leave_out({"profile", "profile-trace"});
  heading_ = "General";
}

void Options::group(std::string heading) { heading_ = std::move(heading); }

void Options::add(std::string name, Value initial, std::string description, Allowed allowed) {
  check(name.size() > 1 && search(name) == nullptr && name != "help" && name != "version",
        "options: --{} is too short or added twice; choose another name", name);
  Option option;
  option.name = std::move(name);
  option.description = std::move(description);
  option.heading = heading_;
  option.value = initial;
  option.initial = std::move(initial);
  option.allowed = std::move(allowed);
  options_.push_back(std::move(option));
}

void Options::leave_out(const std::vector<std::string>& names) {
  for (const std::string& name : names) {
    Option* option = search(name);
    check(option != nullptr, "options: there is no --{} to leave out", name);
    option->left_out = true;
  }
}

const Options::Option& Options::find(const std::string& name) const {
  for (const Option& option : options_)
    if (option.name == name) return option;
  fail("options: there is no --{}", name);
}

Options::Option* Options::search(const std::string& name) {
  for (Option& option : options_)
    if (option.name == name) return &option;
  return nullptr;
}

void Options::assign(Option& option, Value value) {
  option.value = std::move(value);
  std::visit(
      [&](auto variable) {
        if constexpr (std::is_pointer_v<decltype(variable)>)
          *variable = std::get<std::remove_pointer_t<decltype(variable)>>(option.value);
      },
      option.variable);
}

std::string Options::suggestion(const std::string& word) const {
  std::string nearest;
  size_t least = std::max<size_t>(2, word.size() / 3) + 1;
  for (const Option& option : options_) {
    const bool begins = word.size() > 2 && option.name.compare(0, word.size(), word) == 0;
    const size_t distance = begins ? 0 : edit_distance(word, option.name);
    if (distance >= least || distance >= option.name.size()) continue;
    least = distance;
    nearest = option.name;
  }
  return nearest.empty() ? "see --help" : fmt::format("did you mean --{}?", nearest);
}

void Options::bind_words(std::string placeholder, std::vector<std::string>& words) {
  words_placeholder_ = std::move(placeholder);
  words_ = &words;
}

// The splitter takes whatever follows an option as its value, and passes over stray words.
void Options::refuse_bad_words(int argc, const char* const* argv) {
  for (int i = 1; i < argc; ++i) {
    const std::string word = argv[i];
    if (word == "--help" || word == "-h" || word == "--version") continue;
    const bool is_option = word.size() > 1 && word[0] == '-';
    if (!is_option && words_ != nullptr) continue;
    check(is_option, "{}: stray word; write options as --name value", word);
    const std::string name = word.substr(std::min(word.find_first_not_of('-'), word.size()));
    const std::string key = name.substr(0, name.find('='));
    const Option* option = search(key);
    check(option != nullptr && word.compare(0, 2, "--") == 0 && word.size() == name.size() + 2,
          "{}: unknown option; {}", word.substr(0, word.find('=')), suggestion(key));
    if (key.size() != name.size() || std::holds_alternative<bool>(option->value)) continue;
    const std::string next = i + 1 < argc ? argv[i + 1] : "";
    check(i + 1 < argc, "{}: value missing at the end; use {} {}", word, word,
          placeholder(option->value, option->allowed));
    check(next.size() < 2 || next[0] != '-' || looks_like_number(next),
          "{}: value missing before {}; use {} {}", word, next, word,
          placeholder(option->value, option->allowed));
    ++i;
  }
}

bool Options::parse(int argc, const char* const* argv) {
  for (int i = 1; i < argc; ++i) {
    const std::string word = argv[i];
    if (word != "--help" && word != "-h" && word != "--version") continue;
    const std::string text = word == "--version"
                                 ? fmt::format("{} {}\n{}\n", program_, version, compute_title())
                                 : help();
    std::fputs(text.c_str(), stdout);
    return false;
  }
  refuse_bad_words(argc, argv);

  cxxopts::Options splitter(program_);
  for (const Option& option : options_) {
    const auto text = cxxopts::value<std::string>();
    if (std::holds_alternative<bool>(option.value)) text->implicit_value("true");
    splitter.add_options()(option.name, "", text);
  }
  std::vector<std::pair<Option*, Value>> given;
  std::vector<std::string> words;
  try {
    const cxxopts::ParseResult result = splitter.parse(argc, argv);
    for (const cxxopts::KeyValue& argument : result.arguments()) {
      Option* option = search(argument.key());
      Value value = parsed_like(option->value, option->name, argument.value(), option->allowed);
      const auto before = std::find_if(given.begin(), given.end(),
                                       [&](const auto& other) { return other.first == option; });
      if (before == given.end())
        given.emplace_back(option, std::move(value));
      else
        add_occurrence(before->second, std::move(value));
    }
    words = result.unmatched();
  } catch (const cxxopts::exceptions::exception& error) {
    fail("command line: {}; see --help", error.what());
  }
  for (auto& [option, value] : given) {
    option->set = true;
    assign(*option, std::move(value));
  }
  if (words_ != nullptr) *words_ = std::move(words);
  const auto& trace = value<std::string>("profile-trace");
  if (value<bool>("profile") || !trace.empty()) start_program_profile(trace);
  return true;
}

Options::Values Options::values() const {
  Values values;
  for (const Option& option : options_)
    if (!option.left_out) values.emplace_back(option.name, text_of(option.value));
  return values;
}

std::vector<std::string> Options::restore(const Values& stored,
                                          const std::vector<std::string>& fixed) {
  std::vector<std::string> differences;
  std::vector<std::pair<Option*, Value>> taken;
  for (const auto& [name, text] : stored) {
    Option* option = search(name);
    check(option != nullptr, "--{}: stored with the value '{}', but unknown to {}; {}", name, text,
          program_, suggestion(name));
    Value value = parsed_like(option->value, name, text, option->allowed);
    if (!option->set) {
      taken.emplace_back(option, std::move(value));
      continue;
    }
    if (value == option->value) continue;
    check(
        std::find(fixed.begin(), fixed.end(), name) == fixed.end(),
        "--{}: {} from the command line, but it was {} from the start and cannot change; leave it "
        "out",
        name, text_of(option->value), text);
    differences.push_back(fmt::format(
        "--{}: {} from the command line is used, not the stored {}; leave it out to keep that",
        name, text_of(option->value), text));
  }
  for (auto& [option, value] : taken) assign(*option, std::move(value));
  return differences;
}

std::string Options::help() const {
  cxxopts::Options printer(program_, description_);
  printer.custom_help("[--name value]..." +
                      (words_ == nullptr ? "" : " " + words_placeholder_ + "..."));
  std::vector<std::string> headings;
  for (const Option& option : options_) {
    const bool flag = std::holds_alternative<bool>(option.value);
    std::vector<std::string> notes;
    if (const std::string limits = describe(option.allowed); !limits.empty())
      notes.push_back(limits);
    if (flag && std::get<bool>(option.initial))
      notes.push_back(fmt::format("default: true; --{}=false turns it off", option.name));
    else if (const std::string text = text_of(option.initial); !flag && !text.empty())
      notes.push_back("default: " + text);
    const std::string note = notes.empty() ? "" : fmt::format(" ({})", fmt::join(notes, "; "));
    std::shared_ptr<cxxopts::Value> kind = cxxopts::value<std::string>();
    if (flag) kind = cxxopts::value<bool>();
    printer.add_options(option.heading)(option.name, option.description + note, kind,
                                        placeholder(option.initial, option.allowed));
    if (option.heading != kCommon &&
        std::find(headings.begin(), headings.end(), option.heading) == headings.end())
      headings.push_back(option.heading);
  }
  printer.add_options(kCommon)("h,help", "print this text")("version", "print the version");
  headings.emplace_back(kCommon);
  return printer.help(headings) + "\n";
}

}  // namespace gs
