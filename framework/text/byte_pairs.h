#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "framework/text/token_map.h"

namespace gs {

// Splits words by merges of symbols that were learned before: Sennrich, Haddow and Birch, "Neural
// Machine Translation of Rare Words with Subword Units", ACL 2016. A word starts as its code points
// with "</w>" at its end; the merge that stands first in the list is done wherever it fits, from
// left to right, until none fits. Every piece but a word's last ends in "@@".
// The pieces are those of `subword-nmt apply-bpe`, but for a last piece that ends in "@@" itself:
// its last "@" becomes a piece of its own, so that join() gives back every word.
class BytePairs {
 public:
  // `codes` is the text of a file of subword-nmt's learn-bpe, version 0.1 or 0.2: a merge a line,
  // two symbols with a space between. `name` stands for it in errors, which give the line.
  static BytePairs parse(std::string_view codes, std::string_view name);

  int64_t merges() const { return static_cast<int64_t>(merges_.size()); }
  // The merges as parse() takes them.
  const std::string& codes() const { return codes_; }

  // The pieces of a line's words (normalize_spaces, split_words) with one space between. A line
  // that is not UTF-8 is refused with the byte's offset.
  std::string apply(std::string_view line) const;
  // Of many lines, where a word is split once.
  std::vector<std::string> apply_lines(std::span<const std::string> lines) const;

  // The way back: the line of words whose pieces are given with spaces between.
  static std::string join(std::string_view pieces);

  bool operator==(const BytePairs& other) const { return codes_ == other.codes_; }

 private:
  struct Symbol {
    int32_t id;         // kNone where no merge knows it
    size_t begin, end;  // its bytes in the word, without "</w>"
  };
  struct Merge {
    int32_t rank, merged;
  };
  static constexpr int32_t kNone = -1;

  int32_t id_of(const std::string& symbol);
  void add(std::string_view left, std::string_view right);
  std::vector<Symbol> symbols_of(std::string_view word) const;
  const Merge* merge_of(const Symbol& left, const Symbol& right) const;
  std::string split(std::string_view word) const;
  std::string apply(std::string_view line, TokenMap<std::string>& known) const;

  bool end_is_symbol_ = false;  // version 0.1: "</w>" starts as a symbol of its own
  std::string codes_;
  TokenMap<int32_t> symbols_;
  std::unordered_map<uint64_t, Merge> merges_;  // by the ids of left and right
};

}  // namespace gs
