#include "engine/cluster/partition_map.h"

#include <gmock/gmock.h>

namespace rdmacc {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

TEST(PartitionMap, SpreadsPartitionsOverAllNodes) {
  const PartitionMap map(3, 0);
  std::vector<int> partitions(3);
  for (PartitionId p = 0; p < kPartitions; ++p) ++partitions[map.primary(p)];
  for (const int count : partitions) EXPECT_NEAR(count, 341, 1);
}

TEST(PartitionMap, PrimaryOfAKeyIsThatOfItsPartition) {
  const PartitionMap map(5, 1);
  const uint64_t hash = 0xABCDEF0123456789ull;
  EXPECT_EQ(map.primary_of(hash), map.primary(partition_of(hash)));
}

TEST(PartitionMap, LogsAtThePrimariesWithoutReplicas) {
  const PartitionMap map(4, 0);
  EXPECT_THAT(map.log_nodes({true, false, true}), ElementsAre(0, 2));
}

TEST(PartitionMap, LogsAtEveryBackupOfEveryWrittenPartitionOnce) {
  const PartitionMap map(4, 2);
  EXPECT_THAT(map.log_nodes({true, false, false, false}), ElementsAre(1, 2));
  EXPECT_THAT(map.log_nodes({true, false, false, true}), ElementsAre(0, 1, 2));
  EXPECT_THAT(map.log_nodes({true, true, true, true}), ElementsAre(0, 1, 2, 3));
}

TEST(PartitionMap, ReadOnlyTransactionsLogNowhere) {
  EXPECT_THAT(PartitionMap(2, 1).log_nodes({false, false}), IsEmpty());
}

}  // namespace
}  // namespace rdmacc
