#include "framework/text/bootstrap.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "framework/core/error.h"

namespace gs {

std::string BootstrapConfig::signature() const {
  return fmt::format("bs:{}|seed:{}", samples, seed);
}

// The high half of a product maps 32 random bits to 0 .. sentences - 1; what that favours is below
// one part in 2^32 / sentences.
int64_t drawn_sentence(const BootstrapConfig& config, int64_t sample, int64_t place,
                       int64_t sentences) {
  const RandomStream stream{.seed = config.seed, .number = static_cast<uint64_t>(sample)};
  const auto index = static_cast<uint64_t>(place);
  const uint64_t word = stream.words(index / 4)[index % 4];
  return static_cast<int64_t>(word * static_cast<uint64_t>(sentences) >> 32);
}

ConfidenceInterval confidence_interval(std::vector<double> scores) {
  check(!scores.empty(), "confidence_interval: there are no scores; draw at least one sample");
  std::sort(scores.begin(), scores.end());
  const size_t outside = scores.size() / 40;
  const double sum = std::accumulate(scores.begin(), scores.end(), 0.0);
  return {.mean = sum / static_cast<double>(scores.size()),
          .low = scores[outside],
          .high = scores[scores.size() - 1 - outside]};
}

PairedBootstrap paired_bootstrap(double baseline_score, std::span<const double> baseline_samples,
                                 double system_score, std::span<const double> system_samples) {
  check(baseline_samples.size() == system_samples.size() && !system_samples.empty(),
        "paired_bootstrap: needs as many samples of both systems, got {} and {}; draw them with "
        "the same configuration",
        baseline_samples.size(), system_samples.size());
  const auto count = static_cast<double>(system_samples.size());
  std::vector<double> distances;
  int64_t wins = 0;
  for (size_t i = 0; i < system_samples.size(); ++i) {
    distances.push_back(std::abs(system_samples[i] - baseline_samples[i]));
    if (system_samples[i] > baseline_samples[i]) ++wins;
  }
  const double mean = std::accumulate(distances.begin(), distances.end(), 0.0) / count;
  PairedBootstrap result{.difference = system_score - baseline_score};
  const auto farther = std::count_if(distances.begin(), distances.end(), [&](double distance) {
    return distance - mean >= std::abs(result.difference);
  });
  result.p_value = std::min(1.0, static_cast<double>(farther + 1) / (count + 1));
  result.wins = static_cast<double>(wins) / count;
  return result;
}

}  // namespace gs
