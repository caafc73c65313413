// Splits that find no memory are tried again when there is some.
#include <gtest/gtest.h>

#include "region_audit.h"
#include "test_index.h"

namespace rdmacc {
namespace {

using Coordinator = StorageCluster::Coordinator;

using Free = StorageClient::FreeRequest;

TableSpec spec() {
  TableSpec spec;
  spec.relfilenode = 1;
  spec.record_size = TestIndex::kRecordSize;
  spec.history = 0;
  return spec;
}

// Overflow blocks of a page each, until there is no page left.
std::vector<Free> take_all_pages(Coordinator& c, uint64_t ctts) {
  std::vector<Free> taken;
  while (true) {
    StorageClient::SlotRequest block{};
    block.want_slot = false;
    block.overflow_bytes = 200'000;
    const Status status = c.client.allocate(std::span(&block, 1), ctts, c.worker.counters());
    if (!status.ok()) return taken;
    taken.push_back({block.overflow, FreeKind::kOverflow});
  }
}

void maintain(StorageCluster& cluster) {
  cluster.run_on_node(0, [&] {
    for (int i = 0; i < 50 && cluster.storage(0).maintenance_pending(); ++i) {
      cluster.storage(0).maintain();
    }
  });
}

uint64_t splits(StorageCluster& cluster) { return cluster.storage(0).statistics().splits; }

TEST(SplitWithoutMemory, IsTriedAgainWithoutAnotherRequest) {
  constexpr uint64_t kKeys = 1'500, kCtts = 0x50001;
  StorageCluster cluster({.nodes = 1, .memory_bytes = 0, .maintain = false});
  std::vector<Free> taken;
  cluster.run([&](Coordinator& c) {
    const TableMeta table = c.client.create_table(spec(), c.worker.counters()).value();
    TestIndex index(c, cluster.topology(), table);
    for (uint64_t key = 0; key < kKeys; ++key) ASSERT_TRUE(index.insert(key).ok());
    taken = take_all_pages(c, kCtts);
  });
  ASSERT_GT(taken.size(), 1u);
  maintain(cluster);
  EXPECT_EQ(splits(cluster), 0u);  // no root array of twice the size
  cluster.run([&](Coordinator& c) {
    c.worker.scheduler().sleep_for(10'000);
    ASSERT_TRUE(c.client.free(taken, kCtts, c.worker.counters()).ok());
  });
  for (int round = 0; round < 10; ++round) {
    maintain(cluster);
    cluster.run([](Coordinator& c) { c.worker.scheduler().sleep_for(10'000); });
  }
  EXPECT_GT(splits(cluster), 16u);
  const RegionAudit audit = RegionAudit::of(cluster.region(0), cluster.layout());
  EXPECT_EQ(audit.fault, "");
  EXPECT_EQ(audit.entries, kKeys);
}

}  // namespace
}  // namespace rdmacc
