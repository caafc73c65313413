// Slots that are handed out while their table is dropped.
#include <gtest/gtest.h>

#include <optional>

#include "test_index.h"

namespace rdmacc {
namespace {

using Coordinator = StorageCluster::Coordinator;
using Slot = StorageClient::SlotRequest;

constexpr uint64_t kCtts = 0x50001;

class DroppedTable : public ::testing::Test {
 protected:
  TableSpec spec() const {
    TableSpec spec;
    spec.relfilenode = 1;
    spec.record_size = TestIndex::kRecordSize;
    spec.history = 0;
    return spec;
  }
  uint64_t used() { return cluster_.storage(0).statistics().used_bytes; }
  Header& header(const Slot& slot) {
    return *reinterpret_cast<Header*>(cluster_.region(0) + slot.slot.offset());
  }

  // A transaction has a slot with an overflow block when its table goes; `ends` is what it does
  // then.
  void drop_beside_insert(const std::function<void(const Slot&)>& ends) {
    std::optional<AnnouncedEpoch> transaction;
    Slot slot{};
    cluster_.run([&](Coordinator& c) {
      const TableMeta table = c.client.create_table(spec(), c.worker.counters()).value();
      transaction.emplace(c);
      slot.table = table.id;
      slot.overflow_bytes = 3'000;
      ASSERT_TRUE(c.client.allocate(std::span(&slot, 1), kCtts, c.worker.counters()).ok());
      ASSERT_TRUE(c.client.drop_table(table.id, c.worker.counters()).ok());
      c.worker.scheduler().sleep_for(20'000);  // maintenance
      EXPECT_EQ(header(slot).lock, kCtts);
      EXPECT_EQ(header(slot).table, table.id) << "it is still the transaction's";
      ends(slot);
    });
    cluster_.run([&](Coordinator&) { transaction.reset(); });
  }

  StorageCluster cluster_{{.nodes = 1}};
};

TEST_F(DroppedTable, KeepsNoSlotOfAnInsertThatCommitsAfterwards) {
  cluster_.settle();
  const uint64_t before = used();
  for (int round = 0; round < 3; ++round) {
    drop_beside_insert([&](const Slot& slot) {
      Header& installed = header(slot);
      installed.wts = kCtts;
      installed.flags = kFlagLive | kFlagOverflow;
      const uint64_t block = slot.overflow.offset();
      std::memcpy(cluster_.region(0) + slot.slot.offset() + kOffsetOfRecord, &block, sizeof(block));
      installed.lock = 0;
    });
    cluster_.settle();
    EXPECT_EQ(used(), before);
  }
}

TEST_F(DroppedTable, LeavesASlotToTheTransactionThatHoldsIt) {
  cluster_.settle();
  const uint64_t before = used();
  Slot held{};
  drop_beside_insert([&held](const Slot& slot) { held = slot; });  // prepared, say
  cluster_.run([](Coordinator& c) { c.worker.scheduler().sleep_for(50'000); });
  EXPECT_GT(used(), before);
  EXPECT_EQ(header(held).lock, kCtts);
  const StorageClient::FreeRequest freed[] = {{held.slot, FreeKind::kSlot},
                                              {held.overflow, FreeKind::kOverflow}};
  cluster_.run([&](Coordinator& c) {
    EXPECT_TRUE(c.client.free(freed, kCtts, c.worker.counters()).ok());
    c.worker.scheduler().sleep_for(50'000);
  });
  cluster_.settle();
  EXPECT_EQ(used(), before);
}

// The node finds it locked and linked nowhere when it is opened again.
TEST_F(DroppedTable, KeepsNoRowThatWasLockedWhenTheNodeDied) {
  cluster_.settle();
  const uint64_t before = used();
  Slot row{};
  cluster_.run([&](Coordinator& c) {
    const TableMeta table = c.client.create_table(spec(), c.worker.counters()).value();
    TestIndex index(c, cluster_.topology(), table);
    ASSERT_TRUE(index.insert(7).ok());
    row.slot = index.find(7).value();
    header(row).lock = kCtts;
    ASSERT_TRUE(c.client.drop_table(table.id, c.worker.counters()).ok());
  });
  cluster_.kill_node(0);
  cluster_.start_node(0);
  cluster_.settle();
  EXPECT_GT(used(), before) << "a transaction holds it";
  header(row).lock = 0;
  cluster_.run([](Coordinator& c) { c.worker.scheduler().sleep_for(5'000'000); });
  cluster_.settle();
  EXPECT_EQ(used(), before);
}

}  // namespace
}  // namespace rdmacc
