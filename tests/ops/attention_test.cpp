#include "framework/ops/attention.h"

#include <gtest/gtest.h>

#include <cmath>

#include "framework/core/parallel.h"
#include "tests/support/instruction_sets.h"
#include "tests/support/numbers.h"

namespace gs {
namespace {

using test::expect_near;
using test::random_tensor;

constexpr auto dense = scaled_dot_product_attention;

// A random dense problem and its answer, in double precision and one weight at a time.
struct Problem {
  int64_t batch, queries, keys, heads, width, value_width;
  AttentionOptions options;
  std::vector<bool> mask;      // (B, H, T, S) or empty
  std::vector<double> scores;  // (B, H, T, S) or empty

  bool may_attend(int64_t b, int64_t i, int64_t j, size_t element) const {
    if (options.causal && j > keys - queries + i) return false;
    if (!options.key_lengths.empty() && j >= options.key_lengths[static_cast<size_t>(b)])
      return false;
    return mask.empty() || mask[element];
  }
  Tensor query(uint64_t seed = 1) const {
    return random_tensor<double>({batch, queries, heads * width}, seed);
  }
  Tensor key(uint64_t seed = 2) const {
    return random_tensor<double>({batch, keys, heads * width}, seed);
  }
  Tensor value(uint64_t seed = 3) const {
    return random_tensor<double>({batch, keys, heads * value_width}, seed);
  }
};

struct Answer {
  std::vector<double> output, weights;
};

Answer answer_of(const Problem& p) {
  const std::vector<double> q = p.query().values<double>(), k = p.key().values<double>(),
                            v = p.value().values<double>();
  const double scale =
      p.options.scale != 0 ? p.options.scale : 1 / std::sqrt(static_cast<double>(p.width));
  Answer answer;
  answer.output.resize(static_cast<size_t>(p.batch * p.queries * p.heads * p.value_width));
  const auto at = [](const std::vector<double>& x, int64_t i) { return x[static_cast<size_t>(i)]; };
  for (int64_t b = 0; b < p.batch; ++b) {
    for (int64_t h = 0; h < p.heads; ++h) {
      for (int64_t i = 0; i < p.queries; ++i) {
        std::vector<double> row(static_cast<size_t>(p.keys));
        double sum = 0;
        for (int64_t j = 0; j < p.keys; ++j) {
          const size_t element = answer.weights.size() + static_cast<size_t>(j);
          if (!p.may_attend(b, i, j, element)) continue;
          double score = 0;
          for (int64_t c = 0; c < p.width; ++c)
            score += at(q, ((b * p.queries + i) * p.heads + h) * p.width + c) *
                     at(k, ((b * p.keys + j) * p.heads + h) * p.width + c);
          score = score * scale + (p.scores.empty() ? 0 : p.scores[element]);
          sum += row[static_cast<size_t>(j)] = std::exp(score);
        }
        for (double& weight : row) weight = sum > 0 ? weight / sum : 0;
        for (int64_t c = 0; c < p.value_width; ++c) {
          for (int64_t j = 0; j < p.keys; ++j)
            answer.output[static_cast<size_t>(((b * p.queries + i) * p.heads + h) * p.value_width +
                                              c)] +=
                at(row, j) * at(v, ((b * p.keys + j) * p.heads + h) * p.value_width + c);
        }
        answer.weights.insert(answer.weights.end(), row.begin(), row.end());
      }
    }
  }
  return answer;
}

std::vector<Tensor> cast_all(const std::vector<Tensor>& tensors, DType dtype) {
  std::vector<Tensor> result;
  for (const Tensor& tensor : tensors) result.push_back(Tensor(tensor.value().to(dtype)));
  return result;
}

// Values against the answer in both types, float32 gradients against float64 ones.
void expect_answer(Problem p) {
  const Answer answer = answer_of(p);
  std::vector<std::vector<double>> gradients[2];
  for (const DType dtype : {kFloat64, kFloat32}) {
    std::vector<Tensor> in = cast_all({p.query(), p.key(), p.value()}, dtype);
    for (Tensor& tensor : in) tensor.set_needs_grad();
    AttentionOptions options = p.options;
    const Shape full{p.batch, p.heads, p.queries, p.keys};
    if (!p.mask.empty()) options.mask = Tensor::of<bool>(full, p.mask);
    if (!p.scores.empty())
      options.scores = Tensor(Array::of<double>(full, p.scores).to(dtype)).set_needs_grad();
    options.return_weights = true;
    const Attention y = dense(in[0], in[1], in[2], options);
    const double tolerance = dtype == kFloat32 ? 1e-5 : 1e-13;
    EXPECT_EQ(y.output.shape(), (Shape{p.batch, p.queries, p.heads * p.value_width}));
    EXPECT_EQ(y.weights.shape(), full);
    expect_near(y.output, answer.output, tolerance);
    expect_near(y.weights, answer.weights, tolerance);
    // Without gradients and weights nothing is kept, and the output is the same.
    options.return_weights = false;
    const NoGrad guard;
    EXPECT_EQ(dense(in[0], in[1], in[2], options).output.values<double>(),
              y.output.values<double>());
    y.output.backward(Tensor(random_tensor<double>(y.output.shape(), 4).value().to(dtype)));
    if (!p.scores.empty()) in.push_back(options.scores);
    for (const Tensor& tensor : in)
      gradients[dtype == kFloat32].push_back(tensor.gradient().values<double>());
  }
  for (size_t i = 0; i < gradients[0].size(); ++i) {
    for (size_t j = 0; j < gradients[0][i].size(); ++j)
      ASSERT_NEAR(gradients[1][i][j], gradients[0][i][j],
                  2e-5 * std::max(1.0, std::abs(gradients[0][i][j])));
  }
}

TEST(Attention, AgreesWithTheFormula) {
  test::for_each_instruction_set([] {
    for (const int64_t length : {1, 2, 3, 4, 5, 9, 16, 21, 34, 53, 100})
      expect_answer({2, length, length, 2, length % 7 + 1, length % 5 + 2, {.heads = 2}, {}, {}});
    for (const int64_t width : {1, 2, 4, 7, 8, 15, 16, 19, 32, 40, 64})
      expect_answer({1, 3, 6, 3, width, width + 1, {.heads = 3, .causal = true}, {}, {}});
    expect_answer({3, 1, 101, 2, 16, 16, {.heads = 2, .scale = 0.7}, {}, {}});
    expect_answer({1, 70, 2, 1, 5, 33, {.causal = true}, {}, {}});
  });
}

TEST(Attention, MasksScoresAndLengthsAllCount) {
  test::for_each_instruction_set([] {
    for (const int64_t keys : {1, 4, 7, 13, 18, 37}) {
      for (const bool causal : {false, true}) {
        Problem p{3, 5, keys, 2, 3, 6, {.heads = 2, .causal = causal}, {}, {}};
        p.options.key_lengths = {keys, 0, (keys + 1) / 2};
        p.scores = test::random_numbers(3 * 2 * 5 * keys, 5);
        for (const double number : test::random_numbers(3 * 2 * 5 * keys, 6))
          p.mask.push_back(number > -1);
        expect_answer(p);
      }
    }
  });
}

TEST(Attention, MasksAndScoresBroadcast) {
  const Tensor q = random_tensor<float>({2, 3, 4}, 1), k = random_tensor<float>({2, 5, 4}, 2);
  const Shape full{2, 2, 3, 5};
  for (const Shape& shape : {Shape{}, Shape{5}, Shape{3, 1}, Shape{2, 1, 5}, Shape{2, 1, 1, 5},
                             Shape{1, 2, 3, 1}, Shape{2, 2, 3, 5}}) {
    std::vector<float> scores, wide_scores;
    std::vector<bool> mask, wide_mask;
    for (const double number : test::random_numbers(shape.elements(), 9)) {
      scores.push_back(static_cast<float>(number));
      mask.push_back(number > -0.5);
    }
    for (int64_t element = 0; element < 60; ++element) {
      int64_t source = 0, rest = element, stride = 1;
      for (int i = 1; i <= 4; ++i, rest /= full[5 - i]) {
        if (i > shape.rank()) break;
        const int64_t size = shape[shape.rank() - i];
        source += size == 1 ? 0 : rest % full[4 - i] * stride;
        stride *= size;
      }
      wide_scores.push_back(scores[static_cast<size_t>(source)]);
      wide_mask.push_back(mask[static_cast<size_t>(source)]);
    }
    const auto run = [&](Tensor s, const Tensor& m) {
      Tensor query = Tensor(q.value()).set_needs_grad();
      s.set_needs_grad();
      const Tensor y = dense(query, k, k, {.heads = 2, .mask = m, .scores = s}).output;
      y.backward(random_tensor<float>(y.shape(), 3));
      EXPECT_EQ(s.gradient().shape(), s.shape());
      return std::pair(y.values<float>(), query.gradient().values<float>());
    };
    EXPECT_EQ(run(Tensor::of<float>(shape, scores), Tensor::of<bool>(shape, mask)),
              run(Tensor::of<float>(full, wide_scores), Tensor::of<bool>(full, wide_mask)))
        << shape.text();
  }
}

// Values one-hot, so that the output is the dropped weights.
TEST(Attention, DropoutZeroesWeightsOneByOne) {
  const Tensor query(Array::zeros({1, 50, 40}, kFloat32));
  std::vector<float> identity(1600);
  for (size_t i = 0; i < 1600; i += 41) identity[i] = 1;
  const Tensor value = Tensor::of<float>({1, 40, 40}, identity);
  Generator generator(7);
  const AttentionOptions options{.dropout = 0.25, .training = true, .generator = &generator};
  int64_t dropped = 0;
  for (const float weight : dense(query, value, value, options).output.values<float>()) {
    EXPECT_TRUE(weight == 0 || std::abs(weight - 1 / 30.0f) < 1e-7f) << weight;
    dropped += weight == 0;
  }
  EXPECT_NEAR(static_cast<double>(dropped), 500, 60);  // three standard deviations
}

// e^-100 is subnormal in float32: whether it counts as 0 must not show, nor may -infinity become
// more than 0. The second row has nothing but blocked keys and one far below them.
TEST(Attention, FarLowerScoresHaveNoWeight) {
  test::for_each_instruction_set([] {
    const Tensor zero(Array::zeros({1, 2, 1}, kFloat32)), keys(Array::zeros({1, 20, 1}, kFloat32));
    std::vector<float> scores(40, -INFINITY);
    scores[0] = 50, scores[1] = 50 - 86, scores[2] = 50 - 100, scores[3] = -3e38f;
    scores[39] = -1e30f;
    const Tensor weights =
        dense(zero, keys, keys,
              {.scores = Tensor::of<float>({2, 20}, scores), .return_weights = true})
            .weights;
    const std::vector<float> values = weights.values<float>();
    EXPECT_EQ(values[0], 1);
    EXPECT_NEAR(values[1], std::exp(-86.0), 1e-43);
    EXPECT_LT(values[2], 1e-43f);
    for (size_t j = 3; j < 39; ++j) EXPECT_EQ(values[j], 0) << j;
    EXPECT_EQ(values[39], 1);
  });
}

TEST(Attention, NotANumberSpreadsOnlyWhereItIsSeen) {
  test::for_each_instruction_set([] {
    std::vector<float> values = random_tensor<float>({1, 6, 3}, 1).values<float>();
    for (const float bad : {NAN, INFINITY}) {
      for (size_t i = 12; i < 15; ++i) values[i] = bad;  // row 4
      const Tensor clean = random_tensor<float>({1, 6, 3}, 1);
      Tensor q = random_tensor<float>({1, 6, 3}, 2).set_needs_grad();
      Tensor x = Tensor::of<float>({1, 6, 3}, values);
      Tensor y = dense(q, x, x, {.causal = true}).output;
      const std::vector<float> expected =
          dense(q, clean, clean, {.causal = true}).output.values<float>();
      for (size_t i = 0; i < 12; ++i) EXPECT_EQ(y.values<float>()[i], expected[i]);
      for (size_t i = 12; i < 18; ++i) EXPECT_TRUE(std::isnan(y.values<float>()[i]));
      y.backward(Tensor(Array::full(y.shape(), 1, kFloat32)));
      for (size_t i = 0; i < 12; ++i) EXPECT_TRUE(std::isfinite(q.gradient().values<float>()[i]));
    }
  });
}

TEST(Attention, ResultsAreTheSameForAnyNumberOfThreads) {
  const int before = threads();
  std::vector<float> first[2];
  for (const int count : {1, 2, 3}) {
    set_threads(count);
    Tensor x = random_tensor<float>({40, 30, 64}, 1).set_needs_grad();
    Generator generator(5);
    const Tensor y =
        dense(
            x, x, x,
            {.heads = 4, .causal = true, .dropout = 0.1, .training = true, .generator = &generator})
            .output;
    y.backward(random_tensor<float>(y.shape(), 2));
    if (count == 1) first[0] = y.values<float>(), first[1] = x.gradient().values<float>();
    EXPECT_EQ(y.values<float>(), first[0]);
    EXPECT_EQ(x.gradient().values<float>(), first[1]);
  }
  set_threads(before);
}

}  // namespace
}  // namespace gs
