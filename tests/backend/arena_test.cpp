#include "framework/backend/cpu/arena.h"

#include <gtest/gtest.h>

#include <cstring>
#include <iterator>
#include <random>

namespace gs::backend {
namespace {

constexpr int64_t kMegabyte = int64_t{1} << 20;

// The bytes of a block, all the same: blocks that overlap would show.
struct Block {
  char* data;
  int64_t size;
  char mark;
};

void expect_whole(const Block& block) {
  EXPECT_EQ(block.data[0], block.mark);
  EXPECT_EQ(block.data[block.size - 1], block.mark);
  EXPECT_EQ(std::memcmp(block.data, block.data + 1, static_cast<size_t>(block.size - 1)), 0);
}

TEST(Arena, BlocksNeverOverlapAndAllComesBack) {
  Arena arena;
  std::mt19937 random(1);
  std::map<char*, Block> blocks;
  int64_t live = 0, held = 0;
  for (int i = 0; i < 3000; ++i) {
    if (blocks.empty() || random() % 8 < (live < 100 * kMegabyte ? 5 : 3)) {
      const int64_t size = Arena::kAlignment * (1 + random() % (random() % 16 == 0 ? 65536 : 512));
      char* const data = static_cast<char*>(arena.take(size));
      ASSERT_NE(data, nullptr);
      EXPECT_EQ(reinterpret_cast<uintptr_t>(data) % Arena::kAlignment, 0u);
      const Block block{data, size, static_cast<char>(random())};
      std::memset(data, block.mark, static_cast<size_t>(size));
      blocks.emplace(data, block);
      live += size;
      held = std::max(held, live + arena.free_bytes());
    } else {
      const auto block = std::next(blocks.begin(), random() % blocks.size());
      expect_whole(block->second);
      arena.put(block->second.data, block->second.size);
      live -= block->second.size;
      blocks.erase(block);
    }
    EXPECT_EQ((live + arena.free_bytes()) % (2 * kMegabyte), 0);
    if (i == 1500) arena.release();
  }
  for (const auto& [data, block] : blocks) {
    expect_whole(block);
    arena.put(data, block.size);
  }
  arena.release();
  EXPECT_EQ(arena.free_bytes(), 0);
}

TEST(Arena, JoinsFreedNeighboursAndReusesThem) {
  Arena arena;
  void* const first = arena.take(8 * kMegabyte);
  void* const second = arena.take(8 * kMegabyte);
  void* const third = arena.take(8 * kMegabyte);
  const int64_t rest = arena.free_bytes();
  arena.put(first, 8 * kMegabyte);
  arena.put(third, 8 * kMegabyte);
  arena.put(second, 8 * kMegabyte);
  EXPECT_EQ(arena.free_bytes(), rest + 24 * kMegabyte);
  EXPECT_EQ(arena.take(24 * kMegabyte + rest), first);
  EXPECT_EQ(arena.free_bytes(), 0);
  arena.put(first, 24 * kMegabyte + rest);
  arena.release();
}

TEST(Arena, BestFitLeavesTheLargeSpanWhole) {
  Arena arena;
  char* const small = static_cast<char*>(arena.take(kMegabyte));
  void* const wall = arena.take(kMegabyte);
  arena.put(small, kMegabyte);
  EXPECT_EQ(arena.take(kMegabyte / 2), small);
  EXPECT_EQ(arena.take(kMegabyte / 2), small + kMegabyte / 2);
  EXPECT_EQ(arena.take(kMegabyte), static_cast<char*>(wall) + kMegabyte);
}

TEST(Arena, AbsurdSizesGiveNull) {
  Arena arena;
  EXPECT_EQ(arena.take(int64_t{1} << 60), nullptr);
  EXPECT_NE(arena.take(kMegabyte), nullptr);
}

}  // namespace
}  // namespace gs::backend
