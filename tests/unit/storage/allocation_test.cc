#include <gtest/gtest.h>

#include <map>
#include <optional>
#include <set>

#include "engine/storage/layout/control_area.h"
#include "engine/storage/layout/overflow.h"
#include "region_audit.h"
#include "storage_cluster.h"

namespace rdmacc {
namespace {

using Coordinator = StorageCluster::Coordinator;
using Slot = StorageClient::SlotRequest;
using Free = StorageClient::FreeRequest;

class Allocation : public ::testing::Test {
 protected:
  explicit Allocation(StorageCluster::Options options = {.nodes = 1, .memory_bytes = 0})
      : cluster_(options) {
    cluster_.run([&](Coordinator& c) {
      TableSpec spec;
      spec.relfilenode = 1;
      spec.record_size = 400;
      spec.history = 3;
      table_ = c.client.create_table(spec, c.worker.counters()).value().id;
    });
  }

  // Allocates batches until one is refused.
  std::vector<Slot> fill(Coordinator& c, uint64_t ctts, uint32_t overflow_bytes, bool want_slot) {
    std::vector<Slot> all;
    while (true) {
      std::vector<Slot> some(16);
      for (Slot& each : some) {
        each.table = table_;
        each.key_hash = 77;
        each.overflow_bytes = overflow_bytes;
        each.want_slot = want_slot;
      }
      const Status status = c.client.allocate(some, ctts, c.worker.counters());
      if (!status.ok()) {
        EXPECT_EQ(status.code(), Code::kNoSpace);
        EXPECT_NE(status.message().find("node 0: memory is used up ("), std::string::npos)
            << status.message();
        for (const Slot& each : some) EXPECT_TRUE(each.slot.null());
        return all;
      }
      all.insert(all.end(), some.begin(), some.end());
    }
  }
  static std::vector<Free> frees_of(const std::vector<Slot>& slots) {
    std::vector<Free> frees;
    for (const Slot& each : slots) {
      if (!each.slot.null()) frees.push_back({each.slot, FreeKind::kSlot});
      if (!each.overflow.null()) frees.push_back({each.overflow, FreeKind::kOverflow});
    }
    return frees;
  }
  Header& header(GlobalAddress address) {
    return *reinterpret_cast<Header*>(cluster_.region(0) + address.offset());
  }
  uint64_t& word(uint64_t offset) {
    return *reinterpret_cast<uint64_t*>(cluster_.region(0) + offset);
  }

