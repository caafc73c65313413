// Memory that was full of one shape serves every other shape when it is free.
#include <gtest/gtest.h>

#include <cstring>
#include <optional>

#include "engine/storage/layout/control_area.h"
#include "region_audit.h"
#include "storage_cluster.h"

namespace rdmacc {
namespace {

using Coordinator = StorageCluster::Coordinator;
using Slot = StorageClient::SlotRequest;
using Free = StorageClient::FreeRequest;

constexpr uint64_t kCtts = 0x50001;
constexpr uint64_t kMemoryBytes = 8ull << 20;

struct Shape {
  uint32_t record_size, history, overflow_bytes;
};
// Neighbours share no unit size.
constexpr Shape kShapes[] = {{16, 0, 0},    {512, 3, 0},     {64, 0, 9'000}, {256, 15, 0},
                             {200, 0, 700}, {16, 0, 60'000}, {128, 1, 0}};

class RecycledPages : public ::testing::Test {
 protected:
  uint64_t used() { return cluster_.storage(0).statistics().used_bytes; }
  uint64_t& word(uint64_t offset) {
    return *reinterpret_cast<uint64_t*>(cluster_.region(0) + offset);
  }
  uint64_t eras() { return word(offsetof(Superblock, address_era)); }

  TableId create(Coordinator& c, uint32_t number, const Shape& shape) {
    TableSpec spec;
    spec.relfilenode = number;
    spec.record_size = shape.record_size;
    spec.history = shape.history;
    auto table = c.client.create_table(spec, c.worker.counters());
    EXPECT_TRUE(table.ok()) << table.status().to_string();
    return table.ok() ? table->id : kNoTable;
  }
  // Allocates until memory is used up.
  std::vector<Free> fill(Coordinator& c, TableId table, const Shape& shape) {
    std::vector<Free> all;
    while (true) {
      std::vector<Slot> some(8);
      for (Slot& each : some) {
        each.table = table;
        each.overflow_bytes = shape.overflow_bytes;
      }
      const Status status = c.client.allocate(some, kCtts, c.worker.counters());
      if (!status.ok()) {
        EXPECT_EQ(status.code(), Code::kNoSpace) << status.to_string();
        return all;
      }
      for (const Slot& each : some) {
        all.push_back({each.slot, FreeKind::kSlot});
        if (!each.overflow.null()) all.push_back({each.overflow, FreeKind::kOverflow});
      }
    }
  }
  void free_all(Coordinator& c, const std::vector<Free>& units) {
    ASSERT_TRUE(c.client.free(units, kCtts, c.worker.counters()).ok());
    c.worker.scheduler().sleep_for(50'000);  // maintenance
  }

  StorageCluster cluster_{{.nodes = 1, .memory_bytes = kMemoryBytes}};
};

TEST_F(RecycledPages, ServeOtherShapesTwentyTimes) {
  cluster_.run([&](Coordinator& c) {
    const uint64_t before = used();
    for (uint32_t round = 0; round < 20; ++round) {
      const Shape& shape = kShapes[round % std::size(kShapes)];
      const TableId table = create(c, round + 1, shape);
      ASSERT_NE(table, kNoTable) << "round " << round;
      const std::vector<Free> units = fill(c, table, shape);
      EXPECT_GT(used(), kMemoryBytes * 9 / 10) << "round " << round;
      // Every other time the rows go with their table.
      if (round % 2 == 0) free_all(c, units);
      ASSERT_TRUE(c.client.drop_table(table, c.worker.counters()).ok());
      if (round % 2 != 0) free_all(c, units);
      c.worker.scheduler().sleep_for(50'000);
      EXPECT_EQ(used(), before) << "round " << round;
    }
  });
  EXPECT_GE(eras(), 10u);
}

TEST_F(RecycledPages, WaitForTransactionsThatBeganBefore) {
  std::optional<AnnouncedEpoch> transaction;
  std::vector<Free> units;
  cluster_.run([&](Coordinator& c) {
    const TableId table = create(c, 1, kShapes[0]);
    units = fill(c, table, kShapes[0]);
    free_all(c, units);
    // The pages that the table alone has used are empty, and may hold anything.
    const TableId other = create(c, 2, kShapes[1]);
    EXPECT_GT(fill(c, other, kShapes[1]).size(), 1'000u);
    ASSERT_TRUE(c.client.drop_table(other, c.worker.counters()).ok());
    c.worker.scheduler().sleep_for(5'000);
    transaction.emplace(c);
    c.worker.scheduler().sleep_for(50'000);
    // It began before the rows of `other` went: their pages stay what they are.
    const std::vector<Free> few = fill(c, table, kShapes[0]);
    EXPECT_LT(few.size(), units.size() / 4);
  });
  cluster_.run([&](Coordinator& c) {
    transaction.reset();
    c.worker.scheduler().sleep_for(50'000);
  });
}

// Pages that are about to become anything are the last ones for their own size.
TEST_F(RecycledPages, ServeTheirOwnSizeWhileTheyWait) {
  std::optional<AnnouncedEpoch> transaction;
  cluster_.run([&](Coordinator& c) {
    const TableId table = create(c, 1, kShapes[0]);
    const std::vector<Free> units = fill(c, table, kShapes[0]);
    ASSERT_TRUE(c.client.free(units, kCtts, c.worker.counters()).ok());
    for (int i = 0; i < 10'000 && eras() == 0; ++i) c.worker.scheduler().sleep_for(10);
    transaction.emplace(c);
    // The era cannot end: every page is withdrawn.
    c.worker.scheduler().sleep_for(2'000'000);
    EXPECT_EQ(eras(), 1u);
    EXPECT_EQ(fill(c, create(c, 2, kShapes[3]), kShapes[3]).size(), 0u);
    EXPECT_EQ(fill(c, table, kShapes[0]).size(), units.size());
  });
  cluster_.run([&](Coordinator&) { transaction.reset(); });
}

TEST_F(RecycledPages, LockedHeadersKeepTheirPage) {
  cluster_.run([&](Coordinator& c) {
    const TableId table = create(c, 1, kShapes[0]);
    const std::vector<Free> units = fill(c, table, kShapes[0]);
    const uint64_t locked = units[units.size() / 2].address.offset() + kOffsetOfLock;
    free_all(c, units);
    EXPECT_EQ(word(locked), 0u);
    const std::vector<Free> again = fill(c, table, kShapes[0]);
    ASSERT_TRUE(c.client.free(again, kCtts, c.worker.counters()).ok());
    word(locked) = 0x77'0003;  // of a transaction with a stale address
    c.worker.scheduler().sleep_for(50'000);
    const TableId other = create(c, 2, kShapes[1]);
    const std::vector<Free> rows = fill(c, other, kShapes[1]);
    EXPECT_EQ(word(locked), 0x77'0003u);
    // It serves nothing else until it is unlocked, and no era begins because of it.
    const uint64_t before = eras();
    c.worker.scheduler().sleep_for(10'000'000);
    EXPECT_EQ(eras(), before);
    EXPECT_EQ(fill(c, other, kShapes[1]).size(), 0u);
    word(locked) = 0;
    c.worker.scheduler().sleep_for(5'000'000);
    EXPECT_EQ(eras(), before + 1);
    EXPECT_GT(fill(c, other, kShapes[1]).size(), 100u);
  });
}

// A peer may write anything into a header: incarnations go on all the same.
TEST_F(RecycledPages, IncarnationsDoNotRunOut) {
  cluster_.run([&](Coordinator& c) {
    const TableId table = create(c, 1, kShapes[0]);
    const std::vector<Free> units = fill(c, table, kShapes[0]);
    free_all(c, units);
    word(units[units.size() / 2].address.offset() + kOffsetOfIdentity) = pack_words(kNoTable, ~0u);
    free_all(c, fill(c, create(c, 2, kShapes[1]), kShapes[1]));
    c.worker.scheduler().sleep_for(2'000'000);
    EXPECT_LT(word(offsetof(Superblock, incarnations_used)), 1'000u);
  });
}

TEST_F(RecycledPages, CountersOfErasAndEpochsEnd) {
  const RegionLayout layout(cluster_.topology());
  uint64_t& epoch_word = word(layout.control + offsetof(GateLine, epoch));
  cluster_.run([&](Coordinator& c) {
    const TableId table = create(c, 1, kShapes[0]);
    const std::vector<Free> units = fill(c, table, kShapes[0]);
    EXPECT_FALSE(cluster_.storage(0).out_of_eras());
    epoch_word = epoch_of(epoch_word) + (kErasMax - 1) * kEra;
    const uint64_t before = eras();
    free_all(c, units);
    c.worker.scheduler().sleep_for(2'000'000);
    EXPECT_TRUE(cluster_.storage(0).out_of_eras());
    EXPECT_EQ(eras(), before);
    EXPECT_EQ(fill(c, table, kShapes[0]).size(), units.size()) << "its own size it serves";
    epoch_word = kEra - 1;
    ASSERT_TRUE(c.client.drop_table(table, c.worker.counters()).ok());
    c.worker.scheduler().sleep_for(2'000'000);
    EXPECT_EQ(epoch_word, kEra - 1);
  });
}

TEST_F(RecycledPages, AreEmptyOnesAfterARestart) {
  cluster_.run([&](Coordinator& c) {
    const TableId table = create(c, 1, kShapes[0]);
    free_all(c, fill(c, table, kShapes[0]));
  });
  for (int round = 0; round < 3; ++round) {
    cluster_.run([&](Coordinator& c) {
      const Shape& shape = kShapes[round + 1];
      const TableId table = create(c, 2, shape);
      const std::vector<Free> units = fill(c, table, shape);
      EXPECT_GT(used(), kMemoryBytes * 8 / 10) << "round " << round;
      ASSERT_TRUE(c.client.free(units, kCtts, c.worker.counters()).ok());
      ASSERT_TRUE(c.client.drop_table(table, c.worker.counters()).ok());
    });
    ASSERT_TRUE(cluster_.try_restart(0).ok());
    cluster_.run([](Coordinator& c) { c.worker.scheduler().sleep_for(100'000); });
  }
}

}  // namespace
}  // namespace rdmacc
