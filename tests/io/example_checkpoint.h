#pragma once

#include <gtest/gtest.h>

#include <cstring>
#include <limits>
#include <numeric>
#include <string>
#include <vector>

#include "framework/io/checkpoint.h"

namespace gs::test {

inline Array bfloat16_of(const Shape& shape, const std::vector<uint16_t>& bits) {
  Array array = Array::empty(shape, kBFloat16);
  std::memcpy(array.raw(), bits.data(), bits.size() * sizeof(uint16_t));
  return array;
}

// Every kind of value; `step` tells several apart.
inline Checkpoint example_checkpoint(int64_t step = 900) {
  std::vector<float> weight(12);
  std::iota(weight.begin(), weight.end(), static_cast<float>(step) + 0.25F);
  std::string every_byte(256 * 5, '\0');
  for (size_t i = 0; i < every_byte.size(); ++i) every_byte[i] = static_cast<char>(i * 7);
  const float infinity = std::numeric_limits<float>::infinity();
  Checkpoint checkpoint;
  checkpoint.parameters = {
      {"embedding/weight", Array::of<float>({3, 4}, weight)},
      {"encoder/layers/0/norm/weight", Array::of<float>({3}, {-0.0F, infinity, 1e-45F})},
      {"encoder/layers/10/mask", Array::of<bool>({2, 3}, {true, false, true, true, false, false})},
      {"half", bfloat16_of({2, 2}, {0x3F80, 0xC020, 0x0000, 0x7F80})},  // 1, -2.5, 0, infinity
      {"none", Array::empty({0, 5}, kFloat32)},
      {"scalar", Array::of<double>({}, {0.1})},
      {"table", Array::of<int32_t>({1, 1, 1, 1, 1, 1, 1, 2}, {-2147483647 - 1, 2147483647})}};
  checkpoint.ties = {{"output/weight", "embedding/weight"}};
  checkpoint.optimizer = {{"embedding/weight/first_moment", Array::of<float>({3, 4}, weight)},
                          {"embedding/weight/second_moment", Array::zeros({3, 4}, kFloat64)}};
  checkpoint.training = {{"epoch", int64_t{3}},
                         {"learning_rate", 0.1 + 0.2},
                         {"least", std::numeric_limits<int64_t>::min()},
                         {"loss", std::numeric_limits<double>::quiet_NaN()},
                         {"seed", std::string("18446744073709551615")},
                         {"step", step}};
  checkpoint.config = {{"d_model", "512"}, {"empty", ""}, {"name", "Grüße, 世界\nsecond line"}};
  checkpoint.tokenizer = {{"empty", ""}, {"subwords", every_byte}};
  return checkpoint;
}

inline void expect_same_bits(const Array& a, const Array& b, const std::string& name) {
  ASSERT_EQ(a.shape().text(), b.shape().text()) << name;
  ASSERT_EQ(a.dtype(), b.dtype()) << name;
  if (a.bytes() == 0) return;  // no memory to compare
  EXPECT_EQ(std::memcmp(a.raw(), b.raw(), static_cast<size_t>(a.bytes())), 0) << name;
}

inline void expect_same(const std::map<std::string, Array>& a,
                        const std::map<std::string, Array>& b) {
  ASSERT_EQ(a.size(), b.size());
  for (const auto& [name, array] : a) {
    ASSERT_TRUE(b.contains(name)) << name;
    expect_same_bits(array, b.at(name), name);
  }
}

// Bit for bit, so that NaN equals itself.
inline void expect_same(const Checkpoint& a, const Checkpoint& b) {
  expect_same(a.parameters, b.parameters);
  expect_same(a.optimizer, b.optimizer);
  EXPECT_EQ(a.ties, b.ties);
  EXPECT_EQ(a.config, b.config);
  EXPECT_EQ(a.tokenizer, b.tokenizer);
  ASSERT_EQ(a.training.size(), b.training.size());
  for (const auto& [name, value] : a.training) {
    ASSERT_TRUE(b.training.contains(name)) << name;
    const TrainingValue& other = b.training.at(name);
    const double* number = std::get_if<double>(&value);
    if (number == nullptr) {
      EXPECT_EQ(value, other) << name;
      continue;
    }
    ASSERT_TRUE(std::holds_alternative<double>(other)) << name;
    EXPECT_EQ(std::memcmp(number, &std::get<double>(other), sizeof *number), 0) << name;
  }
}

}  // namespace gs::test
