#include "datasets/fitting_pairs.h"

#include <algorithm>
#include <utility>

#include "framework/core/error.h"

namespace gs {

FittingPairs fitting_pairs(Sequences source, Sequences target, int64_t longest) {
  check(source.count() == target.count(),
        "fitting pairs: counts differ, got {} sources and {} targets; give one target for each "
        "source",
        source.count(), target.count());
  FittingPairs fitting;
  for (int64_t pair = 0; pair < source.count(); ++pair) {
    const int64_t source_tokens = source.length(pair), target_tokens = target.length(pair);
    if (std::max(source_tokens, target_tokens) <= longest)
      fitting.pairs.push_back(pair);
    else
      fitting.left_out.push_back({pair, source_tokens, target_tokens});
  }
  if (fitting.left_out.empty()) {
    fitting.source = std::move(source);
    fitting.target = std::move(target);
    return fitting;
  }
  for (const int64_t pair : fitting.pairs) {
    fitting.source.append(source[pair]);
    fitting.target.append(target[pair]);
  }
  return fitting;
}

std::string long_pairs_note(const TranslationSplit& split, const FittingPairs& fitting,
                            int64_t longest) {
  constexpr size_t kExamples = 5;
  const std::vector<LongPair>& left_out = fitting.left_out;
  std::string text = fmt::format(
      "{}: {} {} left out, longer than {} tokens (--maximum-length counts an end mark more):",
      split.name, left_out.size(), left_out.size() == 1 ? "pair is" : "pairs are", longest);
  for (size_t i = 0; i < std::min(kExamples, left_out.size()); ++i) {
    text += fmt::format("{} {} ({} and {})", i == 0 ? "" : ",", split.place(left_out[i].pair),
                        left_out[i].source_tokens, left_out[i].target_tokens);
  }
  return text + (left_out.size() > kExamples ? ", ..." : "");
}

void keep_pairs(TranslationSplit& split, const std::vector<int64_t>& pairs) {
  size_t kept = 0;
  for (const int64_t pair : pairs) {
    const auto from = static_cast<size_t>(pair);
    if (from != kept) {
      split.source[kept] = std::move(split.source[from]);
      split.target[kept] = std::move(split.target[from]);
      if (!split.lines.empty()) split.lines[kept] = split.lines[from];
    }
    ++kept;
  }
  split.source.resize(kept);
  split.target.resize(kept);
  if (!split.lines.empty()) split.lines.resize(kept);
}

}  // namespace gs
