#include "framework/text/sequences.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/support/support.h"

namespace gs {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

TEST(Sequences, PacksThemOneAfterAnother) {
  Sequences sequences;
  EXPECT_EQ(sequences.count(), 0);
  sequences.append(std::vector<int32_t>{5, 6});
  sequences.append({});
  sequences.append(std::vector<int32_t>{7});
  EXPECT_EQ(sequences.count(), 3);
  EXPECT_THAT(sequences.tokens, ElementsAre(5, 6, 7));
  EXPECT_THAT(sequences.offsets, ElementsAre(0, 2, 2, 3));
  EXPECT_THAT(sequences[0], ElementsAre(5, 6));
  EXPECT_THAT(sequences[1], ElementsAre());
  EXPECT_THAT(sequences[2], ElementsAre(7));
  EXPECT_EQ(sequences.length(0), 2);
}

TEST(Sequences, RefusesIndicesOutside) {
  Sequences sequences;
  sequences.append(std::vector<int32_t>{5});
  EXPECT_THAT(test::error_of([&] { sequences[1]; }), HasSubstr("sequence 1 is outside 0..0"));
  EXPECT_THAT(test::error_of([&] { sequences.length(-1); }), HasSubstr("-1 is outside"));
}

}  // namespace
}  // namespace gs
