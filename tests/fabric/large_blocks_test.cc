#include "rdma/base/large_blocks.h"

#include <gtest/gtest.h>

#include <cstring>
#include <utility>

namespace rdmacc {
namespace {

constexpr size_t kMegabyte = 1u << 20;

// All that one transaction has is back when the next one asks.
TEST(LargeBlocks, AreUsedAgainForNearlyTheirSize) {
  if (!LargeBlocks::system_promises_more_memory()) GTEST_SKIP() << "vm.overcommit_memory is 2";
  LargeBlocks blocks;
  // Far more than what is kept as it is, so that most of it is the system's to take back.
  constexpr size_t kBytes = 100 * kMegabyte, kNearly = 99 * kMegabyte;
  static_assert(kBytes > LargeBlocks::kWholeBytesMax);
  void* const memory = blocks.allocate(kBytes, 8);
  memset(memory, 1, kBytes);
  blocks.deallocate(memory, kBytes, 8);
  EXPECT_EQ(blocks.kept_bytes(), LargeBlocks::size_taken(kBytes));
  void* const again = blocks.allocate(kNearly, 8);
  EXPECT_EQ(again, memory);
  memset(again, 2, kNearly);
  for (size_t at = 0; at < kNearly; at += 4096) {
    ASSERT_EQ(static_cast<unsigned char*>(again)[at], 2) << at;
  }
  EXPECT_EQ(blocks.kept_bytes(), 0u);
  blocks.deallocate(again, kNearly, 8);
}

// A process that once wrote very much does not keep all of it, and what it has written last.
TEST(LargeBlocks, AreKeptUpToABound) {
  if (!LargeBlocks::system_promises_more_memory()) GTEST_SKIP() << "vm.overcommit_memory is 2";
  constexpr size_t kBytes = 256 * kMegabyte;
  LargeBlocks blocks;
  std::vector<void*> memory;
  for (size_t i = 0; i <= LargeBlocks::kKeptBytesMax / kBytes; ++i) {
    memory.push_back(blocks.allocate(kBytes, 8));  // and not touched
  }
  for (void* const each : memory) blocks.deallocate(each, kBytes, 8);
  EXPECT_LE(blocks.kept_bytes(), LargeBlocks::kKeptBytesMax);
  EXPECT_GT(blocks.kept_bytes(), LargeBlocks::kKeptBytesMax / 2);
  void* const small = blocks.allocate(2 * kMegabyte, 8);
  blocks.deallocate(small, 2 * kMegabyte, 8);
  void* const again = blocks.allocate(2 * kMegabyte, 8);
  EXPECT_EQ(again, small);
  blocks.deallocate(again, 2 * kMegabyte, 8);
}

TEST(LargeBlocks, TakeAnEighthMoreAtMost) {
  for (size_t bytes = 16 * kMegabyte; bytes < 4096 * kMegabyte; bytes += bytes / 7 + 4096) {
    const size_t taken = LargeBlocks::size_taken(bytes);
    EXPECT_GE(taken, bytes);
    EXPECT_LE(taken, bytes + bytes / 8);
    EXPECT_EQ(taken % (2 * kMegabyte), 0u);
  }
}

TEST(LargeVector, GrowsLikeAnyOther) {
  LargeVector<uint64_t> numbers;
  for (uint64_t i = 0; i < kMegabyte; ++i) numbers.push_back(i);
  LargeVector<uint64_t> moved = std::move(numbers);
  for (uint64_t i = 0; i < kMegabyte; ++i) ASSERT_EQ(moved[i], i);
}

}  // namespace
}  // namespace rdmacc
