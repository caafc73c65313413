#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <optional>
#include <set>

#include "engine/storage/control_area.h"
#include "engine/storage/lock_holds.h"
#include "engine/storage/overflow.h"
#include "engine/storage/sundial_word.h"
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
    for (uint32_t i = 0; i < 3; ++i) {
      EXPECT_EQ(word(slot.slot.offset() + 64 + 400 + i * 416), ~0ull);
    }
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
    // Blocks first: their pages can become slot pages, but not the other way round.
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
  cluster_.run([&](Coordinator& c) {
    std::map<uint64_t, uint32_t> incarnations;
    const std::vector<Slot> first = fill(c, 0x10001, 0, true);
    for (const Slot& each : first) incarnations[each.slot.bits] = each.incarnation;
    header(first[0].slot).wts = 500;
    header(first[0].slot).rts = 600;
    word(first[0].slot.offset() + 64) = 0xDEAD;
    {
      AnnouncedEpoch reader(c);
      ASSERT_TRUE(c.client.free(frees_of(first), 0x10001, c.worker.counters()).ok());
      c.worker.scheduler().sleep_for(5'000);
      EXPECT_TRUE(fill(c, 0x20001, 0, true).empty());
      // A reader may still be at it: the row's bytes are left alone.
      EXPECT_EQ(word(first[0].slot.offset() + 64), 0xDEADu);
    }
    c.worker.scheduler().sleep_for(5'000);
    EXPECT_EQ(word(first[0].slot.offset() + 64), 0u);
    std::vector<Slot> second = fill(c, 0x30001, 0, true);
    EXPECT_EQ(second.size(), first.size());
    for (const Slot& each : second) {
      ASSERT_TRUE(incarnations.contains(each.slot.bits));
      EXPECT_GT(each.incarnation, incarnations[each.slot.bits]);
    }
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

TEST(LocksOf, FindsExactlyTheHeadersOfOneWorker) {
  StorageCluster cluster({.nodes = 1, .coordinators = 2});
  std::set<uint64_t> expected;
  cluster.run([&](Coordinator& c) {
    TableSpec spec;
    spec.relfilenode = 1;
    const TableId table = c.client.create_table(spec, c.worker.counters()).value().id;
    std::vector<Slot> slots(40);
    for (Slot& each : slots) each.table = table;
    const uint64_t mine = (9ull << 16) | cluster.coordinator(0).worker.id();
    const uint64_t others = (9ull << 16) | cluster.coordinator(1).worker.id();
    ASSERT_TRUE(c.client.allocate(std::span(slots).first(25), mine, c.worker.counters()).ok());
    ASSERT_TRUE(c.client.allocate(std::span(slots).last(15), others, c.worker.counters()).ok());
    for (size_t i = 0; i < 25; ++i) expected.insert(slots[i].slot.bits);
    const RegionAudit audit = RegionAudit::of(cluster.region(0), cluster.layout());
    const uint64_t group = audit.reachable.rbegin()->first / 64 * 64;
    reinterpret_cast<Header*>(cluster.region(0) + group)->lock = mine;
    expected.insert(group);
  });
  std::set<uint64_t> found;
  cluster.run_on_node(0, [&] {
    for (const GlobalAddress each :
         cluster.storage(0).locks_of(cluster.coordinator(0).worker.id())) {
      found.insert(each.bits);
    }
    for (const uint64_t each : found) cluster.storage(0).discard_slot(each);
  });
  EXPECT_EQ(found, expected);
  EXPECT_EQ(cluster.storage(0).statistics().rows, 15u);
}

// All of them, asked for answer by answer.
std::vector<LockedHeader> locked_headers(Coordinator& c, NodeId node) {
  std::vector<LockedHeader> all;
  uint64_t from = 0;
  for (int answers = 0; answers < 1000; ++answers) {
    auto locked = c.client.locked_headers(node, from, c.worker.counters());
    EXPECT_TRUE(locked.ok()) << locked.status().to_string();
    if (!locked.ok()) break;
    all.insert(all.end(), locked->headers.begin(), locked->headers.end());
    from = locked->next;
    if (from == 0) return all;
  }
  ADD_FAILURE() << "no end";
  return all;
}

TEST(LockedHeaders, TellTheHolderAndTheTable) {
  StorageCluster cluster({.nodes = 1});
  cluster.run([&](Coordinator& c) {
    TableSpec spec;
    spec.database = 5;
    spec.relfilenode = 77;
    const TableId table = c.client.create_table(spec, c.worker.counters()).value().id;
    EXPECT_TRUE(locked_headers(c, 0).empty());
    const uint64_t ctts = c.next_ctts();
    std::vector<Slot> slots(3);
    for (Slot& each : slots) each.table = table;
    for (size_t i = 0; i < slots.size(); ++i) slots[i].key_hash = 100 + i;
    ASSERT_TRUE(c.client.allocate(slots, ctts, c.worker.counters()).ok());
    std::set<uint64_t> hashes;
    for (const LockedHeader& each : locked_headers(c, 0)) {
      EXPECT_EQ(each.table, table);
      EXPECT_EQ(each.database, 5u);
      EXPECT_EQ(each.relfilenode, 77u);
      EXPECT_EQ(each.lock, ctts);
      EXPECT_FALSE(each.gap);
      hashes.insert(each.key_hash);
    }
    EXPECT_EQ(hashes, (std::set<uint64_t>{100, 101, 102}));
    const RegionAudit audit = RegionAudit::of(cluster.region(0), cluster.layout());
    auto* group =
        reinterpret_cast<Header*>(cluster.region(0) + audit.reachable.rbegin()->first / 64 * 64);
    group->waiter = ctts;
    const auto with_gap = locked_headers(c, 0);
    EXPECT_EQ(std::count_if(with_gap.begin(), with_gap.end(),
                            [&](const LockedHeader& each) {
                              return each.gap && each.lock == 0 && each.waiter == ctts;
                            }),
              1);
  });
}

TEST(LockedHeaders, NeedSeveralAnswersWhenThereAreMany) {
  StorageCluster cluster({.nodes = 1});
  cluster.run([&](Coordinator& c) {
    TableSpec spec;
    spec.record_size = kRecordSizeMin;
    spec.history = 0;
    const TableId table = c.client.create_table(spec, c.worker.counters()).value().id;
    std::vector<Slot> slots(3 * kLockedHeadersMax / 2);
    for (Slot& each : slots) each.table = table;
    ASSERT_TRUE(c.client.allocate(slots, c.next_ctts(), c.worker.counters()).ok());
    auto first = c.client.locked_headers(0, 0, c.worker.counters());
    ASSERT_TRUE(first.ok());
    EXPECT_NE(first->next, 0u);
    EXPECT_EQ(locked_headers(c, 0).size(), slots.size());
    auto beyond = c.client.locked_headers(0, ~0ull, c.worker.counters());
    ASSERT_TRUE(beyond.ok());
    EXPECT_TRUE(beyond->headers.empty());
  });
}

TEST(LockHolds, TellWhatTheWordsSay) {
  LockedHeader header;
  EXPECT_TRUE(holds_of(header).empty());
  header.lock = (9'000ull << 16) | 7;
  ASSERT_EQ(holds_of(header).size(), 1u);
  EXPECT_FALSE(holds_of(header)[0].shared);
  EXPECT_TRUE(holds_of(header)[0].granted);
  EXPECT_EQ(holds_of(header)[0].worker, 7);
  EXPECT_EQ(holds_of(header)[0].since_us, 9'000u);
  header.waiter = (8'000ull << 16) | 5;
  ASSERT_EQ(holds_of(header).size(), 2u);
  EXPECT_FALSE(holds_of(header)[1].granted);
  EXPECT_EQ(holds_of(header)[1].worker, 5);

  header = LockedHeader();
  header.lock = 3;
  ASSERT_EQ(holds_of(header).size(), 1u);
  EXPECT_TRUE(holds_of(header)[0].shared);
  EXPECT_EQ(holds_of(header)[0].holders, 3u);
  EXPECT_FALSE(holds_of(header)[0].worker.has_value());

  header = LockedHeader();
  header.sundial = sundial_locked_word(77, 6);
  ASSERT_EQ(holds_of(header).size(), 1u);
  EXPECT_EQ(holds_of(header)[0].worker, 6);
  EXPECT_FALSE(holds_of(header)[0].since_us.has_value());
  header.lock = (9'000ull << 16) | 6;  // a split's: both words, one holder
  EXPECT_EQ(holds_of(header).size(), 1u);
}

}  // namespace
}  // namespace rdmacc
