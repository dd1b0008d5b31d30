#pragma once

#include <string>
#include <string_view>

namespace gs {

// How a line becomes the words that BLEU counts, under the names of sacreBLEU.
//   kNone "none"           words stand between spaces (see split_words): for text split already
//   k13a "13a"             NIST's mteval-v13a: ASCII punctuation apart; periods, commas and dashes
//                          stay inside numbers; four XML entities are read
//   kInternational "intl"  NIST's mteval-v14 --international-tokenization: all Unicode
//                          punctuation, but not between digits, and symbols apart
//   kCharacter "char"      each character that is no space
enum class BleuTokenizer { kNone, k13a, kInternational, kCharacter };

// "none", "13a", "intl" or "char"; others are refused.
BleuTokenizer parse_bleu_tokenizer(std::string_view name);
std::string_view name_of(BleuTokenizer tokenizer);

// The words of the line with one plain space between them. Bytes that are not UTF-8 are letters.
std::string tokenize_for_bleu(std::string_view line, BleuTokenizer tokenizer);

}  // namespace gs
