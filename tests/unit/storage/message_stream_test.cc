// Allocations and frees of more items than a message holds.
#include <gtest/gtest.h>

#include <set>

#include "storage_cluster.h"

namespace rdmacc {
namespace {

using Coordinator = StorageCluster::Coordinator;
using Slot = StorageClient::SlotRequest;

class AllocationInMessages : public ::testing::Test {
 protected:
  AllocationInMessages() {
    cluster_.run([&](Coordinator& c) {
      TableSpec spec;
      spec.relfilenode = 1;
      spec.record_size = 400;
      table_ = c.client.create_table(spec, c.worker.counters()).value().id;
    });
  }

  // Of both nodes in turns, more of each than a message holds.
  std::vector<Slot> requests(size_t count) {
    std::vector<Slot> all(count);
    for (size_t i = 0; i < count; ++i) {
      all[i].table = table_;
      all[i].key_hash = 1'000 + i;
      all[i].node = static_cast<NodeId>(i % 2);
    }
    return all;
  }
  Header& header(GlobalAddress at) {
    return *reinterpret_cast<Header*>(cluster_.region(at.node()) + at.offset());
  }

  StorageCluster cluster_{{.nodes = 2, .memory_bytes = 48ull << 20}};
  TableId table_ = kNoTable;
};

TEST_F(AllocationInMessages, GivesEachRequestItsSlotAndTakesAllBack) {
  cluster_.run([&](Coordinator& c) {
    std::vector<Slot> slots = requests(2 * (2 * kItemsPerMessage + 3));
    const VerbCounters before = c.worker.counters();
    ASSERT_TRUE(c.client.allocate(slots, 0x50001, c.worker.counters()).ok());
    EXPECT_EQ(c.worker.counters().messages - before.messages, 6u);
    EXPECT_EQ(c.worker.counters().round_trips - before.round_trips, 1u);
    std::set<uint64_t> distinct;
    for (size_t i = 0; i < slots.size(); ++i) {
      ASSERT_EQ(slots[i].slot.node(), i % 2);
      ASSERT_EQ(header(slots[i].slot).key_hash, 1'000 + i);
      ASSERT_EQ(header(slots[i].slot).incarnation, slots[i].incarnation);
      distinct.insert(slots[i].slot.bits);
    }
    EXPECT_EQ(distinct.size(), slots.size());
    std::vector<StorageClient::FreeRequest> frees;
    for (const Slot& each : slots) frees.push_back({each.slot, FreeKind::kSlot});
    ASSERT_TRUE(c.client.free(frees, 0x50001, c.worker.counters()).ok());
    for (const Slot& each : slots) ASSERT_EQ(header(each.slot).lock, 0u);
  });
}

TEST_F(AllocationInMessages, GivesBackWhatSomeMessagesGotWhenAnotherFails) {
  cluster_.run([&](Coordinator& c) {
    std::vector<Slot> slots = requests(2 * (2 * kItemsPerMessage + 3));
    slots.back().table = table_ + 1;  // which there is not: in the last message
    EXPECT_EQ(c.client.allocate(slots, 0x50001, c.worker.counters()).code(), Code::kNotFound);
    for (const Slot& each : slots) ASSERT_TRUE(each.slot.null());
    auto size = c.client.table_size(table_, c.worker.counters());
    ASSERT_TRUE(size.ok());
    EXPECT_EQ(size->rows, 0u);
  });
}

}  // namespace
}  // namespace rdmacc
