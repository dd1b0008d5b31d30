#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "framework/core/random.h"

namespace gs {

// Koehn, "Statistical significance tests for machine translation evaluation", EMNLP 2004: a test
// set is drawn anew, with replacement, many times over. Equal seeds draw equal sets, so that two
// systems meet the same sentences.
struct BootstrapConfig {
  int64_t samples = 1000;
  uint64_t seed = 12345;

  std::string signature() const;  // "bs:1000|seed:12345"
};

// The sentence, 0 to sentences - 1, that stands at `place` of a sample.
int64_t drawn_sentence(const BootstrapConfig& config, int64_t sample, int64_t place,
                       int64_t sentences);

// The score of each sample. Counts of sentences are added with +=, `score` is called on each sum.
template <typename Counts, typename Score>
std::vector<double> bootstrap_scores(const std::vector<Counts>& sentences, Score score,
                                     const BootstrapConfig& config = {}) {
  std::vector<double> scores;
  const auto size = static_cast<int64_t>(sentences.size());
  for (int64_t sample = 0; sample < config.samples; ++sample) {
    Counts sum;
    for (int64_t place = 0; place < size; ++place)
      sum += sentences[static_cast<size_t>(drawn_sentence(config, sample, place, size))];
    scores.push_back(score(sum));
  }
  return scores;
}

// Mean of the samples, and half of the width of the interval that holds 95 % of them: "mean +- half
// width", as sacreBLEU gives it. Needs at least one score.
struct ConfidenceInterval {
  double mean = 0;
  double low = 0, high = 0;  // the outermost 2.5 % on either side are left out
  double half_width() const { return (high - low) / 2; }
};
ConfidenceInterval confidence_interval(std::vector<double> scores);

// How a system compares with a baseline on the same samples.
struct PairedBootstrap {
  double difference = 0;  // on the test set itself: system minus baseline
  double p_value = 1;     // of a difference as large, either way, if they were equally good
  double wins = 0;        // share of the samples in which the system is better, 0 to 1
};
// `p_value` is sacreBLEU's: the share of samples, and one more, whose difference is farther from
// the samples' mean than the true one is from 0; here a system compared with itself has 1.
PairedBootstrap paired_bootstrap(double baseline_score, std::span<const double> baseline_samples,
                                 double system_score, std::span<const double> system_samples);

}  // namespace gs
