#include "framework/text/ngrams.h"

namespace gs {

NgramCounts count_ngrams(std::span<const std::string_view> units, int64_t order) {
  NgramCounts counts;
  const auto size = static_cast<size_t>(order);
  if (units.size() < size) return counts;
  counts.reserve(units.size() - size + 1);
  for (size_t first = 0; first + size <= units.size(); ++first) {
    const char* const begin = units[first].data();
    const std::string_view last = units[first + size - 1];
    ++counts[{begin, static_cast<size_t>(last.data() + last.size() - begin)}];
  }
  return counts;
}

}  // namespace gs
