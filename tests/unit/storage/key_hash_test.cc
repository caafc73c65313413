#include "engine/storage/layout/key_hash.h"

#include <gtest/gtest.h>
#include <xxhash.h>

#include <set>
#include <string>

namespace rdmacc {
namespace {

TEST(KeyHash, IsTheSameForEqualBytes) {
  EXPECT_EQ(hash_key(7, "alice"), hash_key(7, std::string("alice")));
  EXPECT_NE(hash_key(7, "alice"), hash_key(7, "alicf"));
  EXPECT_NE(hash_key(7, ""), hash_key(8, ""));
}

// Of keys of one word it is spelled out: keys that are stored already must be found.
TEST(KeyHash, IsXxh3WhateverTheLength) {
  const std::string bytes = "0123456789abcdefghij";
  for (const TableId table : {TableId{0}, TableId{7}, TableId{0x7FFFFFFF}}) {
    for (size_t length = 0; length <= bytes.size(); ++length) {
      const uint64_t seed = (table + 1ull) * 0x9E3779B97F4A7C15ull;
      EXPECT_EQ(hash_key(table, bytes.substr(0, length)),
                XXH3_64bits_withSeed(bytes.data(), length, seed))
          << table << ", " << length;
    }
  }
}

TEST(KeyHash, DiffersBetweenTables) {
  std::set<uint64_t> seen;
  for (TableId table = 1; table <= 1000; ++table) seen.insert(hash_key(table, "key"));
  EXPECT_EQ(seen.size(), 1000u);
}

TEST(KeyHash, SpreadsKeysOverPartitionsBucketsAndGroups) {
  constexpr uint32_t kKeys = 64 * 1024;
  std::vector<uint32_t> partitions(kPartitions), buckets(8), groups(16);
  for (uint32_t i = 0; i < kKeys; ++i) {
    const uint64_t hash = hash_key(3, std::to_string(i));
    ++partitions[partition_of(hash)];
    ++buckets[home_bucket_of(hash)];
    ++groups[group_bits_of(hash, 4)];
  }
  for (const uint32_t count : partitions) EXPECT_GT(count, 64 / 3u);
  for (const uint32_t count : buckets) EXPECT_NEAR(count, kKeys / 8, kKeys / 80);
  for (const uint32_t count : groups) EXPECT_NEAR(count, kKeys / 16, kKeys / 160);
}

std::string placed(std::string_view place, std::string_view rest) {
  std::string key{static_cast<char>(place.size()), static_cast<char>(place.size() >> 8)};
  return key.append(place).append(rest);
}

TEST(KeyHash, OfAPlacedTableHasThePartitionOfItsPlace) {
  const TableId one = 3 | kDistributedTable, other = 4 | kDistributedTable;
  std::set<PartitionId> partitions;
  for (int place = 0; place < 300; ++place) {
    const std::string where = "warehouse " + std::to_string(place);
    const PartitionId partition = partition_of(hash_key(one, placed(where, "")));
    partitions.insert(partition);
    std::set<uint64_t> hashes;
    for (int i = 0; i < 50; ++i) {
      const std::string key = placed(where, std::to_string(i));
      EXPECT_EQ(partition_of(hash_key(one, key)), partition);
      EXPECT_EQ(partition_of(hash_key(other, key)), partition);
      EXPECT_NE(hash_key(one, key), hash_key(other, key));
      hashes.insert(hash_key(one, key));
    }
    EXPECT_EQ(hashes.size(), 50u);
  }
  EXPECT_GT(partitions.size(), 200u);
}

TEST(KeyHash, TakesAMalformedKeyOfAPlacedTableWhole) {
  const TableId table = 3 | kDistributedTable;
  std::set<PartitionId> partitions;
  for (int i = 0; i < 100; ++i) {
    std::string key = placed(std::to_string(i), "");
    key[1] = 1;  // 256 bytes and more
    partitions.insert(partition_of(hash_key(table, key)));
  }
  EXPECT_GT(partitions.size(), 50u);
  EXPECT_EQ(hash_key(table, ""), hash_key(table, ""));
  EXPECT_NE(hash_key(table, "a"), hash_key(table, "b"));
}

}  // namespace
}  // namespace rdmacc
