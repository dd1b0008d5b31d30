#include "models/data_check.h"

#include <algorithm>

#include "datasets/fitting_pairs.h"
#include "framework/core/error.h"

namespace gs {
namespace {

std::string statistics_row(const std::string& name, const Sequences& source,
                           const Sequences& target) {
  std::string row = fmt::format("{:<20} {:>9}", name, source.count());
  for (const Sequences* side : {&source, &target}) {
    const auto tokens = static_cast<int64_t>(side->tokens.size());
    const auto unknown = std::count(side->tokens.begin(), side->tokens.end(), kUnknownId);
    int64_t longest = 0;
    for (int64_t i = 0; i < side->count(); ++i) longest = std::max(longest, side->length(i));
    const auto share = [](int64_t part, int64_t whole) {
      return static_cast<double>(part) / static_cast<double>(std::max<int64_t>(whole, 1));
    };
    row += fmt::format(" | {:>10} {:>6.1f} {:>7} {:>7.2f} %", tokens, share(tokens, side->count()),
                       longest, 100 * share(unknown, tokens));
  }
  return row + "\n";
}

void check_test_file(const TranslationSplit& test, const Sequences& source, int64_t limit) {
  int64_t too_long = 0, first = -1, longest = 0;
  for (int64_t i = 0; i < source.count(); ++i) {
    if (source.length(i) <= limit) continue;
    if (too_long++ == 0) first = i;
    longest = std::max(longest, source.length(i));
  }
  if (too_long == 0) return;
  fail(
      "data: the test {} has {} source sentences of more than {} tokens, got {} in {}; give "
      "--maximum-length {} or more",
      test.name, too_long, limit, source.length(first), test.place(first), longest + 1);
}

}  // namespace

void fit_to_model(TranslationData& data, const Translator& translator) {
  const int64_t longest = translator.longest_line();
  const auto fit = [&](TranslationSplit& split, const Sequences& source, const Sequences& target) {
    const FittingPairs fitting = fitting_pairs(source, target, longest);
    if (fitting.left_out.empty()) return;
    const std::string note = long_pairs_note(split, fitting, longest);
    check(!fitting.pairs.empty(), "data: no pair fits; {}", note);
    data.notes.push_back(note);
    keep_pairs(split, fitting.pairs);
  };
  fit(data.valid, translator.source_tokenizer().encode_lines(data.valid.source),
      translator.target_tokenizer().encode_lines(data.valid.target));
  for (TranslationSplit& test : data.tests) {
    const Sequences source = translator.source_tokenizer().encode_lines(test.source);
    if (test.whole_file)
      check_test_file(test, source, longest);
    else
      fit(test, source, source);  // a reference may have any length
  }
}

std::string data_statistics(const TranslationData& data, const Translator& translator) {
  std::string table = fmt::format("{:<20} {:>9}", "split", "pairs");
  for (const char* side : {"source", "target"})
    table += fmt::format(" | {:>10} {:>6} {:>7} {:>9}", side, "mean", "longest", "unknown");
  table += "\n";
  const auto source_of = [&](const TranslationSplit& split) {
    return translator.source_tokenizer().encode_lines(split.source);
  };
  const auto target_of = [&](const TranslationSplit& split) {
    return translator.target_tokenizer().encode_lines(split.target);
  };
  const FittingPairs train =
      fitting_pairs(source_of(data.train), target_of(data.train), translator.longest_line());
  table += statistics_row(data.train.name, train.source, train.target);
  table += statistics_row(data.valid.name, source_of(data.valid), target_of(data.valid));
  for (const TranslationSplit& test : data.tests)
    table += statistics_row(test.name, source_of(test), target_of(test));
  return table;
}

}  // namespace gs
