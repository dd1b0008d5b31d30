#include "framework/nn/positions.h"

#include <gtest/gtest.h>

#include <cmath>

#include "tests/support/devices.h"
#include "tests/support/module_case.h"
#include "tests/support/numbers.h"
#include "tests/support/support.h"

namespace gs {
namespace {

using test::check_module;
using test::error_of;
using test::expect_near;

Tensor indices(std::vector<int32_t> values) {
  return Tensor::of<int32_t>({static_cast<int64_t>(values.size())}, values);
}

const std::vector<double> kOddWidth{0,
                                    1,
                                    0,
                                    1,
                                    0,  //
                                    0.8414709848,
                                    0.5403023059,
                                    0.0251162229,
                                    0.9996845379,
                                    0.0006309573,
                                    0.9092974268,
                                    -0.4161468365,
                                    0.0502165994,
                                    0.9987383507,
                                    0.0012619144};

// codertimo/BERT-pytorch#78, gc-os-ai/pyaptamer#526: odd widths failed.
TEST(Positions, TheTableTakesOddWidths) {
  expect_near(nn::sinusoidal_table(3, 5), kOddWidth, 1e-7);
  expect_near(nn::sinusoidal_table(3, 5, kFloat64), kOddWidth, 1e-10);
  EXPECT_EQ(nn::sinusoidal_table(3, 5).dtype(), kFloat32);
  expect_near(nn::sinusoidal_table(2, 1), {0, 0.8414709848}, 1e-7);
  EXPECT_EQ(nn::sinusoidal_table(0, 4).shape(), Shape({0, 4}));
  EXPECT_EQ(error_of([] { nn::sinusoidal_table(3, 0); }),
            "positions: need a width of at least 1, got 3 positions of width 0");
}

// Far positions keep their digits: the angle is taken in double precision.
TEST(Positions, TheTableIsExactFarOut) {
  const std::vector<double> table = nn::sinusoidal_table(100001, 4, kFloat64).values<double>();
  EXPECT_NEAR(table[400000], 0.0357487979720165, 1e-10);   // sin 100000
  EXPECT_NEAR(table[400001], -0.9993608074382122, 1e-10);  // cos 100000
}

TEST(Positions, SinusoidalOnesAreRowsOfTheTable) {
  const nn::SinusoidalPositions positions(3, 5);
  const std::vector<double> expected(kOddWidth.begin() + 10, kOddWidth.end());
  expect_near(positions(indices({2})), expected, 1e-7);
  EXPECT_EQ(positions(indices({2})).dtype(), kFloat32);
  expect_near(positions(indices({2}), kFloat64), expected, 1e-10);
  EXPECT_EQ(positions(Tensor::of<int32_t>({2, 1}, {1, 1})).shape(), Shape({2, 1, 5}));
  EXPECT_EQ(positions(indices({})).shape(), Shape({0, 5}));
  EXPECT_FALSE(positions(indices({1})).needs_grad());
  EXPECT_EQ(positions.parameter_count(), 0);
}

TEST(Positions, LearnedOnesAreTrained) {
  nn::LearnedPositions positions(4, 3);
  check_module(positions, [&](const std::vector<Tensor>& x) { return positions(x[0]); },
               {indices({0, 1, 2, 3, 0, 1})});
  EXPECT_FALSE(positions.weight.decays());
  const nn::LearnedPositions many(1000, 20);
  double sum = 0;
  for (const double value : many.weight->values<double>()) sum += value * value;
  EXPECT_NEAR(std::sqrt(sum / 20000), 0.02, 0.0005);
}

// codertimo/BERT-pytorch#78, bentrevett/pytorch-seq2seq#69: an index crash, or cut in silence.
TEST(Positions, TooLongIsRefusedWithLengthAndLimit) {
  const std::string expected =
      "positions: a sequence of 4 is longer than the limit of 3; shorten it, or make the model "
      "with a larger maximum length";
  const nn::SinusoidalPositions sinusoidal(3, 5);
  const nn::LearnedPositions learned(3, 5);
  EXPECT_EQ(error_of([&] { sinusoidal(indices({0, 3, 1})); }), expected);
  EXPECT_EQ(error_of([&] { learned(indices({0, 3, 1})); }), expected);
  EXPECT_EQ(error_of([&] { sinusoidal(indices({2147483647})); }),
            "positions: a sequence of 2147483648 is longer than the limit of 3; shorten it, or "
            "make the model with a larger maximum length");
  EXPECT_EQ(error_of([&] {
              learned(indices({0, -1}));
            }),
            "embedding: index -1 at position 1 is outside 0..2");
}

using PositionsOnCuda = test::CudaTest;

TEST_F(PositionsOnCuda, TablesMoveWithTheirModule) {
  struct Model : nn::Module {
    nn::Child<nn::SinusoidalPositions> positions{*this, "positions", 3, 5};
  } model;
  model.to(Device::cuda());
  const Tensor there = indices({2, 0}).to(Device::cuda());
  const std::vector<double> expected =
      nn::SinusoidalPositions(3, 5)(indices({2, 0})).values<double>();
  EXPECT_EQ(model.positions(there).device(), Device::cuda());
  EXPECT_EQ(model.positions(there).values<double>(), expected);
  expect_near(model.positions(there, kFloat64), expected, 1e-7);
  EXPECT_EQ(error_of([&] {
              model.positions(indices({0, 7}).to(Device::cuda()));
            }),
            "positions: a sequence of 8 is longer than the limit of 3; shorten it, or make the "
            "model with a larger maximum length");
  EXPECT_EQ(error_of([&] { model.positions(indices({0})); }),
            "embedding: weight and indices are on two devices, got cuda:0 and cpu; move one");
  model.to(Device::cpu());
  EXPECT_EQ(model.positions(indices({2, 0})).values<double>(), expected);
  const std::vector<int32_t> offsets{0, 2, 3};
  EXPECT_EQ(nn::packed_positions(offsets, Device::cuda()).device(), Device::cuda());
  EXPECT_EQ(nn::packed_positions(offsets, Device::cuda()).values<int32_t>(),
            (std::vector<int32_t>{0, 1, 0}));
}

TEST(Positions, ArePlacesInPackedSequences) {
  const std::vector<int32_t> offsets{0, 3, 3, 4, 6};
  EXPECT_EQ(nn::packed_positions(offsets).values<int32_t>(),
            (std::vector<int32_t>{0, 1, 2, 0, 0, 1}));
  EXPECT_EQ(nn::packed_positions(std::vector<int32_t>{0}).shape(), Shape({0}));
  EXPECT_EQ(nn::packed_positions({}).shape(), Shape({0}));
}

TEST(Positions, RefuseOffsetsThatAreNone) {
  EXPECT_EQ(error_of([] {
              nn::packed_positions(std::vector<int32_t>{0, 5, 3});
            }),
            "positions: offsets must not fall, got 5 before 3");
  EXPECT_EQ(error_of([] {
              nn::packed_positions(std::vector<int32_t>{0, -1});
            }),
            "positions: offsets must not fall, got 0 before -1");
  EXPECT_EQ(error_of([] {
              nn::packed_positions(std::vector<int32_t>{1, 2});
            }),
            "positions: offsets must begin with 0, got 1");
}

}  // namespace
}  // namespace gs
