#include "engine/storage/key_hash.h"

#include <gtest/gtest.h>

#include <set>
#include <string>

namespace rdmacc {
namespace {

TEST(KeyHash, IsTheSameForEqualBytes) {
  EXPECT_EQ(hash_key(7, "alice"), hash_key(7, std::string("alice")));
  EXPECT_NE(hash_key(7, "alice"), hash_key(7, "alicf"));
  EXPECT_NE(hash_key(7, ""), hash_key(8, ""));
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

}  // namespace
}  // namespace rdmacc
