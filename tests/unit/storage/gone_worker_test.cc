// What a worker has left on a node when it dies stays until the worker is resolved, also when the
// node's last look at the epoch was long ago.
#include <gtest/gtest.h>

#include "engine/storage/layout/control_area.h"
#include "engine/storage/layout/overflow.h"
#include "test_index.h"

namespace rdmacc {
namespace {

using Coordinator = StorageCluster::Coordinator;
using Slot = StorageClient::SlotRequest;

constexpr NodeId kOwner = 1;  // node 0 has the epoch and can be away
constexpr uint64_t kOthersRaise = 3;
constexpr uint64_t kBetweenLooksUs = 1'100'000;

class GoneWorker : public ::testing::Test {
 protected:
  uint64_t& word(NodeId node, uint64_t offset) {
    return *reinterpret_cast<uint64_t*>(cluster_.region(node) + offset);
  }
  uint64_t& epoch() { return word(0, cluster_.layout().control + offsetof(GateLine, epoch)); }
  uint64_t& announced() {
    const WorkerId worker = cluster_.coordinator(0).worker.id();
    return word(0, cluster_.layout().worker_line(worker) + offsetof(WorkerLine, epoch));
  }
  void maintain_owner(int rounds) {
    for (int i = 0; i < rounds; ++i) {
      cluster_.run_on_node(kOwner, [this] {
        cluster_.node_worker(kOwner).scheduler().sleep_for(kBetweenLooksUs);
        cluster_.storage(kOwner).maintain();
      });
    }
  }
  // The owner sees that the worker is gone while it cannot ask which epoch it is.
  void worker_dies_in_a_later_epoch() {
    maintain_owner(2);
    epoch() += kOthersRaise;
    announced() = epoch();
    cluster_.kill_coordinator(0);
    cluster_.kill_node(0);
    maintain_owner(2);
    cluster_.start_node(0);
    maintain_owner(6);
  }
  void worker_is_resolved() {
    announced() = 0;
    maintain_owner(6);
  }

  StorageCluster cluster_{
      {.nodes = 2, .coordinators = 1, .maintain = false, .dead_node_unreachable = true}};
};

TEST_F(GoneWorker, KeepsItsReservedBlocksUntilItIsResolved) {
  std::vector<GlobalAddress> blocks;
  cluster_.run([&](Coordinator& c) {
    ASSERT_TRUE(c.client.reserve_blocks(kOwner, 200, 1, blocks, c.worker.counters()).ok());
  });
  ASSERT_EQ(blocks.size(), 1u);
  const uint64_t owner_word = blocks[0].offset() + offsetof(OverflowHeader, owner_ctts);
  const uint64_t tag = word(kOwner, owner_word);
  ASSERT_NE(tag, 0u);
  worker_dies_in_a_later_epoch();
  EXPECT_EQ(word(kOwner, owner_word), tag) << "a transaction that is not resolved may have used it";
  worker_is_resolved();
  EXPECT_EQ(word(kOwner, owner_word), 0u);
}

// The slot and the block of an insert, which a restart of the owner finds.
TEST_F(GoneWorker, KeepsItsAllocationsUntilItIsResolved) {
  Slot slot{};
  uint64_t ctts = 0;
  cluster_.run([&](Coordinator& c) {
    TableSpec spec;
    spec.relfilenode = 1;
    spec.record_size = TestIndex::kRecordSize;
    spec.history = 0;
    slot.table = c.client.create_table(spec, c.worker.counters()).value().id;
    slot.key_hash = 77;  // one without a key is kept in advance
    slot.overflow_bytes = 200;
    slot.node = kOwner;
    ctts = c.next_ctts();
    ASSERT_TRUE(c.client.allocate(std::span(&slot, 1), ctts, c.worker.counters()).ok());
  });
  cluster_.kill_node(kOwner);
  cluster_.start_node(kOwner);
  const uint64_t lock_word = slot.slot.offset() + kOffsetOfLock;
  const uint64_t owner_word = slot.overflow.offset() + offsetof(OverflowHeader, owner_ctts);
  worker_dies_in_a_later_epoch();
  EXPECT_EQ(word(kOwner, lock_word), ctts);
  EXPECT_EQ(word(kOwner, owner_word), ctts);
  worker_is_resolved();
  EXPECT_EQ(word(kOwner, lock_word), 0u);
  EXPECT_EQ(word(kOwner, owner_word), 0u);
}

}  // namespace
}  // namespace rdmacc
