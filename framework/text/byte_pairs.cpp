#include "framework/text/byte_pairs.h"

#include <algorithm>

#include "framework/core/error.h"
#include "framework/text/utf8.h"

namespace gs {
namespace {

constexpr std::string_view kEnd = "</w>", kSeparator = "@@", kByteOrderMark = "\xEF\xBB\xBF";
constexpr std::string_view kVersionMark = "#version", kBlanks = "\r\n ";

uint64_t pair_key(int32_t left, int32_t right) {
  return static_cast<uint64_t>(static_cast<uint32_t>(left)) << 32 | static_cast<uint32_t>(right);
}

// Takes the front line off `text`, and gives it without what subword-nmt strips.
std::string_view take_line(std::string_view& text) {
  const size_t end = text.find('\n');
  std::string_view line = text.substr(0, end);
  text.remove_prefix(end == std::string_view::npos ? text.size() : end + 1);
  const size_t begin = std::min(line.find_first_not_of(kBlanks), line.size());
  return line.substr(begin, line.find_last_not_of(kBlanks) + 1 - begin);
}

bool is_version_0_1(std::string_view line, std::string_view name) {
  const std::string_view version = line.substr(std::min(line.find(' '), line.size()));
  check(line.starts_with("#version: ") && (version == " 0.1" || version == " 0.2"),
        "byte_pairs: {}:1 names no known version, got '{}'; #version: 0.1 and 0.2 are read", name,
        line);
  return version == " 0.1";
}

}  // namespace

BytePairs BytePairs::parse(std::string_view codes, std::string_view name) {
  BytePairs pairs;
  if (codes.starts_with(kByteOrderMark)) codes.remove_prefix(kByteOrderMark.size());
  while (codes.ends_with('\n')) codes.remove_suffix(1);
  pairs.end_is_symbol_ = true;  // files of version 0.1 need not say so
  for (int64_t number = 1; !codes.empty(); ++number) {
    const std::string_view line = take_line(codes);
    const std::optional<int64_t> invalid = first_invalid_utf8(line);
    check(!invalid, "byte_pairs: {}:{} is not UTF-8, got a wrong byte at offset {}; convert it",
          name, number, invalid.value_or(0));
    if (number == 1 && line.starts_with(kVersionMark)) {
      pairs.end_is_symbol_ = is_version_0_1(line, name);
      continue;
    }
    const auto symbols = 1 + std::count(line.begin(), line.end(), ' ');
    const size_t space = line.find(' ');
    check(symbols == 2,
          "byte_pairs: {}:{} must hold two symbols with a space between, got {}; give a codes file "
          "of subword-nmt learn-bpe",
          name, number, line.empty() ? 0 : symbols);
    pairs.add(line.substr(0, space), line.substr(space + 1));
  }
  check(!pairs.merges_.empty(),
        "byte_pairs: {} holds no merge; give a codes file of subword-nmt learn-bpe", name);
  pairs.codes_.insert(0, pairs.end_is_symbol_ ? "#version: 0.1\n" : "#version: 0.2\n");
  return pairs;
}

int32_t BytePairs::id_of(const std::string& symbol) {
  return symbols_.emplace(symbol, static_cast<int32_t>(symbols_.size())).first->second;
}

// The first of equal merges counts.
void BytePairs::add(std::string_view left, std::string_view right) {
  const std::string first(left), second(right);
  const uint64_t key = pair_key(id_of(first), id_of(second));
  const auto rank = static_cast<int32_t>(merges_.size());
  if (merges_.emplace(key, Merge{rank, id_of(first + second)}).second)
    codes_ += first + ' ' + second + '\n';
}

std::vector<BytePairs::Symbol> BytePairs::symbols_of(std::string_view word) const {
  const auto found = [this](std::string_view symbol) {
    const auto place = symbols_.find(symbol);
    return place == symbols_.end() ? kNone : place->second;
  };
  std::vector<Symbol> symbols;
  size_t begin = 0;
  for (const std::string_view character : split_characters(word)) {
    symbols.push_back({found(character), begin, begin + character.size()});
    begin += character.size();
  }
  if (end_is_symbol_) {
    symbols.push_back({found(kEnd), begin, begin});
  } else {
    Symbol& last = symbols.back();
    last.id = found(std::string(word.substr(last.begin)).append(kEnd));
  }
  return symbols;
}

const BytePairs::Merge* BytePairs::merge_of(const Symbol& left, const Symbol& right) const {
  if (left.id == kNone || right.id == kNone) return nullptr;
  const auto found = merges_.find(pair_key(left.id, right.id));
  return found == merges_.end() ? nullptr : &found->second;
}

// The word's pieces with one space between.
std::string BytePairs::split(std::string_view word) const {
  std::vector<Symbol> symbols = symbols_of(word);
  while (true) {
    const Merge* best = nullptr;
    for (size_t i = 0; i + 1 < symbols.size(); ++i) {
      const Merge* merge = merge_of(symbols[i], symbols[i + 1]);
      if (merge != nullptr && (best == nullptr || merge->rank < best->rank)) best = merge;
    }
    if (best == nullptr) break;
    size_t kept = 0;
    for (size_t i = 0; i < symbols.size(); ++i, ++kept) {
      symbols[kept] = symbols[i];
      if (i + 1 == symbols.size() || merge_of(symbols[i], symbols[i + 1]) != best) continue;
      symbols[kept].id = best->merged;
      symbols[kept].end = symbols[++i].end;
    }
    symbols.resize(kept);
  }
  if (symbols.back().begin == symbols.back().end) symbols.pop_back();  // "</w>" alone
  std::string pieces;
  for (const Symbol& symbol : symbols) {
    if (!pieces.empty()) pieces.append(kSeparator) += ' ';
    pieces += word.substr(symbol.begin, symbol.end - symbol.begin);
  }
  if (word.substr(symbols.back().begin).ends_with(kSeparator))
    pieces.insert(pieces.size() - 1, std::string(kSeparator) + ' ');
  return pieces;
}

std::string BytePairs::apply(std::string_view line, TokenMap<std::string>& known) const {
  check_utf8("byte_pairs", line);
  const std::string normalized = normalize_spaces(line);
  std::string pieces;
  for (const std::string_view word : split_words(normalized)) {
    auto found = known.find(word);
    if (found == known.end()) found = known.emplace(word, split(word)).first;
    if (!pieces.empty()) pieces += ' ';
    pieces += found->second;
  }
  return pieces;
}

std::string BytePairs::apply(std::string_view line) const {
  TokenMap<std::string> known;
  return apply(line, known);
}

std::vector<std::string> BytePairs::apply_lines(std::span<const std::string> lines) const {
  TokenMap<std::string> known;
  std::vector<std::string> pieces;
  pieces.reserve(lines.size());
  for (const std::string& line : lines) pieces.push_back(apply(line, known));
  return pieces;
}

std::string BytePairs::join(std::string_view pieces) {
  std::string line;
  bool word_has_ended = false;
  for (std::string_view piece : split_words(pieces)) {
    if (word_has_ended) line += ' ';
    word_has_ended = !piece.ends_with(kSeparator);
    if (!word_has_ended) piece.remove_suffix(kSeparator.size());
    line += piece;
  }
  return line;
}

}  // namespace gs
