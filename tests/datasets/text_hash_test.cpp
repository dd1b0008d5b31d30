#include "datasets/text_hash.h"

#include <gtest/gtest.h>

namespace gs {
namespace {

// FNV-1a's published test vectors, mixed.
TEST(TextHash, IsFnv1aMixed) {
  const auto mixed = [](uint64_t word) {
    word ^= word >> 33;
    word *= 0xFF51AFD7ED558CCD;
    return word ^ (word >> 33);
  };
  EXPECT_EQ(hash_text(""), mixed(0xCBF29CE484222325));
  EXPECT_EQ(hash_text("a"), mixed(0xAF63DC4C8601EC8C));
  EXPECT_EQ(hash_text("foobar"), mixed(0x85944171F73967E8));
}

}  // namespace
}  // namespace gs
