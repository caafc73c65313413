// What a transaction and a worker find things by, the index of keys and headers and the cache of
// locations, and where a transaction keeps them.
#include "engine/txn/transaction/small_index.h"

#include <gtest/gtest.h>

#include <deque>
#include <unordered_map>

#include "engine/txn/driver/location_cache.h"
#include "engine/txn/transaction/set_memory.h"
#include "rdma/base/random.h"

namespace rdmacc {
namespace {

TEST(SmallIndex, FindsWhatWasPutThereHoweverMuchThatIs) {
  std::pmr::monotonic_buffer_resource memory;
  SmallIndex<uint64_t> index(&memory);
  std::unordered_map<uint64_t, uint64_t*> model;
  std::deque<uint64_t> objects;
  Random random(3);
  for (int i = 0; i < 5'000; i++) {
    // Addresses of headers on two nodes, some of them more than once.
    const uint64_t number = random.below(2) << 48 | random.below(3'000) * 448;
    objects.push_back(number);
    index.at(number) = &objects.back();
    model[number] = &objects.back();
    const uint64_t other = random.below(2) << 48 | random.below(3'000) * 448;
    const auto expected = model.find(other);
    ASSERT_EQ(index.find(other), expected == model.end() ? nullptr : expected->second);
  }
  for (const auto& [number, object] : model) EXPECT_EQ(index.find(number), object);
}

TEST(LocationCache, KeepsTheLatestOfAPlaceAndForgetsIt) {
  LocationCache cache(16);
  Random random(5);
  for (int i = 0; i < 1'000; i++) {
    const uint64_t hash = random.next();
    EXPECT_EQ(cache.find(hash), 0u) << "it was never put there";
    cache.put(hash, 64 + 64 * random.below(1'000));
    EXPECT_NE(cache.find(hash), 0u);
    if (i % 2 == 0) cache.forget(hash);
    EXPECT_EQ(cache.find(hash) == 0, i % 2 == 0);
  }
}

TEST(LocationCache, WithoutPlacesKnowsNothing) {
  LocationCache cache(0);
  cache.put(7, 64);
  EXPECT_EQ(cache.find(7), 0u);
  cache.forget(7);
}

TEST(SetMemory, BlocksHaveTheRoomThatWasAskedForAndAreUsedAgain) {
  struct Block {
    char* at;
    size_t bytes;
    char filled;
  };
  SetMemory memory;
  std::vector<Block> blocks;
  Random random(7);
  for (int i = 0; i < 20'000; i++) {
    if (blocks.size() < 100 || random.below(2) == 0) {
      const size_t bytes = 1 + random.below(random.below(4) == 0 ? 6'000 : 200);
      auto* at = static_cast<char*>(memory.take(bytes));
      ASSERT_EQ(reinterpret_cast<uintptr_t>(at) % 8, 0u);
      blocks.push_back({at, bytes, static_cast<char>(i)});
      memset(at, blocks.back().filled, bytes);
      continue;
    }
    std::swap(blocks[random.below(blocks.size())], blocks.back());
    const Block given = blocks.back();
    blocks.pop_back();
    ASSERT_EQ(std::count(given.at, given.at + given.bytes, given.filled),
              static_cast<ptrdiff_t>(given.bytes));
    memory.give_back(given.at, given.bytes);
    void* const again = memory.take(given.bytes);
    ASSERT_TRUE(again == given.at || given.bytes > 4096) << given.bytes << " bytes";
    memory.give_back(again, given.bytes);
  }
}

}  // namespace
}  // namespace rdmacc
