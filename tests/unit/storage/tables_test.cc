#include <gtest/gtest.h>

#include <set>

#include "region_audit.h"
#include "test_index.h"

namespace rdmacc {
namespace {

using Coordinator = StorageCluster::Coordinator;

TableSpec spec_of(uint32_t number) {
  TableSpec spec;
  spec.database = 5;
  spec.relfilenode = number;
  spec.record_size = TestIndex::kRecordSize;
  spec.history = 0;
  return spec;
}

TEST(Tables, AreFoundByIdentityUntilDropped) {
  StorageCluster cluster({.nodes = 3});
  cluster.run([&](Coordinator& c) {
    VerbCounters& counters = c.worker.counters();
    TableSpec spec = spec_of(1);
    spec.record_size = 21;
    c.worker.scheduler().sleep_for(100);
    const uint64_t before_us = c.worker.endpoint().now_us();
    EXPECT_GT(before_us, 0u);
    const TableMeta made = c.client.create_table(spec, counters).value();
    EXPECT_NE(made.id, kNoTable);
    EXPECT_EQ(made.record_size, 24u);
    EXPECT_GE(made.created_us, before_us);
    EXPECT_LE(made.created_us, c.worker.endpoint().now_us());
    const TableMeta found = c.client.find_table(spec_of(1), counters).value();
    EXPECT_EQ(found.id, made.id);
    EXPECT_EQ(found.created_us, made.created_us);
    EXPECT_EQ(c.client.find_table(spec_of(2), counters).status().code(), Code::kNotFound);
    EXPECT_EQ(c.client.create_table(spec, counters).status().code(), Code::kDuplicateKey);
    for (NodeId node = 0; node < 3; ++node) {
      EXPECT_EQ(c.client.statistics(node, counters).value().tables, 1u);
    }
    EXPECT_TRUE(c.client.drop_table(made.id, counters).ok());
    EXPECT_EQ(c.client.drop_table(made.id, counters).code(), Code::kNotFound);
    EXPECT_EQ(c.client.find_table(spec, counters).status().code(), Code::kNotFound);
    for (NodeId node = 0; node < 3; ++node)
      EXPECT_EQ(cluster.storage(node).statistics().tables, 0u);
    EXPECT_GT(c.client.create_table(spec, counters).value().id, made.id);
  });
}

TEST(Tables, NeverShareAnIdEvenAfterRestarts) {
  StorageCluster cluster({.nodes = 1});
  std::set<TableId> ids;
  for (int round = 0; round < 4; ++round) {
    cluster.run([&](Coordinator& c) {
      for (int i = 0; i < 3; ++i) {
        const TableMeta made = c.client.create_table(spec_of(1), c.worker.counters()).value();
        EXPECT_TRUE(ids.insert(made.id).second);
        EXPECT_TRUE(c.client.drop_table(made.id, c.worker.counters()).ok());
      }
    });
    cluster.kill_node(0);
    cluster.start_node(0);
    EXPECT_TRUE(cluster.storage(0).reopened());
  }
}

// One whose memory is not all back yet is neither there nor made again, nor another in its place.
TEST(Tables, AreNotMadeAgainBeforeTheyAreGone) {
  StorageCluster cluster({.nodes = 2});
  cluster.run([&](Coordinator& c) {
    VerbCounters& counters = c.worker.counters();
    const TableId table = c.client.create_table(spec_of(1), counters).value().id;
    StorageClient::SlotRequest held{};  // by a transaction under way
    held.table = table;
    held.want_slot = true;
    const uint64_t ctts = 1ull << 16 | c.worker.id();
    ASSERT_TRUE(c.client.allocate(std::span(&held, 1), ctts, counters).ok());
    ASSERT_TRUE(c.client.drop_table(table, counters).ok());
    EXPECT_EQ(c.client.create_table(spec_of(1), counters, table).status().code(), Code::kNotFound);
    EXPECT_EQ(c.client.create_table(spec_of(2), counters, table).status().code(), Code::kNoSpace);
  });
}

// A copy that is restored refers to its tables by their ids.
TEST(Tables, AreMadeAgainWithTheIdThatTheyHad) {
  StorageCluster cluster({.nodes = 2});
  cluster.run([&](Coordinator& c) {
    VerbCounters& counters = c.worker.counters();
    const TableSpec plain = spec_of(1);
    TableSpec placed = spec_of(2);
    placed.has_distribution_key = true;
    constexpr TableId kWanted = 40;
    EXPECT_EQ(c.client.create_table(plain, counters, kWanted).value().id, kWanted);
    EXPECT_EQ(c.client.find_table(plain, counters).value().id, kWanted);
    EXPECT_EQ(c.client.create_table(spec_of(3), counters, kWanted).status().code(), Code::kNoSpace);
    EXPECT_EQ(c.client.create_table(plain, counters, kWanted + 1).status().code(),
              Code::kDuplicateKey);
    EXPECT_EQ(c.client.create_table(placed, counters, kWanted + 2).status().code(),
              Code::kInvalidArgument);
    const TableId distributed = (kWanted + 2) | kDistributedTable;
    EXPECT_EQ(c.client.create_table(placed, counters, distributed).value().id, distributed);
    EXPECT_EQ(c.client.create_table(spec_of(4), counters, 7).value().id, 7u);
    // No other table gets one of these, or an earlier one.
    EXPECT_GT(c.client.create_table(spec_of(5), counters).value().id, kWanted + 2);
    auto listed = c.client.list_tables(counters);
    ASSERT_TRUE(listed.ok());
    ASSERT_EQ(listed->size(), 4u);
    for (const ListedTable& table : *listed) {
      EXPECT_EQ(table.record_size, TestIndex::kRecordSize);
      EXPECT_EQ(table.history, 0u);
      EXPECT_EQ(table.has_distribution_key, table.id == distributed);
    }
  });
}

// A client that dies as it drops a table has told node 0 alone; what the others keep can be found.
TEST(Tables, AreListedWithTheirPartsWhereADropWasCutShort) {
  StorageCluster cluster({.nodes = 3});
  cluster.run([&](Coordinator& c) {
    VerbCounters& counters = c.worker.counters();
    const TableId whole = c.client.create_table(spec_of(1), counters).value().id;
    const TableId half = c.client.create_table(spec_of(2), counters).value().id;
    Rpc::Call drop;
    drop.to = cluster.topology().worker_of(0);
    drop.method = kMethodDropTable;
    MessageWriter(drop.request).u32(half);
    ASSERT_TRUE(c.worker.rpc().call_one(drop, counters).ok());
    ASSERT_EQ(c.client.list_tables(counters).value().size(), 1u);
    const auto listed = c.client.list_tables(counters, TableList::kWithParts).value();
    ASSERT_EQ(listed.size(), 2u);
    EXPECT_EQ(listed[0].id, whole);
    EXPECT_EQ(listed[1].id, half);
    EXPECT_EQ(listed[1].relfilenode, 2u);
    EXPECT_EQ(c.client.drop_table(half, counters).code(), Code::kNotFound);
    EXPECT_EQ(c.client.list_tables(counters, TableList::kWithParts).value().size(), 1u);
  });
  for (NodeId node = 0; node < 3; ++node) EXPECT_EQ(cluster.storage(node).statistics().tables, 1u);
}

TEST(Tables, OfOneIdentityAreCreatedOnceByConcurrentSessions) {
  for (uint64_t seed = 1; seed <= 20; ++seed) {
    StorageCluster cluster({.seed = seed, .nodes = 2, .coordinators = 3, .lossy = true});
    int created = 0;
    const auto create = [&](Coordinator& c) {
      const Result<TableMeta> made = c.client.create_table(spec_of(1), c.worker.counters());
      if (made.ok()) {
        ++created;
      } else {
        EXPECT_EQ(made.status().code(), Code::kDuplicateKey) << made.status().to_string();
      }
    };
    cluster.run({create, create, create, create});
    EXPECT_EQ(created, 1);
    EXPECT_EQ(cluster.storage(0).statistics().tables, 1u);
    EXPECT_EQ(cluster.storage(1).statistics().tables, 1u);
  }
}

TEST(Tables, GiveAllTheirMemoryBackWhenDropped) {
  StorageCluster cluster({.nodes = 1});
  cluster.settle();
  const uint64_t before = cluster.storage(0).statistics().used_bytes;
  for (int round = 0; round < 3; ++round) {
    std::set<uint64_t> slots;
    cluster.run([&](Coordinator& c) {
      const TableMeta made = c.client.create_table(spec_of(1), c.worker.counters()).value();
      TestIndex index(c, cluster.topology(), made);
      for (uint64_t key = 0; key < 1'500; ++key) ASSERT_TRUE(index.insert(key).ok());
      slots = RegionAudit::of(cluster.region(0), cluster.layout()).slots;
      EXPECT_GT(cluster.storage(0).statistics().splits, 10u);
      EXPECT_TRUE(c.client.drop_table(made.id, c.worker.counters()).ok());
      EXPECT_EQ(index.insert(1).code(), Code::kNotFound);
    });
    cluster.settle();
    EXPECT_EQ(slots.size(), 1'500u);
    EXPECT_EQ(cluster.storage(0).statistics().used_bytes, before);
    EXPECT_EQ(cluster.storage(0).statistics().rows, 0u);
    for (const uint64_t slot : slots) {
      const auto* words = reinterpret_cast<const uint64_t*>(cluster.region(0) + slot);
      EXPECT_EQ(words[8], 0u);  // no row shows through
      EXPECT_EQ(static_cast<TableId>(words[1]), kNoTable);
    }
  }
}

TEST(Tables, AreAsLargeAsTheMemoryInUseHasGrown) {
  StorageCluster cluster({.nodes = 2});
  cluster.settle();
  const auto used = [&] {
    return cluster.storage(0).statistics().used_bytes + cluster.storage(1).statistics().used_bytes;
  };
  const uint64_t before = used();
  TableMeta made;
  cluster.run([&](Coordinator& c) {
    made = c.client.create_table(spec_of(1), c.worker.counters()).value();
    TestIndex index(c, cluster.topology(), made);
    for (uint64_t key = 0; key < 2'000; ++key) ASSERT_TRUE(index.insert(key).ok());
  });
  cluster.settle();
  cluster.run([&](Coordinator& c) {
    const TableSize size = c.client.table_size(made.id, c.worker.counters()).value();
    EXPECT_EQ(size.rows, 2'000u);
    EXPECT_EQ(size.bytes, used() - before);
    EXPECT_TRUE(c.client.drop_table(made.id, c.worker.counters()).ok());
    EXPECT_EQ(c.client.table_size(made.id, c.worker.counters()).status().code(), Code::kNotFound);
  });
}

TEST(Tables, MayBePlaced) {
  StorageCluster cluster({.nodes = 2});
  cluster.run([&](Coordinator& c) {
    TableSpec spec = spec_of(1);
    spec.has_distribution_key = true;
    const TableMeta placed = c.client.create_table(spec, c.worker.counters()).value();
    const TableMeta other = c.client.create_table(spec_of(2), c.worker.counters()).value();
    EXPECT_NE(placed.id & kDistributedTable, 0u);
    EXPECT_EQ(other.id & kDistributedTable, 0u);
    EXPECT_GT(other.id, number_of_table(placed.id));
    EXPECT_EQ(c.client.find_table(spec, c.worker.counters()).value().id, placed.id);
    EXPECT_TRUE(c.client.drop_table(placed.id, c.worker.counters()).ok());
    EXPECT_EQ(c.client.list_tables(c.worker.counters()).value().size(), 1u);
  });
}

TEST(Tables, MayBeDroppedWhileTheirIndexSplits) {
  for (uint64_t seed = 1; seed <= 15; ++seed) {
    StorageCluster cluster({.seed = seed, .nodes = 1, .coordinators = 2});
    TableMeta made;
    cluster.run([&](Coordinator& c) {
      made = c.client.create_table(spec_of(1), c.worker.counters()).value();
    });
    cluster.run({[&](Coordinator& c) {
                   TestIndex index(c, cluster.topology(), made);
                   for (uint64_t key = 0; key < 5'000; ++key) {
                     if (!index.insert(key).ok()) return;
                   }
                   ADD_FAILURE() << "never dropped";
                 },
                 [&](Coordinator& c) {
                   c.worker.scheduler().sleep_for(3'000 + seed * 211);
                   EXPECT_TRUE(c.client.drop_table(made.id, c.worker.counters()).ok());
                 }});
    EXPECT_EQ(cluster.storage(0).statistics().tables, 0u);
  }
}

TEST(Tables, FillTheDirectoryUntilItIsFull) {
  StorageCluster cluster({.nodes = 1, .memory_bytes = 512ull << 20});
  cluster.run({[&](Coordinator& c) {
                for (uint32_t i = 0; i < kDirectoryEntries; ++i) {
                  ASSERT_TRUE(c.client.create_table(spec_of(i), c.worker.counters()).ok()) << i;
                }
                const Status full =
                    c.client.create_table(spec_of(kDirectoryEntries), c.worker.counters()).status();
                EXPECT_EQ(full.code(), Code::kNoSpace);
                EXPECT_NE(full.message().find("directory is full"), std::string::npos)
                    << full.message();
                const TableId one = c.client.find_table(spec_of(7), c.worker.counters()).value().id;
                EXPECT_TRUE(c.client.drop_table(one, c.worker.counters()).ok());
                EXPECT_TRUE(c.client.create_table(spec_of(7), c.worker.counters()).ok());
              }},
              50'000'000);
}

TEST(Open, RefusesATooSmallRegionAndNamesTheMinimum) {
  Topology topology;
  topology.nodes = 1;
  topology.workers_max = 4;
  topology.region_bytes = 2ull << 20;
  auto fabric = SimFabric::create(topology, {});
  auto endpoint = fabric->join_as_node(0, 0);
  Worker worker(std::move(*endpoint));
  const auto opened = StorageService::open(worker, topology);
  ASSERT_FALSE(opened.ok());
  EXPECT_EQ(opened.status().code(), Code::kInvalidArgument);
  EXPECT_NE(opened.status().message().find(std::to_string(region_bytes_min(topology))),
            std::string::npos);
}

}  // namespace
}  // namespace rdmacc
