#include <gtest/gtest.h>

#include <cstring>
#include <set>

#include "engine/storage/layout/overflow.h"
#include "region_audit.h"
#include "test_index.h"

// A node dies at any event, its region stays, and a new process opens it, while coordinators go
// on as far as they can.

namespace rdmacc {
namespace {

using Coordinator = StorageCluster::Coordinator;
using Slot = StorageClient::SlotRequest;

TableSpec spec_of(uint32_t number) {
  TableSpec spec;
  spec.relfilenode = number;
  spec.record_size = TestIndex::kRecordSize;
  spec.history = 0;
  return spec;
}

TableMeta make_table(StorageCluster& cluster) {
  TableMeta meta;
  cluster.run([&](Coordinator& c) {
    meta = c.client.create_table(spec_of(1), c.worker.counters()).value();
  });
  return meta;
}

// Everything that the arena now thinks is free is handed out; none of it may be in use.
void expect_disjoint_allocations(StorageCluster& cluster, NodeId node, TableId table) {
  RegionAudit audit = RegionAudit::of(cluster.region(node), cluster.layout());
  ASSERT_EQ(audit.fault, "");
  cluster.run({[&](Coordinator& c) {
                for (const uint32_t overflow : {600'000u, 0u, 100u, 9'000u}) {
                  while (true) {
                    std::vector<Slot> some(32);
                    for (Slot& each : some) {
                      each.table = table;
                      each.node = node;
                      each.overflow_bytes = overflow;
                      each.want_slot = overflow == 0;
                    }
                    if (!c.client.allocate(some, c.next_ctts(), c.worker.counters()).ok()) break;
                    for (const Slot& each : some) {
                      const uint64_t offset =
                          overflow == 0 ? each.slot.offset() : each.overflow.offset();
                      const uint64_t bytes =
                          overflow == 0 ? slot_bytes(16, 0) : overflow + sizeof(OverflowHeader);
                      ASSERT_TRUE(audit.add(offset, bytes));
                    }
                  }
                }
              }},
              50'000'000);
}

TEST(Reopen, FindsWhatWasThereAndKeepsIdsAndRows) {
  StorageCluster cluster({.nodes = 1});
  const TableMeta table = make_table(cluster);
  cluster.run([&](Coordinator& c) {
    TestIndex index(c, cluster.topology(), table);
    for (uint64_t key = 0; key < 700; ++key) ASSERT_TRUE(index.insert(key).ok());
    for (uint64_t key = 0; key < 100; ++key) ASSERT_TRUE(index.erase(key).ok());
  });
  cluster.settle();
  const NodeStatistics before = cluster.storage(0).statistics();
  cluster.kill_node(0);
  cluster.start_node(0);
  EXPECT_TRUE(cluster.storage(0).reopened());
  cluster.settle();
  const NodeStatistics after = cluster.storage(0).statistics();
  EXPECT_EQ(after.rows, before.rows);
  EXPECT_EQ(after.tables, before.tables);
  // A group that has become worth a split since its bucket was chained is split now.
  EXPECT_GE(after.used_bytes, before.used_bytes);
  EXPECT_LE(after.used_bytes, before.used_bytes + after.splits * 2 * sizeof(Group));
  EXPECT_EQ(after.backed_bytes, before.backed_bytes);
  cluster.run([&](Coordinator& c) {
    EXPECT_EQ(c.client.find_table(spec_of(1), c.worker.counters()).value().id, table.id);
    TestIndex index(c, cluster.topology(), table);
    for (uint64_t key = 0; key < 700; ++key) ASSERT_EQ(index.find(key)->null(), key < 100);
  });
}

// Its writer lives on, and has nothing to do with it any more.
TEST(Reopen, FreesATombstoneThatWasBeingUnlinked) {
  StorageCluster cluster({.nodes = 1});
  const TableMeta table = make_table(cluster);
  GlobalAddress slot;
  cluster.run([&](Coordinator& c) {
    TestIndex index(c, cluster.topology(), table);
    for (uint64_t key = 0; key < 20; ++key) ASSERT_TRUE(index.insert(key).ok());
    slot = index.find(7).value();
  });
  cluster.settle();
  const NodeStatistics before = cluster.storage(0).statistics();
  cluster.kill_node(0);
  std::byte* region = cluster.region(0);
  Header header;
  std::memcpy(&header, region + slot.offset(), sizeof(header));
  header.flags |= kFlagDeleted;
  std::memcpy(region + slot.offset(), &header, sizeof(header));
  const uint64_t entry = make_entry(header.key_hash, slot.offset());
  uint32_t entries = 0;
  for (uint64_t at = cluster.layout().pages; at < cluster.layout().region_bytes; at += 8) {
    if (std::memcmp(region + at, &entry, sizeof(entry)) != 0) continue;
    std::memset(region + at, 0, sizeof(entry));
    ++entries;
  }
  ASSERT_EQ(entries, 1u);
  cluster.start_node(0);
  cluster.settle();
  const NodeStatistics after = cluster.storage(0).statistics();
  EXPECT_EQ(after.rows, before.rows - 1);
  EXPECT_EQ(after.used_bytes, before.used_bytes - slot_bytes(TestIndex::kRecordSize, 0));
}

TEST(Reopen, AtAnyEventOfInsertsAndSplitsLosesNothing) {
  uint64_t splits = 0, unfinished = 0;
  for (uint64_t seed = 1; seed <= 80; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    StorageCluster cluster({.seed = seed, .nodes = 1, .coordinators = 2, .memory_bytes = 0});
    const TableMeta table = make_table(cluster);
    std::set<uint64_t> inserted;
    const auto inserter = [&](uint64_t first) {
      return [&, first](Coordinator& c) {
        TestIndex index(c, cluster.topology(), table);
        for (uint64_t key = first; key < first + 350; ++key) {
          if (index.insert(key).ok()) inserted.insert(key);
          if (key % 8 == 0 && index.erase(key).ok()) inserted.erase(key);
        }
      };
    };
    Random random(seed);
    cluster.run_and_kill(0, 10'000 + random.below(70'000),
                         {inserter(0), inserter(10'000), inserter(20'000)});
    splits += cluster.storage(0).statistics().splits;
    if (inserted.size() < 3 * 350 * 7 / 8) ++unfinished;
    cluster.settle();
    const RegionAudit audit = RegionAudit::of(cluster.region(0), cluster.layout());
    ASSERT_EQ(audit.fault, "");
    EXPECT_EQ(audit.locked_gaps, 0u);
    cluster.run([&](Coordinator& c) {
      TestIndex index(c, cluster.topology(), table);
      for (const uint64_t key : inserted) {
        Result<GlobalAddress> found = index.find(key);
        ASSERT_TRUE(found.ok());
        ASSERT_FALSE(found->null()) << "key " << key;
      }
    });
    expect_disjoint_allocations(cluster, 0, table.id);
    if (::testing::Test::HasFailure()) return;
  }
  EXPECT_GT(splits, 100u);
}

// As above, but every event of one split in turn is its last: none is left out.
TEST(Reopen, AtEveryEventOfASplitFinishesOrUndoesIt) {
  uint64_t locked_at_death = 0, events = 0;
  for (uint64_t death = 1; death < 400; ++death) {
    SCOPED_TRACE("event " + std::to_string(death));
    StorageCluster cluster({.seed = 5, .nodes = 1, .maintain = false});
    const TableMeta table = make_table(cluster);
    std::set<uint64_t> keys;
    cluster.run([&](Coordinator& c) {
      TestIndex index(c, cluster.topology(), table);
      // Skewed to few groups, whose chains grow long.
      for (uint64_t key = 0; keys.size() < 120; ++key) {
        const std::string bytes(reinterpret_cast<const char*>(&key), 8);
        if (group_bits_of(hash_key(table.id, bytes), kInitialDepth) != 3) continue;
        ASSERT_TRUE(index.insert(key).ok());
        keys.insert(key);
      }
    });
    bool done = false;
    CHECK(cluster.node_worker(0).scheduler().spawn([&] {
      cluster.storage(0).maintain();
      done = true;
    }));
    const uint64_t at = cluster.fabric().events() + death;
    cluster.fabric().run_until([&] { return done || cluster.fabric().events() >= at; }, death + 1);
    if (RegionAudit::of(cluster.region(0), cluster.layout()).locked_gaps > 0) ++locked_at_death;
    const bool finished = done;
    cluster.kill_node(0);
    cluster.start_node(0);
    const RegionAudit audit = RegionAudit::of(cluster.region(0), cluster.layout());
    ASSERT_EQ(audit.fault, "");
    ASSERT_EQ(audit.locked_gaps, 0u);
    ASSERT_EQ(audit.entries, keys.size());
    cluster.run([&](Coordinator& c) {
      TestIndex index(c, cluster.topology(), table);
      for (const uint64_t key : keys) ASSERT_FALSE(index.find(key)->null()) << key;
    });
    events = death;
    if (finished) break;
  }
  EXPECT_GT(locked_at_death, 50u);
  EXPECT_LT(events, 399u) << "the split did not end";
}

TEST(Reopen, AtAnyEventOfCreatesAndDropsLeavesWholeTables) {
  for (uint64_t seed = 1; seed <= 50; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    const NodeId victim = seed % 2;
    StorageCluster cluster({.seed = seed, .nodes = 2, .coordinators = 2, .memory_bytes = 0});
    const auto worker = [&](uint32_t number) {
      return [&, number](Coordinator& c) {
        VerbCounters& counters = c.worker.counters();
        for (int i = 0; i < 12; ++i) {
          const Result<TableMeta> made = c.client.create_table(spec_of(number), counters);
          if (!made.ok()) {
            c.worker.scheduler().sleep_for(20);
            continue;
          }
          TestIndex index(c, cluster.topology(), made.value());
          for (uint64_t key = 0; key < 10; ++key) static_cast<void>(index.insert(key));
          static_cast<void>(c.client.drop_table(made.value().id, counters));
        }
      };
    };
    Random random(seed);
    cluster.run_and_kill(victim, 500 + random.below(8'000), {worker(1), worker(2), worker(3)});
    TableMeta last;
    cluster.run([&](Coordinator& c) {
      VerbCounters& counters = c.worker.counters();
      for (uint32_t number = 1; number <= 4; ++number) {
        Result<TableMeta> table = c.client.find_table(spec_of(number), counters);
        if (!table.ok()) table = c.client.create_table(spec_of(number), counters);
        ASSERT_TRUE(table.ok()) << table.status().to_string();
        last = table.value();
        TestIndex index(c, cluster.topology(), table.value());
        for (uint64_t key = 100; key < 120; ++key) ASSERT_TRUE(index.insert(key).ok());
        for (uint64_t key = 100; key < 120; ++key) ASSERT_FALSE(index.find(key)->null());
      }
    });
    for (NodeId node = 0; node < 2; ++node) {
      expect_disjoint_allocations(cluster, node, last.id);
    }
    if (::testing::Test::HasFailure()) return;
  }
}

void keep_what_is_held(uint32_t overflow_bytes) {
  StorageCluster cluster({.nodes = 1, .coordinators = 2});
  const TableMeta table = make_table(cluster);
  Slot slot{};
  slot.table = table.id;
  slot.key_hash = 77;  // one without a key is kept in advance
  slot.overflow_bytes = overflow_bytes;
  uint64_t ctts = 0;
  cluster.run([&](Coordinator& c) {
    ctts = c.next_ctts();
    ASSERT_TRUE(c.client.allocate(std::span(&slot, 1), ctts, c.worker.counters()).ok());
  });
  cluster.kill_node(0);
  cluster.start_node(0);
  const auto word = [&](GlobalAddress address, uint64_t at) {
    return *reinterpret_cast<uint64_t*>(cluster.region(0) + address.offset() + at);
  };
  const auto sweep = [&] {
    for (int i = 0; i < 5; ++i) {
      cluster.run_on_node(0, [&] {
        cluster.node_worker(0).scheduler().sleep_for(1'100'000);
        cluster.storage(0).maintain();
      });
    }
  };
  sweep();
  EXPECT_EQ(word(slot.slot, kOffsetOfLock), ctts);
  EXPECT_EQ(word(slot.overflow, offsetof(OverflowHeader, owner_ctts)), ctts);
  EXPECT_EQ(cluster.storage(0).statistics().rows, 1u);
  cluster.kill_coordinator(0);
  sweep();
  EXPECT_EQ(word(slot.slot, kOffsetOfLock), 0u);
  EXPECT_EQ(word(slot.overflow, offsetof(OverflowHeader, owner_ctts)), 0u);
  EXPECT_EQ(cluster.storage(0).statistics().rows, 0u);
}

TEST(Reopen, KeepsWhatTransactionsUnderWayHoldUntilTheirWorkerIsGone) {
  keep_what_is_held(200);
  keep_what_is_held(600'000);  // several pages
}

TEST(Reopen, KeepsARowThatIsUnlockedButNotYetLinked) {
  StorageCluster cluster({.nodes = 1});
  const TableMeta table = make_table(cluster);
  Slot slot{};
  slot.table = table.id;
  cluster.run([&](Coordinator& c) {
    ASSERT_TRUE(c.client.allocate(std::span(&slot, 1), c.next_ctts(), c.worker.counters()).ok());
    auto* header = reinterpret_cast<Header*>(cluster.region(0) + slot.slot.offset());
    header->wts = header->lock;
    header->flags = kFlagLive;
    header->lock = 0;
  });
  cluster.kill_node(0);
  cluster.start_node(0);
  expect_disjoint_allocations(cluster, 0, table.id);
  cluster.run([&](Coordinator& c) {
    std::vector<Slot> some(1);
    some[0].table = table.id;
    static_cast<void>(c.client.allocate(some, c.next_ctts(), c.worker.counters()));
    EXPECT_NE(some[0].slot, slot.slot);
  });
  const auto* header = reinterpret_cast<const Header*>(cluster.region(0) + slot.slot.offset());
  EXPECT_EQ(header->flags, kFlagLive);
}

TEST(Reopen, RefusesARegionThatMakesNoSense) {
  const auto reopen_after = [](const std::function<void(StorageCluster&)>& damage) {
    StorageCluster cluster({.nodes = 1});
    make_table(cluster);
    damage(cluster);
    return cluster.try_restart(0).code();
  };
  const auto word = [](StorageCluster& cluster, uint64_t offset) {
    return reinterpret_cast<uint64_t*>(cluster.region(0) + offset);
  };
  EXPECT_EQ(reopen_after([](StorageCluster&) {}), Code::kOk);
  EXPECT_EQ(reopen_after([&](StorageCluster& c) { *word(c, 8) = 99; }), Code::kInvalidArgument);
  EXPECT_EQ(
      reopen_after([&](StorageCluster& c) { *word(c, offsetof(Superblock, pages_used)) = ~0ull; }),
      Code::kCorrupt);
  EXPECT_EQ(reopen_after([&](StorageCluster& c) { *word(c, c.layout().page_table) = 0x1234; }),
            Code::kCorrupt);
  EXPECT_EQ(reopen_after([&](StorageCluster& c) {
              *word(c, c.layout().directory_entry(1) + offsetof(DirectoryEntry, root)) = 12345;
            }),
            Code::kCorrupt);
  EXPECT_EQ(reopen_after([&](StorageCluster& c) {
              const RegionAudit audit = RegionAudit::of(c.region(0), c.layout());
              for (const auto& [offset, bytes] : audit.reachable) {
                if (bytes == sizeof(Group)) *word(c, bucket_offset(offset, 2) + 56) = offset + 8;
              }
            }),
            Code::kCorrupt);
}

}  // namespace
}  // namespace rdmacc
