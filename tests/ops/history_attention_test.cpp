#include "framework/ops/history_attention.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "framework/ops/attention.h"
#include "framework/ops/join.h"
#include "framework/ops/slice.h"
#include "tests/support/instruction_sets.h"
#include "tests/support/numbers.h"
#include "tests/support/support.h"

namespace gs {
namespace {

using test::error_of;
using test::expect_near;
using test::random_tensor;
using testing::HasSubstr;

// Tokens of 1 to 5 rows each, and queries that see some row of every token.
template <typename T>
struct Case {
  Case(int64_t queries, int64_t tokens, int64_t width, int64_t value_width, int64_t heads)
      : query(random_tensor<T>({queries, heads * width}, 1)), heads(heads) {
    for (int64_t t = 0; t < tokens; ++t) {
      const auto seed = static_cast<uint64_t>(t);
      keys.push_back(random_tensor<T>({t * 7 % 5 + 1, heads * width}, 10 + seed));
      values.push_back(random_tensor<T>({t * 7 % 5 + 1, heads * value_width}, 100 + seed));
    }
    for (int64_t i = 0; i < queries * tokens; ++i) {
      const int64_t count = keys[static_cast<size_t>(i % tokens)].size(0);
      rows.push_back(static_cast<int32_t>(i * 31 % 11 % count));
    }
  }

  Tensor attention() const { return history_attention(query, keys, values, rows, heads); }

  // Each query alone over the rows that it sees, put together.
  Tensor reference() const {
    std::vector<Tensor> outputs;
    for (int64_t r = 0; r < query.size(0); ++r) {
      std::vector<Tensor> seen_keys, seen_values;
      for (size_t t = 0; t < keys.size(); ++t) {
        const int64_t row = rows[static_cast<size_t>(r) * keys.size() + t];
        seen_keys.push_back(slice(keys[t], 0, row, row + 1));
        seen_values.push_back(slice(values[t], 0, row, row + 1));
      }
      const std::vector<int32_t> one{0, 1}, all{0, static_cast<int32_t>(keys.size())};
      AttentionOptions options;
      options.heads = heads;
      outputs.push_back(packed_attention(slice(query, 0, r, r + 1), one, concat(seen_keys),
                                         concat(seen_values), all, options)
                            .output);
    }
    return concat(outputs);
  }

  Tensor query;
  int64_t heads;
  std::vector<Tensor> keys, values;
  std::vector<int32_t> rows;
};

TEST(HistoryAttention, AgreesWithPackedAttentionOverTheRowsSeen) {
  test::for_each_instruction_set([] {
    for (const int64_t tokens : {1, 2, 3, 4, 5, 17, 33}) {
      for (const int64_t width : {1, 5, 16, 20, 32}) {
        const Case<double> exact(3, tokens, width, width + 1, 3);
        expect_near(exact.attention(), exact.reference().values<double>(), 1e-12);
        const Case<float> single(7, tokens, width, width, 2);
        expect_near(single.attention(), single.reference().values<double>(), 2e-6);
      }
    }
  });
}

TEST(HistoryAttention, ResultsDoNotDependOnTheirBatch) {
  const Case<float> all(300, 9, 32, 32, 4);
  const std::vector<float> together = all.attention().values<float>();
  for (const int64_t r : {0, 1, 150, 299}) {
    const std::span<const int32_t> rows =
        std::span(all.rows).subspan(static_cast<size_t>(9 * r), 9);
    const std::vector<float> alone =
        history_attention(slice(all.query, 0, r, r + 1), all.keys, all.values, rows, 4)
            .values<float>();
    EXPECT_EQ(alone,
              std::vector<float>(together.begin() + r * 128, together.begin() + (r + 1) * 128));
  }
}

TEST(HistoryAttention, NaNShows) {
  Case<float> nan(2, 3, 4, 4, 1);
  nan.rows = {0, 0, 0, 0, 1, 0};
  std::vector<float> values = nan.keys[1].values<float>();
  values[2] = NAN;
  nan.keys[1] = Tensor::of<float>(nan.keys[1].shape(), values);
  const std::vector<float> y = nan.attention().values<float>();
  for (size_t i = 0; i < 8; ++i) EXPECT_EQ(std::isnan(y[i]), i < 4);
}

TEST(HistoryAttention, TakesNoQueries) {
  const Case<float> none(0, 2, 4, 3, 2);
  EXPECT_EQ(none.attention().shape(), Shape({0, 6}));
}

TEST(HistoryAttention, RefusesWhatDoesNotFit) {
  const auto error = [](auto change) {
    Case<float> one(2, 3, 4, 4, 2);
    change(one);
    return error_of([&] { one.attention(); });
  };
  EXPECT_EQ(error([](auto& c) { c.keys.clear(); }),
            "history_attention: needs keys and values of at least one token, got 0 and 3");
  EXPECT_EQ(error([](auto& c) { c.heads = 3; }),
            "history_attention: heads must divide the widths, got 3 heads for widths 8 and 8");
  EXPECT_EQ(error([](auto& c) { c.rows.pop_back(); }),
            "history_attention: needs a row of each of 3 tokens for each of 2 queries, got 5");
  EXPECT_EQ(error([](auto& c) { c.rows[4] = 3; }),
            "history_attention: token 1 has 3 rows, got row 3 for query 1");
  EXPECT_THAT(error([](auto& c) { c.rows[0] = -1; }), HasSubstr("got row -1 for query 0"));
  EXPECT_EQ(error([](auto& c) {
              c.keys[1] = random_tensor<float>({3, 6}, 1);
            }),
            "history_attention: keys must be (rows, 8) and values (rows, 8), got [3, 6] and [3, 8] "
            "for token 1");
  EXPECT_THAT(error([](auto& c) {
                c.values[2] = random_tensor<double>({5, 8}, 1);
              }),
              HasSubstr("float64"));
  EXPECT_THAT(error([](auto& c) { c.query = random_tensor<float>({2}, 1); }),
              HasSubstr("the query must be floating and (R, C), got [2] float32"));
  EXPECT_EQ(error([](auto& c) { c.values[0].set_needs_grad(); }),
            "history_attention: has no gradient, and an input needs one; detach it first");
}

}  // namespace
}  // namespace gs
