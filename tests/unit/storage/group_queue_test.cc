#include <gtest/gtest.h>

#include "engine/storage/owner/hash_index_owner.h"

namespace rdmacc {
namespace {

TEST(GroupQueue, HasEachGroupOnce) {
  GroupQueue queue;
  EXPECT_TRUE(queue.empty());
  // Neighbours, which are closest to having one place, and one far away.
  constexpr uint64_t kFirst = 7 * 256 * 1024, kFar = 1ull << 33;
  for (int time = 0; time < 2; ++time) {
    for (uint64_t i = 0; i < 100; ++i) queue.push_back(kFirst + i * sizeof(Group));
    queue.push_front(kFar);
    queue.push_back(kFar);
  }
  EXPECT_EQ(queue.size(), 101u);
  EXPECT_EQ(queue.pop_front(), kFar);
  for (uint64_t i = 0; i < 100; ++i) EXPECT_EQ(queue.pop_front(), kFirst + i * sizeof(Group));
  EXPECT_TRUE(queue.empty());
  queue.push_back(kFar);  // it may come again
  EXPECT_EQ(queue.pop_front(), kFar);
}

}  // namespace
}  // namespace rdmacc
