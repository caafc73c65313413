// Hints that are kept: which are found again, and which make room.
#include <gtest/gtest.h>

#include <map>

#include "engine/txn/stages/unvalidated_read.h"
#include "rdma/base/random.h"

namespace rdmacc {
namespace {

TEST(KeptHints, WhatIsUsedStaysWhenRoomIsNeeded) {
  UnvalidatedReadCache cache(4);
  for (const char* key : {"a", "b", "c", "d"}) cache.put(1, key, key);
  cache.put(1, "e", "e");  // all had been used: one of them has gone
  ASSERT_NE(cache.find(1, "e"), nullptr);
  for (char key = 'f'; key < 'z'; key++) {
    EXPECT_NE(cache.find(1, "e"), nullptr) << key;
    cache.put(1, std::string(1, key), "row");
  }
  EXPECT_EQ(cache.find(1, "f"), nullptr);
  EXPECT_EQ(cache.find(2, "e"), nullptr);
}

TEST(KeptHints, NoneAreKeptWithoutEntries) {
  UnvalidatedReadCache cache(0);
  cache.put(1, "a", "row");
  EXPECT_EQ(cache.find(1, "a"), nullptr);
  cache.forget(1, "a");
}

TEST(KeptHints, AreWhatWasPutLast) {
  constexpr size_t kEntries = 64;
  UnvalidatedReadCache cache(kEntries);
  std::map<std::string, std::string> put;
  Random random(5);
  uint64_t found = 0;
  for (int round = 0; round < 20'000; round++) {
    const std::string key = std::to_string(random.below(2 * kEntries));
    switch (random.below(3)) {
      case 0:
        put[key] = std::to_string(round);
        cache.put(1, key, put[key]);
        ASSERT_EQ(*cache.find(1, key), put[key]);
        break;
      case 1:
        put.erase(key);
        cache.forget(1, key);
        ASSERT_EQ(cache.find(1, key), nullptr);
        break;
      default:
        if (const std::string* row = cache.find(1, key)) {
          found++;
          ASSERT_EQ(*row, put[key]);
        }
    }
  }
  EXPECT_GT(found, 1000u);
}

}  // namespace
}  // namespace rdmacc
