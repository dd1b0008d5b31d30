#include "framework/text/references.h"

#include "framework/core/error.h"

namespace gs {

void check_references(std::string_view operation, std::span<const std::string> hypotheses,
                      const References& references) {
  check(!references.empty(), "{}: there is no reference; give at least one", operation);
  for (const std::vector<std::string>& lines : references)
    check(hypotheses.size() == lines.size(),
          "{}: counts differ, got {} hypotheses and {} references; give one reference for each "
          "hypothesis",
          operation, hypotheses.size(), lines.size());
}

std::vector<std::string_view> references_of(const References& references, size_t sentence) {
  std::vector<std::string_view> lines;
  lines.reserve(references.size());
  for (const std::vector<std::string>& reference : references) lines.push_back(reference[sentence]);
  return lines;
}

}  // namespace gs
