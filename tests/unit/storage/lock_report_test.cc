#include <gtest/gtest.h>

#include <algorithm>
#include <set>
#include <vector>

#include "engine/storage/layout/sundial_word.h"
#include "engine/storage/wire/lock_holds.h"
#include "region_audit.h"
#include "storage_cluster.h"

// What storage says of the locks that rows and gaps are under.

namespace rdmacc {
namespace {

using Coordinator = StorageCluster::Coordinator;
using Slot = StorageClient::SlotRequest;

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
    const uint64_t ctts = (9ull << 16) | cluster.coordinator(0).worker.id();
    for (const uint64_t each : found) cluster.storage(0).discard_slot(each, ctts);
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

// Nor when a slot is kept once more before the owner has looked at what became of the first time.
TEST(LockedHeaders, AreNotThoseOfSlotsThatWorkersKeep) {
  constexpr uint32_t kKept = 40;
  constexpr int kTimes = 4;  // it looks twice a second
  StorageCluster cluster({.nodes = 1});
  cluster.run([&](Coordinator& c) {
    TableSpec spec;
    spec.relfilenode = 1;
    const TableId table = c.client.create_table(spec, c.worker.counters()).value().id;
    std::set<uint64_t> first;
    std::vector<Slot> kept;
    for (int time = 0; time < kTimes; ++time) {
      kept.clear();
      const uint64_t tag = c.next_ctts();
      ASSERT_TRUE(c.client.reserve_slots(0, table, kKept, tag, kept, c.worker.counters()).ok());
      EXPECT_TRUE(locked_headers(c, 0).empty());
      if (time == kTimes - 1) break;
      std::vector<StorageClient::FreeRequest> returned;
      for (const Slot& each : kept) {
        first.insert(each.slot.bits);
        returned.push_back({each.slot, FreeKind::kReserved});
      }
      ASSERT_TRUE(c.client.free(returned, tag, c.worker.counters()).ok());
      c.worker.scheduler().sleep_for(5'000);
    }
    for (const Slot& each : kept) EXPECT_TRUE(first.contains(each.slot.bits));
  });
  EXPECT_EQ(cluster.storage(0).statistics().rows, 0u);  // one look at all of them
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
