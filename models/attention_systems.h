#pragma once

#include <cstdint>
#include <vector>

#include "framework/core/mersenne_twister.h"
#include "framework/nn/linear.h"
#include "framework/nn/multi_head_attention.h"
#include "framework/ops/attention.h"

// Multi-head attention as three kinds of published code write it, step by step, to be read and to
// be compared with. With the same weights they give the same numbers as nn::MultiHeadAttention,
// which is the fast one. Heads that do not divide the width are refused by all of them.
namespace gs {

// The columns of x as `heads` blocks of D next to each other: (B, T, H * D) -> (B, H, T, D).
// A reshape to (B, H, T, D) alone has the right shape and mixes positions and heads.
Tensor split_heads(const Tensor& x, int64_t heads);
// The way back: (B, H, T, D) -> (B, T, H * D).
Tensor merge_heads(const Tensor& x);

// As PyTorch code has it: query, key and value projections without bias, output with bias.
struct PytorchFormAttention : nn::Module {
  PytorchFormAttention(int64_t width, int64_t heads);

  // query (B, T, C), key and value (B, S, C) -> output (B, T, C), weights (B, H, T, S).
  // mask, of any type, broadcasts to (B, H, T, S): 0 = blocked; undefined blocks nothing. A query
  // that may attend to nothing has weights of 0.
  Attention operator()(const Tensor& query_input, const Tensor& key_input,
                       const Tensor& value_input, const Tensor& mask = Tensor()) const;

  const int64_t heads;
  nn::Child<nn::Linear> query, key, value, output;
};

// As Keras code has it: four Dense layers with bias, value before key before query, and a mask that
// says the opposite.
struct KerasFormAttention : nn::Module {
  KerasFormAttention(int64_t width, int64_t heads);

  // value and key (B, S, C), query (B, T, C) -> output (B, T, C), weights (B, H, T, S).
  // mask, of any type, broadcasts to (B, H, T, S): 1 = blocked; undefined blocks nothing. Published
  // code adds mask * -1e9 to the scores. The numbers here are the same, but for a query that may
  // attend to nothing: its weights are 0, where -1e9 would show it what is blocked.
  Attention operator()(const Tensor& value_input, const Tensor& key_input,
                       const Tensor& query_input, const Tensor& mask = Tensor()) const;

  const int64_t heads;
  nn::Child<nn::Linear> query, key, value, output;
};

// Takes the weights of a Keras Dense layer: kernel (in, out), bias (out); without a bias it is 0.
void import_dense(nn::Linear& layer, const Tensor& kernel, const Tensor& bias = Tensor());

// Numbers in rows, without a graph.
struct Matrix {
  Matrix(int64_t rows, int64_t columns);
  Matrix(int64_t rows, int64_t columns, std::vector<double> values);
  double& operator()(int64_t row, int64_t column) { return values[index(row, column)]; }
  double operator()(int64_t row, int64_t column) const { return values[index(row, column)]; }
  Tensor tensor() const;  // (rows, columns), float64

  int64_t rows, columns;
  std::vector<double> values;

 private:
  size_t index(int64_t row, int64_t column) const {
    return static_cast<size_t>(row * columns + column);
  }
};

// As NumPy code has it: one sequence, weights of its own for each head, a loop over the heads, and
// no projection of the output.
struct NumpyFormAttention {
  // Of one head (C, D); or, side by side, of all (C, H * D).
  struct Weights {
    Matrix query, key, value;
  };
  // All that one head computes: query, key, value, output (T, D), scores, weights (T, T).
  struct Head {
    Matrix query, key, value, scores, weights, output;
  };
  struct Result {
    Matrix output;  // (T, C)
    std::vector<Head> heads;
  };

  // Draws the query weights of all heads, then the key weights, then the value weights, as
  // np.random.randn(heads, width, width // heads) does.
  NumpyFormAttention(int64_t width, int64_t heads, MersenneTwister& numbers);

  Result operator()(const Matrix& x) const;  // (T, C)
  // The kernels that projections for all heads at once have: head after head along the columns.
  Weights packed_weights() const;

  const int64_t width;
  std::vector<Weights> heads;
};

// Makes other forms compute what `weights` computes: the output projection is the identity,
// all biases are 0. The sizes must be the same.
void import_weights(PytorchFormAttention& attention, const NumpyFormAttention& weights);
void import_weights(KerasFormAttention& attention, const NumpyFormAttention& weights);
void import_weights(nn::MultiHeadAttention& attention, const NumpyFormAttention& weights);

}  // namespace gs