  StorageCluster cluster_;
  TableId table_ = kNoTable;
};

TEST_F(Allocation, HandsOutLockedSlotsWithTheirKeyAndEmptyHistory) {
  cluster_.run([&](Coordinator& c) {
    Slot slot{};
    slot.table = table_;
    slot.key_hash = 4711;
    ASSERT_TRUE(c.client.allocate(std::span(&slot, 1), 0x50001, c.worker.counters()).ok());
    const Header& seen = header(slot.slot);
    EXPECT_EQ(seen.lock, 0x50001u);
    EXPECT_EQ(seen.key_hash, 4711u);
    EXPECT_EQ(seen.table, table_);
    EXPECT_EQ(seen.incarnation, slot.incarnation);
    EXPECT_EQ(seen.flags, 0u);
    EXPECT_EQ(seen.length, 0u);
    EXPECT_TRUE(slot.overflow.null());
    EXPECT_EQ(word(slot.slot.offset() + 64 + 400), kNoOlderVersion);
  });
}

TEST_F(Allocation, TagsOverflowBlocksWithTheirOwner) {
  cluster_.run([&](Coordinator& c) {
    // The longest takes several pages.
    for (const uint32_t bytes : {5'000u, 300'000u, static_cast<uint32_t>(kOverflowBytesMax)}) {
      Slot block{};
      block.overflow_bytes = bytes;
      block.want_slot = false;
      ASSERT_TRUE(c.client.allocate(std::span(&block, 1), 0x60001, c.worker.counters()).ok());
      EXPECT_TRUE(block.slot.null());
      EXPECT_EQ(word(block.overflow.offset()), 0x60001u);
      EXPECT_GE(word(block.overflow.offset() + 8), bytes);
      const Free freed{block.overflow, FreeKind::kOverflow};
      EXPECT_TRUE(c.client.free(std::span(&freed, 1), 0, c.worker.counters()).ok());
      EXPECT_EQ(word(block.overflow.offset()), 0u);
    }
  });
}

TEST_F(Allocation, RefusesWhenMemoryIsFullAndServesAgainAfterAFree) {
  cluster_.run([&](Coordinator& c) {
    for (const uint32_t overflow : {60'000u, 3'000u, 0u}) {
      std::vector<Slot> first = fill(c, 0x10001, overflow, overflow == 0);
      EXPECT_GT(first.size(), 10u);
      const std::vector<Free> frees = frees_of(first);
      ASSERT_TRUE(c.client.free(frees, 0x10001, c.worker.counters()).ok());
      c.worker.scheduler().sleep_for(2'000);  // maintenance
      std::vector<Slot> second = fill(c, 0x20001, overflow, overflow == 0);
      EXPECT_GE(second.size(), first.size());
      ASSERT_TRUE(c.client.free(frees_of(second), 0x20001, c.worker.counters()).ok());
      c.worker.scheduler().sleep_for(2'000);
    }
  });
}

TEST_F(Allocation, BlocksOfSeveralPagesComeBackWhole) {
  cluster_.run([&](Coordinator& c) {
    const auto fill_one_by_one = [&](uint64_t ctts) {
      std::vector<Slot> all;
      Slot block{};
      block.overflow_bytes = 300'000;
      block.want_slot = false;
      while (c.client.allocate(std::span(&block, 1), ctts, c.worker.counters()).ok()) {
        all.push_back(block);
      }
      return all;
    };
    const std::vector<Slot> first = fill_one_by_one(0x10001);
    EXPECT_GT(first.size(), 3u);
    ASSERT_TRUE(c.client.free(frees_of(first), 0x10001, c.worker.counters()).ok());
    c.worker.scheduler().sleep_for(2'000);  // maintenance
    const std::vector<Slot> second = fill_one_by_one(0x20001);
    EXPECT_EQ(second.size(), first.size());
    for (const Slot& each : second) {
      for (uint64_t at = 16; at < 300'000; at += 8) {
        ASSERT_EQ(word(each.overflow.offset() + at), 0u) << "what was there before shows through";
      }
    }
    ASSERT_TRUE(c.client.free(frees_of(second), 0x20001, c.worker.counters()).ok());
  });
}

TEST_F(Allocation, NeverHandsOutOverlappingUnits) {
  RegionAudit audit;
  cluster_.run([&](Coordinator& c) {
    for (const Slot& each : fill(c, 0x10001, 700, true)) {
      ASSERT_TRUE(audit.add(each.slot.offset(), slot_bytes(400, 3)));
      ASSERT_TRUE(audit.add(each.overflow.offset(), 16 + 700));
    }
  });
}

TEST_F(Allocation, ReusesASlotOnlyAfterAllTransactionsThatMayKnowIt) {
  constexpr size_t kKeptOneIn = 32;
  cluster_.run([&](Coordinator& c) {
    std::map<uint64_t, uint32_t> incarnations;
    const std::vector<Slot> first = fill(c, 0x10001, 0, true);
    for (const Slot& each : first) incarnations[each.slot.bits] = each.incarnation;
    header(first[0].slot).wts = 500;
    header(first[0].slot).rts = 600;
    word(first[0].slot.offset() + 64) = 0xDEAD;
    {
      AnnouncedEpoch reader(c);
      // Some stay, so that no page becomes empty.
      std::vector<Slot> freed;
      for (size_t i = 0; i < first.size(); ++i) {
        if (i % kKeptOneIn != 1) freed.push_back(first[i]);
      }
      ASSERT_TRUE(c.client.free(frees_of(freed), 0x10001, c.worker.counters()).ok());
      c.worker.scheduler().sleep_for(5'000);
      EXPECT_TRUE(fill(c, 0x20001, 0, true).empty());
      // A reader may still be at it: the row's bytes are left alone.
      EXPECT_EQ(word(first[0].slot.offset() + 64), 0xDEADu);
    }
    c.worker.scheduler().sleep_for(5'000);
    EXPECT_EQ(word(first[0].slot.offset() + 64), 0u);
    std::vector<Slot> second = fill(c, 0x30001, 0, true);
    size_t again = 0;
    for (const Slot& each : second) {
      if (!incarnations.contains(each.slot.bits)) continue;  // did not fill a batch before
      EXPECT_GT(each.incarnation, incarnations[each.slot.bits]);
      ++again;
    }
    EXPECT_GT(again, first.size() * 9 / 10);
    EXPECT_EQ(header(first[0].slot).wts, 500u);
    EXPECT_EQ(header(first[0].slot).rts, 600u);
  });
}

class UnmaintainedAllocation : public Allocation {
 protected:
  UnmaintainedAllocation() : Allocation({.nodes = 1, .memory_bytes = 0, .maintain = false}) {}
};

TEST_F(UnmaintainedAllocation, MaintenanceTellsThatItOnlyWaitsForATransaction) {
  constexpr int kRoundsMax = 10;  // two epochs, and what they free
  std::optional<AnnouncedEpoch> reader;
  cluster_.run([&](Coordinator& c) {
    reader.emplace(c);
    Slot slot{};
    slot.table = table_;
    ASSERT_TRUE(c.client.allocate(std::span(&slot, 1), 0x10001, c.worker.counters()).ok());
    const Free freed{slot.slot, FreeKind::kSlot};
    ASSERT_TRUE(c.client.free(std::span(&freed, 1), 0x10001, c.worker.counters()).ok());
  });
  cluster_.run_on_node(0, [&] {
    StorageService& storage = cluster_.storage(0);
    for (int i = 0; i < kRoundsMax && storage.maintain(); ++i) continue;
    for (int i = 0; i < kRoundsMax; ++i) EXPECT_FALSE(storage.maintain());
    EXPECT_TRUE(storage.maintenance_pending());
  });
  cluster_.run([&](Coordinator&) { reader.reset(); });
  cluster_.run_on_node(0, [&] {
    StorageService& storage = cluster_.storage(0);
    EXPECT_TRUE(storage.maintain());
    for (int i = 0; i < kRoundsMax && storage.maintenance_pending(); ++i) storage.maintain();
    EXPECT_FALSE(storage.maintenance_pending());
  });
}

TEST_F(Allocation, TakesAnotherSlotWhenAStaleLockerHoldsTheFreeOne) {
  cluster_.run([&](Coordinator& c) {
    Slot slot{};
    slot.table = table_;
    ASSERT_TRUE(c.client.allocate(std::span(&slot, 1), 0x10001, c.worker.counters()).ok());
    const Free freed{slot.slot, FreeKind::kSlot};
    ASSERT_TRUE(c.client.free(std::span(&freed, 1), 0x10001, c.worker.counters()).ok());
    EXPECT_EQ(header(slot.slot).lock, 0u);
    c.worker.scheduler().sleep_for(5'000);
    header(slot.slot).lock = 0x70003;  // by an address from before
    for (const Slot& each : fill(c, 0x20001, 0, true)) EXPECT_NE(each.slot, slot.slot);
    EXPECT_EQ(header(slot.slot).lock, 0x70003u);
  });
}

TEST_F(Allocation, IgnoresARepeatedFree) {
  cluster_.run([&](Coordinator& c) {
    Slot slot{};
    slot.table = table_;
    slot.overflow_bytes = 100;
    ASSERT_TRUE(c.client.allocate(std::span(&slot, 1), 0x10001, c.worker.counters()).ok());
    const std::vector<Free> frees = frees_of({slot, slot});
    const uint64_t rows = cluster_.storage(0).statistics().rows;
    ASSERT_TRUE(c.client.free(frees, 0x10001, c.worker.counters()).ok());
    ASSERT_TRUE(c.client.free(frees, 0x10001, c.worker.counters()).ok());
    EXPECT_EQ(cluster_.storage(0).statistics().rows, rows - 1);
  });
}

// The owner took it back, and another insert has it: as its row is unlocked before it is linked, it
// looks like one that was freed. Only its lock says that the sender still has it.
TEST_F(Allocation, ALateReturnOfAReservedSlotFreesNothing) {
  cluster_.run([&](Coordinator& c) {
    const uint64_t tag = 0x70000 | c.worker.id();
    std::vector<Slot> kept;
    ASSERT_TRUE(c.client.reserve_slots(0, table_, 2, tag, kept, c.worker.counters()).ok());
    ASSERT_EQ(2u, kept.size());
    header(kept[0].slot).lock = 0;
    for (const Slot& each : kept) {
      const Free returned{each.slot, FreeKind::kReserved};
      ASSERT_TRUE(c.client.free(std::span(&returned, 1), tag, c.worker.counters()).ok());
    }
    EXPECT_EQ(0u, header(kept[1].slot).lock);
    header(kept[1].slot).lock = 0;
    c.worker.scheduler().sleep_for(5'000);
    // What was freed is handed out again; what another one has is not.
    for (const Slot& each : fill(c, 0x20001, 0, true)) EXPECT_NE(each.slot, kept[0].slot);
  });
}

TEST_F(Allocation, TakesReservedSlotsBackBeforeMemoryIsUsedUp) {
  cluster_.run([&](Coordinator& c) {
    const std::vector<Slot> all = fill(c, 0x20001, 0, true);
    ASSERT_GT(all.size(), 100u);
    ASSERT_TRUE(c.client.free(frees_of(all), 0x20001, c.worker.counters()).ok());
    c.worker.scheduler().sleep_for(5'000);
    const uint64_t tag = 0x70000 | c.worker.id();
    std::vector<Slot> kept;
    ASSERT_TRUE(c.client.reserve_slots(0, table_, 64, tag, kept, c.worker.counters()).ok());
    std::set<uint64_t> got;
    for (const Slot& each : fill(c, 0x30001, 0, true)) got.insert(each.slot.bits);
    for (const Slot& each : kept) EXPECT_TRUE(got.contains(each.slot.bits));
  });
}

// Otherwise a record that is installed in it would look as if the worker still kept the block,
// which is freed when that one has gone.
TEST_F(Allocation, NoTransactionHasTheTagOfAKeptBlock) {
  cluster_.run([&](Coordinator& c) {
    for (const uint64_t bytes : {uint64_t{8}, kKeptBlockBytesMax}) {
      std::vector<GlobalAddress> blocks;
      ASSERT_TRUE(
          c.client.reserve_blocks(0, static_cast<uint32_t>(bytes), 4, blocks, c.worker.counters())
              .ok());
      for (const GlobalAddress block : blocks) {
        EXPECT_GE(word(block.offset()), kKeptBit);
        EXPECT_EQ(static_cast<WorkerId>(word(block.offset())), c.worker.id());
      }
    }
  });
}

// After a restart of its node a slot that is locked may be kept, or that of an insert that is
// committed and not yet installed: its owner cannot tell.
TEST_F(Allocation, ARestartedNodeTakesNothingBackThatMayBeAnInserts) {
  constexpr uint64_t kCtts = 0x80000;
  GlobalAddress inserted;
  cluster_.run([&](Coordinator& c) {
    const uint64_t tag = 0x70000 | c.worker.id();
    std::vector<Slot> kept;
    ASSERT_TRUE(c.client.reserve_slots(0, table_, 8, tag, kept, c.worker.counters()).ok());
    inserted = kept[3].slot;
    header(inserted).lock = kCtts | c.worker.id();
  });
  cluster_.kill_node(0);
  cluster_.start_node(0);
  cluster_.run([&](Coordinator& c) {
    for (const Slot& each : fill(c, 0x30001, 0, true)) EXPECT_NE(each.slot, inserted);
    EXPECT_EQ(header(inserted).lock, kCtts | c.worker.id());
  });
}

TEST(AllocationOnManyNodes, GivesEverythingBackWhenOneNodeRefuses) {
  StorageCluster cluster({.nodes = 2, .memory_bytes = 0});
  cluster.run([&](Coordinator& c) {
    TableSpec spec;
    spec.relfilenode = 1;
    const TableId table = c.client.create_table(spec, c.worker.counters()).value().id;
    const uint64_t rows = cluster.storage(0).statistics().rows;
    std::vector<Slot> requests(64);
    for (size_t i = 0; i < requests.size(); ++i) {
      requests[i].table = table;
      requests[i].node = i == 0 ? 0 : 1;
      requests[i].overflow_bytes = i == 0 ? 0 : 60'000;
    }
    EXPECT_EQ(c.client.allocate(requests, 0x10001, c.worker.counters()).code(), Code::kNoSpace);
    for (const Slot& each : requests) EXPECT_TRUE(each.slot.null() && each.overflow.null());
    EXPECT_EQ(cluster.storage(0).statistics().rows, rows);
    EXPECT_EQ(cluster.storage(1).statistics().rows, 0u);
  });
}

}  // namespace
}  // namespace rdmacc
