#include "framework/text/bootstrap.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <numeric>

#include "tests/support/support.h"

namespace gs {
namespace {

using testing::HasSubstr;

struct Sum {
  int64_t value = 0, count = 0;
  Sum& operator+=(const Sum& other) {
    value += other.value;
    count += other.count;
    return *this;
  }
};

double mean_of(const Sum& sum) {
  return static_cast<double>(sum.value) / static_cast<double>(sum.count);
}

std::vector<Sum> sentences(const std::vector<int64_t>& values) {
  std::vector<Sum> sums;
  for (const int64_t value : values) sums.push_back({value, 1});
  return sums;
}

TEST(Bootstrap, DrawsEverySentenceEquallyOftenAndAlikeForEqualSeeds) {
  const BootstrapConfig config{.samples = 1000, .seed = 5};
  std::vector<int64_t> times(7);
  bool other = false;
  for (int64_t sample = 0; sample < 1000; ++sample) {
    for (int64_t place = 0; place < 7; ++place) {
      const int64_t drawn = drawn_sentence(config, sample, place, 7);
      ASSERT_GE(drawn, 0);
      ASSERT_LT(drawn, 7);
      ++times[static_cast<size_t>(drawn)];
      EXPECT_EQ(drawn, drawn_sentence(config, sample, place, 7));
      other |= drawn != drawn_sentence({.samples = 1000, .seed = 6}, sample, place, 7);
    }
  }
  // Chi-square with 6 degrees of freedom: above 22.5 once in a thousand.
  double chi = 0;
  for (const int64_t count : times) chi += std::pow(static_cast<double>(count) - 1000, 2) / 1000;
  EXPECT_LT(chi, 22.5);
  EXPECT_TRUE(other);
  EXPECT_EQ(config.signature(), "bs:1000|seed:5");
}

// The mean of n draws has the variance of the values, divided by n.
TEST(Bootstrap, SpreadsAsTheMeanOfDrawsDoes) {
  std::vector<int64_t> values(200);
  std::iota(values.begin(), values.end(), 0);
  const std::vector<double> scores = bootstrap_scores(sentences(values), mean_of);
  ASSERT_EQ(scores.size(), 1000u);
  const double deviation = std::sqrt((200.0 * 200.0 - 1) / 12 / 200);
  const ConfidenceInterval interval = confidence_interval(scores);
  EXPECT_NEAR(interval.mean, 99.5, 4 * deviation / std::sqrt(1000));
  EXPECT_NEAR(interval.half_width(), 1.96 * deviation, 0.15 * deviation * 1.96);
  EXPECT_EQ(bootstrap_scores(sentences({3}), mean_of), std::vector<double>(1000, 3.0));
}

// sacreBLEU's bounds: of 1000 sorted scores those with the indices 25 and 974.
TEST(Bootstrap, LeavesOutAFortiethOnEitherSide) {
  std::vector<double> scores(1000);
  std::iota(scores.rbegin(), scores.rend(), 0.0);
  const ConfidenceInterval interval = confidence_interval(scores);
  EXPECT_EQ(interval.low, 25);
  EXPECT_EQ(interval.high, 974);
  EXPECT_EQ(interval.half_width(), 474.5);
  EXPECT_EQ(interval.mean, 499.5);
  const ConfidenceInterval one = confidence_interval({4});
  EXPECT_EQ(one.mean, 4);
  EXPECT_EQ(one.half_width(), 0);
}

TEST(Bootstrap, PairedComparison) {
  // Distances 1, 0, 2, 1 around their mean 1: 0, -1, 1, 0. One of four is 0.5 or more.
  const std::vector<double> baseline{10, 10, 10, 10}, system{11, 10, 12, 9};
  const PairedBootstrap paired = paired_bootstrap(10, baseline, 10.5, system);
  EXPECT_EQ(paired.difference, 0.5);
  EXPECT_EQ(paired.p_value, 2.0 / 5);
  EXPECT_EQ(paired.wins, 0.5);
  const PairedBootstrap reversed = paired_bootstrap(10.5, system, 10, baseline);
  EXPECT_EQ(reversed.difference, -0.5);
  EXPECT_EQ(reversed.p_value, 2.0 / 5);
  EXPECT_EQ(reversed.wins, 0.25);
  const PairedBootstrap same = paired_bootstrap(10.5, system, 10.5, system);
  EXPECT_EQ(same.p_value, 1);
  EXPECT_EQ(same.wins, 0);
}

// A system that is better in every sentence by about the same is found; noise is not.
TEST(Bootstrap, TellsADifferenceFromNoise) {
  std::vector<int64_t> base, better, noisy;
  for (int64_t i = 0; i < 300; ++i) {
    base.push_back(i % 17);
    better.push_back(i % 17 + 1 + i % 2);
    noisy.push_back(i % 17 + (i % 2 == 0 ? 1 : -1));
  }
  const auto compare = [&](const std::vector<int64_t>& values) {
    const auto truth = [](const std::vector<int64_t>& v) {
      return static_cast<double>(std::accumulate(v.begin(), v.end(), int64_t{0})) / 300;
    };
    return paired_bootstrap(truth(base), bootstrap_scores(sentences(base), mean_of), truth(values),
                            bootstrap_scores(sentences(values), mean_of));
  };
  EXPECT_EQ(compare(better).p_value, 1.0 / 1001);
  EXPECT_EQ(compare(better).wins, 1);
  EXPECT_GT(compare(noisy).p_value, 0.2);
  EXPECT_NEAR(compare(noisy).wins, 0.5, 0.1);
}

TEST(Bootstrap, RefusesNothingAndUnequalNumbers) {
  EXPECT_THAT(test::error_of([] { confidence_interval({}); }), HasSubstr("there are no scores"));
  const std::vector<double> one{1}, two{1, 2};
  EXPECT_THAT(test::error_of([&] { paired_bootstrap(1, one, 1, two); }), HasSubstr("got 1 and 2"));
  EXPECT_THAT(test::error_of([] { paired_bootstrap(1, {}, 1, {}); }), HasSubstr("got 0 and 0"));
}

}  // namespace
}  // namespace gs
