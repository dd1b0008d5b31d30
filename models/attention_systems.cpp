#include "models/attention_systems.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "framework/ops/arithmetic.h"
#include "framework/ops/cast.h"
#include "framework/ops/comparison.h"
#include "framework/ops/creation.h"
#include "framework/ops/matmul.h"
#include "framework/ops/permute.h"
#include "framework/ops/reshape.h"
#include "framework/ops/softmax.h"
#include "framework/ops/where.h"

namespace gs {
namespace {

// Before anything is allocated, and before anything divides by the number of heads.
int64_t checked_width(const char* name, int64_t width, int64_t heads) {
  check(heads >= 1 && width >= 1 && width % heads == 0,
        "{}: the width must be a multiple of the heads, got width {} and {} heads", name, width,
        heads);
  return width;
}

void check_inputs(const char* name, const Tensor& query, const Tensor& key, const Tensor& value) {
  check(query.rank() == 3 && key.rank() == 3 && value.rank() == 3,
        "{}: query, key and value must be (B, T, C), got {}, {} and {}", name, query.shape(),
        key.shape(), value.shape());
  check(query.size(0) == key.size(0) && query.size(0) == value.size(0),
        "{}: query, key and value must have the same batch size, got {}, {} and {}", name,
        query.size(0), key.size(0), value.size(0));
  check(key.size(1) == value.size(1),
        "{}: key and value must have the same length, got {} and {}; is the query in the place of "
        "one of them?",
        name, key.size(1), value.size(1));
}

// Attention of projected query (B, T, C), key and value (B, S, C), without output projection.
Attention attend(const Tensor& query, const Tensor& key, const Tensor& value, int64_t heads,
                 const Tensor& blocked) {
  const Tensor q = split_heads(query, heads);                     // (B, H, T, D)
  const Tensor k = split_heads(key, heads);                       // (B, H, S, D)
  const Tensor v = split_heads(value, heads);                     // (B, H, S, D)
  const double root = std::sqrt(static_cast<double>(q.size(3)));  // of D, not of C
  Tensor scores = matmul(q, k, {.transpose_b = true}) / root;     // (B, H, T, S)
  if (blocked.defined())
    scores = masked_fill(scores, blocked, -std::numeric_limits<double>::infinity());
  const Tensor weights = softmax(scores);             // (B, H, T, S)
  return {merge_heads(matmul(weights, v)), weights};  // (B, T, C)
}

Matrix product(const Matrix& a, const Matrix& b) {
  Matrix result(a.rows, b.columns);
  for (int64_t i = 0; i < a.rows; ++i)
    for (int64_t j = 0; j < b.columns; ++j)
      for (int64_t k = 0; k < a.columns; ++k) result(i, j) += a(i, k) * b(k, j);
  return result;
}

Matrix transposed(const Matrix& x) {
  Matrix result(x.columns, x.rows);
  for (int64_t i = 0; i < x.rows; ++i)
    for (int64_t j = 0; j < x.columns; ++j) result(j, i) = x(i, j);
  return result;
}

// Of each row. The largest score is subtracted first: exp of a large one would overflow.
Matrix softmax_rows(Matrix x) {
  for (int64_t i = 0; i < x.rows; ++i) {
    double largest = x(i, 0), sum = 0;
    for (int64_t j = 1; j < x.columns; ++j) largest = std::max(largest, x(i, j));
    for (int64_t j = 0; j < x.columns; ++j) sum += x(i, j) = std::exp(x(i, j) - largest);
    for (int64_t j = 0; j < x.columns; ++j) x(i, j) /= sum;
  }
  return x;
}

// The same matrix of every head, side by side.
template <typename Heads, typename Member>
Matrix side_by_side(const Heads& heads, Member member) {
  const int64_t rows = (heads.front().*member).rows, columns = (heads.front().*member).columns;
  Matrix result(rows, static_cast<int64_t>(heads.size()) * columns);
  for (size_t head = 0; head < heads.size(); ++head)
    for (int64_t i = 0; i < rows; ++i)
      for (int64_t j = 0; j < columns; ++j)
        result(i, static_cast<int64_t>(head) * columns + j) = (heads[head].*member)(i, j);
  return result;
}

template <typename Form>
void import_into(Form& attention, int64_t heads, const NumpyFormAttention& from) {
  check(heads == static_cast<int64_t>(from.heads.size()),
        "import_weights: the numbers of heads differ, got {} and {}", heads, from.heads.size());
  const NumpyFormAttention::Weights weights = from.packed_weights();
  Matrix identity(from.width, from.width);
  for (int64_t i = 0; i < from.width; ++i) identity(i, i) = 1;
  import_dense(*attention.query, weights.query.tensor());
  import_dense(*attention.key, weights.key.tensor());
  import_dense(*attention.value, weights.value.tensor());
  import_dense(*attention.output, identity.tensor());
}

}  // namespace

Tensor split_heads(const Tensor& x, int64_t heads) {
  check(x.rank() == 3, "split_heads: needs (B, T, C), got {}", x.shape());
  const int64_t width = checked_width("split_heads", x.size(2), heads);
  return permute(reshape(x, {x.size(0), x.size(1), heads, width / heads}), {0, 2, 1, 3});
}

Tensor merge_heads(const Tensor& x) {
  check(x.rank() == 4, "merge_heads: needs (B, H, T, D), got {}", x.shape());
  return reshape(permute(x, {0, 2, 1, 3}), {x.size(0), x.size(2), x.size(1) * x.size(3)});
}

PytorchFormAttention::PytorchFormAttention(int64_t width, int64_t heads)
    : heads(heads),
      query(*this, "query", checked_width("PyTorch-form attention", width, heads), width,
            nn::Linear::Config{.bias = false}),
      key(*this, "key", width, width, nn::Linear::Config{.bias = false}),
      value(*this, "value", width, width, nn::Linear::Config{.bias = false}),
      output(*this, "output", width, width) {}

Attention PytorchFormAttention::operator()(const Tensor& query_input, const Tensor& key_input,
                                           const Tensor& value_input, const Tensor& mask) const {
  check_inputs("PyTorch-form attention", query_input, key_input, value_input);
  const Tensor blocked = mask.defined() ? logical_not(cast(mask, kBool)) : Tensor();
  const Attention attention =
      attend(query(query_input), key(key_input), value(value_input), heads, blocked);
  return {output(attention.output), attention.weights};
}

KerasFormAttention::KerasFormAttention(int64_t width, int64_t heads)
    : heads(heads),
      query(*this, "query", checked_width("Keras-form attention", width, heads), width),
      key(*this, "key", width, width),
      value(*this, "value", width, width),
      output(*this, "output", width, width) {}

Attention KerasFormAttention::operator()(const Tensor& value_input, const Tensor& key_input,
                                         const Tensor& query_input, const Tensor& mask) const {
  check_inputs("Keras-form attention", query_input, key_input, value_input);
  const Tensor blocked = mask.defined() ? cast(mask, kBool) : Tensor();
  const Attention attention =
      attend(query(query_input), key(key_input), value(value_input), heads, blocked);
  return {output(attention.output), attention.weights};
}

void import_dense(nn::Linear& layer, const Tensor& kernel, const Tensor& bias) {
  const Tensor& weight = layer.weight;
  const bool has_bias = layer.bias.tensor().defined();
  check(kernel.rank() == 2 && kernel.size(0) == weight.size(1) && kernel.size(1) == weight.size(0),
        "import_dense: the kernel must be (in, out) of the layer, got {} for a weight (out, in) of "
        "{}",
        kernel.shape(), weight.shape());
  check(!bias.defined() || (has_bias && bias.shape() == layer.bias->shape()),
        "import_dense: the bias does not fit, got {} for {}", bias.shape(),
        has_bias ? fmt::format("{}", layer.bias->shape()) : "a layer without bias");
  const auto like_weight = [&weight](const Tensor& x) {
    return cast(x.detach().to(weight.device()), weight.dtype());
  };
  layer.weight->assign(like_weight(transpose(kernel.detach())));
  if (has_bias) layer.bias->assign(like_weight(bias.defined() ? bias : zeros(layer.bias->shape())));
}

Matrix::Matrix(int64_t rows, int64_t columns)
    : Matrix(rows, columns,
             std::vector<double>(static_cast<size_t>(std::max<int64_t>(rows * columns, 0)))) {}

Matrix::Matrix(int64_t rows, int64_t columns, std::vector<double> values)
    : rows(rows), columns(columns), values(std::move(values)) {
  check(rows >= 0 && columns >= 0 && static_cast<int64_t>(this->values.size()) == rows * columns,
        "Matrix: the numbers do not fill it, got {} for {} rows of {}", this->values.size(), rows,
        columns);
}

Tensor Matrix::tensor() const { return Tensor::of<double>({rows, columns}, values); }

NumpyFormAttention::NumpyFormAttention(int64_t width, int64_t heads, MersenneTwister& numbers)
    : width(checked_width("NumPy-form attention", width, heads)) {
  const Matrix empty(width, width / heads);
  this->heads.assign(static_cast<size_t>(heads), {empty, empty, empty});
  for (Matrix Weights::*role : {&Weights::query, &Weights::key, &Weights::value})
    for (Weights& head : this->heads)
      for (double& weight : (head.*role).values) weight = numbers.normal();
}

NumpyFormAttention::Result NumpyFormAttention::operator()(const Matrix& x) const {
  check(x.columns == width, "NumPy-form attention: x must have {} columns, got {}", width,
        x.columns);
  std::vector<Head> steps;
  for (const Weights& head : heads) {
    Matrix query = product(x, head.query), key = product(x, head.key),
           value = product(x, head.value);
    Matrix scores = product(query, transposed(key));
    for (double& score : scores.values) score /= std::sqrt(static_cast<double>(query.columns));
    Matrix weights = softmax_rows(scores);
    Matrix output = product(weights, value);
    steps.push_back({std::move(query), std::move(key), std::move(value), std::move(scores),
                     std::move(weights), std::move(output)});
  }
  Matrix output = side_by_side(steps, &Head::output);
  return {std::move(output), std::move(steps)};
}

NumpyFormAttention::Weights NumpyFormAttention::packed_weights() const {
  return {side_by_side(heads, &Weights::query), side_by_side(heads, &Weights::key),
          side_by_side(heads, &Weights::value)};
}

void import_weights(PytorchFormAttention& attention, const NumpyFormAttention& weights) {
  import_into(attention, attention.heads, weights);
}

void import_weights(KerasFormAttention& attention, const NumpyFormAttention& weights) {
  import_into(attention, attention.heads, weights);
}

void import_weights(nn::MultiHeadAttention& attention, const NumpyFormAttention& weights) {
  import_into(attention, attention.config.heads, weights);
}

}  // namespace gs
