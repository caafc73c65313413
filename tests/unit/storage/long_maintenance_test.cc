// A node that has much to look at serves requests meanwhile.
#include <gtest/gtest.h>

#include "engine/storage/layout/overflow.h"
#include "engine/storage/layout/tuple.h"
#include "storage_cluster.h"

namespace rdmacc {
namespace {

using Coordinator = StorageCluster::Coordinator;

class LongMaintenance : public ::testing::Test {
 protected:
  static constexpr uint32_t kUnits = 4 * 1024;
  static constexpr uint64_t kLookedAtAfterUs = 1'000'000;
  static constexpr WorkerId kWorker = 1;  // the coordinator's

  LongMaintenance() : cluster_({.nodes = 1, .maintain = false}) {
    cluster_.run([&](Coordinator& c) {
      TableSpec spec;
      spec.relfilenode = 1;
      spec.record_size = 64;
      table_ = c.client.create_table(spec, c.worker.counters()).value().id;
    });
  }

  void reserve_blocks() {
    cluster_.run([&](Coordinator& c) {
      for (uint32_t i = 0; i < kUnits; i += kReservedBlocksMax) {
        ASSERT_TRUE(
            c.client.reserve_blocks(0, 64, kReservedBlocksMax, blocks_, c.worker.counters()).ok());
      }
      ASSERT_EQ(blocks_.size(), kUnits);
      c.worker.scheduler().sleep_for(kLookedAtAfterUs);
    });
  }
  void reserve_slots() {
    cluster_.run([&](Coordinator& c) {
      std::vector<StorageClient::SlotRequest> slots;
      while (slots.size() < kUnits) {
        ASSERT_TRUE(c.client
                        .reserve_slots(0, table_, kReservedSlotsMax, c.next_ctts(), slots,
                                       c.worker.counters())
                        .ok());
      }
      for (const auto& each : slots) slots_.push_back(each.slot);
      c.worker.scheduler().sleep_for(kLookedAtAfterUs);
    });
  }

  // How often another coroutine of the node has its turn while `body` runs on the node.
  uint64_t turns_during(const std::function<void()>& body) {
    uint64_t turns = 0;
    cluster_.run_on_node(0, [&] {
      bool over = false, left = false;
      Scheduler& scheduler = cluster_.node_worker(0).scheduler();
      ASSERT_TRUE(scheduler.spawn([&] {
        while (!over) {
          scheduler.yield();
          ++turns;
        }
        left = true;
      }));
      body();
      over = true;
      while (!left) scheduler.yield();
    });
    return turns;
  }
  uint64_t turns_of_maintenance(int rounds = 1) {
    return turns_during([&] {
      for (int i = 0; i < rounds; ++i) cluster_.storage(0).maintain();
    });
  }

  StorageCluster cluster_;
  TableId table_ = kNoTable;
  std::vector<GlobalAddress> blocks_, slots_;
};

TEST_F(LongMaintenance, LooksAtBlocksThatWorkersKeep) {
  reserve_blocks();
  EXPECT_GT(turns_of_maintenance(), kUnits / 64);
}

TEST_F(LongMaintenance, LooksAtSlotsThatWorkersKeep) {
  reserve_slots();
  EXPECT_GT(turns_of_maintenance(), kUnits / 64);
}

TEST_F(LongMaintenance, MakesFreeWhatWasGivenBack) {
  reserve_blocks();
  turns_of_maintenance();
  cluster_.run([&](Coordinator& c) {
    std::vector<StorageClient::FreeRequest> frees;
    for (const GlobalAddress block : blocks_) frees.push_back({block, FreeKind::kOverflow});
    ASSERT_TRUE(c.client.free(frees, 0, c.worker.counters()).ok());
  });
  const uint64_t used = cluster_.storage(0).statistics().used_bytes;
  EXPECT_GT(turns_of_maintenance(5), kUnits / 64);  // some epochs
  EXPECT_LT(cluster_.storage(0).statistics().used_bytes, used - kUnits * 64);
}

TEST_F(LongMaintenance, CountsWhatWorkersKeep) {
  reserve_blocks();
  reserve_slots();
  const NodeStatistics directly = cluster_.storage(0).statistics();
  NodeStatistics counted{};
  EXPECT_GT(turns_during([&] { counted = cluster_.storage(0).statistics(); }), 2 * kUnits / 64);
  EXPECT_EQ(counted.used_bytes, directly.used_bytes);
  EXPECT_EQ(counted.rows, 0u);
}

// What comes while it looks is there for the next look.
TEST_F(LongMaintenance, BlocksAreReservedMeanwhile) {
  reserve_blocks();
  bool over = false;
  std::vector<GlobalAddress> more;
  const uint64_t turns = turns_during([&] {
    Scheduler& scheduler = cluster_.node_worker(0).scheduler();
    ASSERT_TRUE(scheduler.spawn([&] {
      std::vector<uint64_t> some;
      for (; !over; some.clear()) {
        ASSERT_TRUE(cluster_.storage(0).reserve_blocks(kWorker, 64, 1, some).ok());
        more.push_back(GlobalAddress::make(0, some.at(0)));
        scheduler.yield();
      }
    }));
    cluster_.storage(0).maintain();
    over = true;
  });
  EXPECT_GT(turns, kUnits / 64);
  ASSERT_GT(more.size(), kUnits / 64);
  cluster_.run([&](Coordinator& c) {
    std::vector<StorageClient::FreeRequest> frees;
    for (const GlobalAddress block : more) frees.push_back({block, FreeKind::kOverflow});
    EXPECT_TRUE(c.client.free(frees, 0, c.worker.counters()).ok());
  });
}

// Some of a table's go at once when it is dropped, and all others at the next look, which a count
// of what is kept does not disturb.
TEST_F(LongMaintenance, KeptSlotsOfADroppedTableAreTakenBack) {
  reserve_slots();
  cluster_.run([&](Coordinator& c) {
    EXPECT_TRUE(c.client.drop_table(table_, c.worker.counters()).ok());
    c.worker.scheduler().sleep_for(kLookedAtAfterUs);
  });
  uint64_t counts = 0;
  cluster_.run_on_node(0, [&] {
    bool over = false, left = false;
    Scheduler& scheduler = cluster_.node_worker(0).scheduler();
    ASSERT_TRUE(scheduler.spawn([&] {
      while (!over) {
        EXPECT_EQ(cluster_.storage(0).statistics().rows, 0u);
        ++counts;
      }
      left = true;
    }));
    cluster_.storage(0).maintain();
    over = true;
    while (!left) scheduler.yield();
  });
  EXPECT_GT(counts, 0u);
  for (const GlobalAddress slot : slots_) {
    const auto* header = reinterpret_cast<const Header*>(cluster_.region(0) + slot.offset());
    EXPECT_EQ(header->lock, 0u);
  }
}

}  // namespace
}  // namespace rdmacc
