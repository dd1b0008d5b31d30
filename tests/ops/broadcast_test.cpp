#include "framework/ops/broadcast.h"

#include "framework/core/parallel.h"
#include "tests/support/movement.h"
#include "tests/support/support.h"

namespace gs {
namespace {

using test::counted;
using test::error_of;
using test::expect_movement;

// Element by element from the definition.
std::vector<double> reference(const Shape& from, const Shape& to) {
  std::vector<double> values;
  for (int64_t i = 0; i < to.elements(); ++i) {
    int64_t place = 0, stride = 1, rest = i;
    for (int d = to.rank() - 1; d >= to.rank() - from.rank(); --d) {
      const int64_t size = from[d - to.rank() + from.rank()];
      if (size != 1) place += rest % to[d] * stride;
      stride *= size;
      rest /= to[d];
    }
    values.push_back(static_cast<double>(place));
  }
  return values;
}

void expect_broadcast(const Shape& from, const Shape& to) {
  SCOPED_TRACE(from.text() + " to " + to.text());
  expect_movement([&](const std::vector<Tensor>& in) { return broadcast_to(in[0], to); }, {from},
                  to, reference(from, to));
}

TEST(BroadcastTo, FillsEveryShape) {
  expect_broadcast({}, {2, 3});
  expect_broadcast({}, {});
  expect_broadcast({3}, {2, 3});
  expect_broadcast({2, 1}, {2, 3});
  expect_broadcast({1, 3, 1}, {2, 3, 4});
  expect_broadcast({2, 1, 3, 1, 2}, {2, 4, 3, 5, 2});
  expect_broadcast({2, 1, 1, 1}, {2, 3, 1, 2});
  expect_broadcast({1, 2, 1}, {3, 1, 2, 4});
  expect_broadcast({2, 3}, {2, 3});
  expect_broadcast({1}, {0});
  expect_broadcast({0, 1}, {0, 4});
  expect_broadcast({1, 1, 1, 1}, {1, 2, 1, 3});
}

TEST(BroadcastTo, LargeInParallel) {
  const int before = threads();
  set_threads(3);
  const Shape from{1, 70, 1}, to{60, 70, 40};
  EXPECT_EQ(broadcast_to(counted(from), to).values<double>(), reference(from, to));
  set_threads(before);
}

TEST(BroadcastTo, RefusesWhatDoesNotFill) {
  EXPECT_EQ(error_of([] {
              broadcast_to(counted({2, 3}), {2, 4});
            }),
            "broadcast_to: [2, 3] does not fill [2, 4]; sizes must be equal or 1");
  EXPECT_EQ(error_of([] {
              broadcast_to(counted({1, 3}), {3});
            }),
            "broadcast_to: [1, 3] does not fill [3]; sizes must be equal or 1");
  EXPECT_EQ(error_of([] { broadcast_to(counted({0}), {1}); }),
            "broadcast_to: [0] does not fill [1]; sizes must be equal or 1");
}

}  // namespace
}  // namespace gs
