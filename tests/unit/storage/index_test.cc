#include <gtest/gtest.h>

#include <array>
#include <set>

#include "engine/storage/layout/key_hash.h"
#include "engine/storage/owner/group_split.h"
#include "region_audit.h"
#include "test_index.h"

namespace rdmacc {
namespace {

using Coordinator = StorageCluster::Coordinator;

TableMeta make_table(StorageCluster& cluster, uint32_t number = 1) {
  TableMeta meta;
  cluster.run([&](Coordinator& c) {
    TableSpec spec;
    spec.relfilenode = number;
    spec.record_size = TestIndex::kRecordSize;
    spec.history = 0;
    Result<TableMeta> made = c.client.create_table(spec, c.worker.counters());
    ASSERT_TRUE(made.ok()) << made.status().to_string();
    meta = *made;
  });
  return meta;
}

std::function<void(Coordinator&)> inserter(StorageCluster& cluster, TableMeta table, uint64_t first,
                                           uint64_t count) {
  return [&cluster, table, first, count](Coordinator& c) {
    TestIndex index(c, cluster.topology(), table);
    for (uint64_t key = first; key < first + count; ++key) {
      const Status status = index.insert(key);
      ASSERT_TRUE(status.ok()) << key << ": " << status.to_string();
    }
  };
}

void expect_all_found(StorageCluster& cluster, TableMeta table, uint64_t keys, uint64_t step = 1) {
  cluster.run([&](Coordinator& c) {
    TestIndex index(c, cluster.topology(), table);
    std::set<uint64_t> places;
    for (uint64_t key = 0; key < keys; key += step) {
      Result<GlobalAddress> found = index.find(key);
      ASSERT_TRUE(found.ok()) << found.status().to_string();
      ASSERT_FALSE(found->null()) << "key " << key;
      ASSERT_TRUE(places.insert(found->bits).second);
    }
    EXPECT_TRUE(index.find(keys + 1'000'000)->null());
  });
}

TEST(HashIndex, FindsAllOfTwentyThousandKeysAfterItHasGrown) {
  constexpr uint64_t kKeys = 20'000;
  StorageCluster cluster({.coordinators = 2, .memory_bytes = 16ull << 20});
  const TableMeta table = make_table(cluster);
  std::vector<std::function<void(Coordinator&)>> bodies;
  for (uint64_t i = 0; i < 16; ++i) {
    bodies.push_back(inserter(cluster, table, i * kKeys / 16, kKeys / 16));
  }
  cluster.run(std::move(bodies), 50'000'000);
  cluster.settle();
  expect_all_found(cluster, table, kKeys, 7);
  uint64_t entries = 0, splits = 0;
  for (NodeId node = 0; node < 2; ++node) {
    const RegionAudit audit = RegionAudit::of(cluster.region(node), cluster.layout());
    EXPECT_EQ(audit.fault, "");
    EXPECT_EQ(audit.locked_gaps, 0u);
    EXPECT_GT(audit.root_depth_max, kInitialDepth + 3);
    EXPECT_LT(audit.chained_buckets, audit.groups * 2);
    EXPECT_EQ(cluster.storage(node).statistics().rows, audit.entries);
    entries += audit.entries;
    splits += cluster.storage(node).statistics().splits;
  }
  EXPECT_EQ(entries, kKeys);
  EXPECT_GT(splits, 300u);
}

TEST(HashIndex, KeepsErasedKeysAbsentAndOthersPresent) {
  StorageCluster cluster({.nodes = 1});
  const TableMeta table = make_table(cluster);
  cluster.run(inserter(cluster, table, 0, 500));
  cluster.run([&](Coordinator& c) {
    TestIndex index(c, cluster.topology(), table);
    for (uint64_t key = 0; key < 500; key += 2) ASSERT_TRUE(index.erase(key).ok());
    for (uint64_t key = 0; key < 500; ++key) EXPECT_EQ(index.find(key)->null(), key % 2 == 0);
    EXPECT_EQ(index.erase(0).code(), Code::kNotFound);
    EXPECT_EQ(index.insert(1).code(), Code::kDuplicateKey);
  });
  EXPECT_EQ(cluster.storage(0).statistics().rows, 250u);
}

// Keys of one bucket of one group, which the first bits that the group does not claim tell apart.
std::vector<uint64_t> keys_of_one_bucket(TableMeta table, size_t count, uint32_t bucket = 0) {
  std::vector<uint64_t> keys;
  for (uint64_t key = 0; keys.size() < count; ++key) {
    const std::string bytes(reinterpret_cast<const char*>(&key), sizeof(key));
    const uint64_t hash = hash_key(table.id, bytes);
    if (group_bits_of(hash, kInitialDepth) != 0) continue;
    if (home_bucket_of(hash) == bucket) keys.push_back(key);
  }
  return keys;
}

// A look-up reads one chained bucket at most, however few keys the group has.
TEST(GroupSplit, ShortensChains) {
  StorageCluster cluster({.nodes = 1});
  const TableMeta table = make_table(cluster);
  constexpr size_t kKeys = GroupSplitter::kChainEntriesMax + 1;
  static_assert(kKeys < GroupSplitter::kSplitEntriesMin);
  cluster.run([&](Coordinator& c) {
    TestIndex index(c, cluster.topology(), table);
    for (const uint64_t key : keys_of_one_bucket(table, kKeys)) {
      ASSERT_TRUE(index.insert(key).ok());
    }
  });
  cluster.settle();
  const RegionAudit audit = RegionAudit::of(cluster.region(0), cluster.layout());
  EXPECT_EQ(audit.fault, "");
  EXPECT_EQ(audit.entries, kKeys);
  EXPECT_GT(cluster.storage(0).statistics().splits, 0u);
  EXPECT_LE(audit.chained_buckets, 2u);
}

// So that the next insert need not ask for a bucket with its locks held.
TEST(GroupSplit, LeavesASpareBucketBehindAChainThatIsFull) {
  StorageCluster cluster({.nodes = 1});
  const TableMeta table = make_table(cluster);
  const auto audit = [&] { return RegionAudit::of(cluster.region(0), cluster.layout()); };
  const auto insert = [&](const std::vector<uint64_t>& keys) {
    cluster.run([&](Coordinator& c) {
      TestIndex index(c, cluster.topology(), table);
      for (const uint64_t key : keys) ASSERT_TRUE(index.insert(key).ok());
    });
  };
  const auto tell_of_all_groups = [&] {
    std::vector<GlobalAddress> groups;
    for (const auto& [offset, bytes] : audit().reachable) {
      if (bytes == sizeof(Group)) groups.push_back(GlobalAddress::make(0, offset));
    }
    cluster.run([&](Coordinator& c) {
      ASSERT_TRUE(c.client.split_soon(groups, c.worker.counters()).ok());
    });
    cluster.settle();
  };
  std::vector<uint64_t> keys = keys_of_one_bucket(table, kEntriesPerBucket + 1);
  const uint64_t last = keys.back();
  keys.pop_back();
  insert(keys);
  EXPECT_EQ(audit().chained_buckets, 0u);
  for (int i = 0; i < 2; ++i) {
    tell_of_all_groups();
    EXPECT_EQ(audit().chained_buckets, 1u) << i;
  }
  insert({last});
  tell_of_all_groups();
  EXPECT_EQ(audit().chained_buckets, 1u);
  EXPECT_EQ(audit().entries, kEntriesPerBucket + 1);
  EXPECT_EQ(audit().fault, "");
  EXPECT_EQ(cluster.storage(0).statistics().splits, 0u);
}

// Hints that come while a group is being split: a bucket that is chained then would be cut off with
// what the split has seen of the chain, and nothing would know of it.
TEST(GroupSplit, LeavesNoBucketBehindThatIsChainedMeanwhile) {
  for (uint64_t seed = 1; seed <= 40; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    StorageCluster cluster({.seed = seed, .nodes = 1, .coordinators = 2});
    const TableMeta table = make_table(cluster);
    for (uint32_t number = 2; number < 5; ++number) make_table(cluster, number);
    const auto audit = [&] { return RegionAudit::of(cluster.region(0), cluster.layout()); };
    const auto unreachable_bytes = [&] {
      uint64_t reachable = 0;
      for (const auto& [offset, bytes] : audit().reachable) reachable += bytes;
      return cluster.storage(0).statistics().used_bytes - reachable;
    };
    // Two full buckets in one chain, and as many keys as a split wants.
    cluster.run([&](Coordinator& c) {
      TestIndex index(c, cluster.topology(), table);
      constexpr std::array<size_t, 3> kKeys = {2 * kEntriesPerBucket, kEntriesPerBucket, 3};
      for (uint32_t bucket = 0; bucket < kKeys.size(); ++bucket) {
        for (const uint64_t key : keys_of_one_bucket(table, kKeys[bucket], bucket)) {
          ASSERT_TRUE(index.insert(key).ok());
        }
        c.worker.scheduler().sleep_for(10'000);
      }
    });
    ASSERT_EQ(audit().chained_buckets, 1u);
    GlobalAddress full;
    std::vector<GlobalAddress> all;
    for (const auto& [offset, bytes] : audit().reachable) {
      if (bytes != sizeof(Group)) continue;
      Header gap;
      std::memcpy(&gap, cluster.region(0) + offset, sizeof(gap));
      all.push_back(GlobalAddress::make(0, offset));
      if (gap.table == table.id && gap.key_hash == 0) full = all.back();
    }
    ASSERT_FALSE(full.null());
    all.push_back(full);  // the last: many wait before it
    const uint64_t before = unreachable_bytes();
    const auto hint = [&](Coordinator& c, const std::vector<GlobalAddress>& groups) {
      ASSERT_TRUE(c.client.split_soon(groups, c.worker.counters()).ok());
    };
    const auto splits = [&] { return cluster.storage(0).statistics().splits; };
    cluster.run({[&](Coordinator& c) { hint(c, {full}); },
                 [&](Coordinator& c) {
                   const auto* gap =
                       reinterpret_cast<const Header*>(cluster.region(0) + full.offset());
                   for (int i = 0; i < 100'000 && gap->lock == 0 && splits() == 0; ++i) {
                     c.worker.scheduler().sleep_for(1);
                   }
                   while (splits() == 0) hint(c, all);
                 }});
    cluster.settle();
    EXPECT_EQ(audit().fault, "");
    EXPECT_EQ(unreachable_bytes(), before);
    if (::testing::Test::HasFailure()) return;
  }
}

// Readers look for keys that are there all the time while the groups around them split.
TEST(GroupSplit, LosesNoKeyForConcurrentReaders) {
  for (uint64_t seed = 1; seed <= 25; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    constexpr uint64_t kOld = 200, kNew = 900;
    StorageCluster cluster({.seed = seed, .nodes = 1, .coordinators = 3, .lossy = seed % 4 == 0});
    const TableMeta table = make_table(cluster);
    cluster.run(inserter(cluster, table, 0, kOld));
    size_t inserting = 2;
    uint64_t reads = 0;
    const auto reader = [&](Coordinator& c) {
      TestIndex index(c, cluster.topology(), table);
      while (inserting > 0) {
        const uint64_t key = c.worker.endpoint().random().below(kOld);
        Result<GlobalAddress> found = index.find(key);
        ASSERT_TRUE(found.ok()) << found.status().to_string();
        ASSERT_FALSE(found->null()) << "key " << key;
        ++reads;
      }
    };
    const auto writer = [&](uint64_t first) {
      return [&, insert = inserter(cluster, table, first, kNew / 2)](Coordinator& c) {
        insert(c);
        --inserting;
      };
    };
    cluster.run({writer(kOld), reader, reader, writer(kOld + kNew / 2)});
    EXPECT_GT(cluster.storage(0).statistics().splits, 10u);
    EXPECT_GT(reads, 100u);
    cluster.settle();
    const RegionAudit audit = RegionAudit::of(cluster.region(0), cluster.layout());
    EXPECT_EQ(audit.fault, "");
    EXPECT_EQ(audit.entries, kOld + kNew);
    if (::testing::Test::HasFailure()) return;
  }
}

TEST(GroupSplit, ChangesStampsIncarnationAndLeasesOfBothHalves) {
  StorageCluster cluster({.nodes = 1});
  const TableMeta table = make_table(cluster);
  const auto headers = [&] {
    std::map<uint64_t, Header> found;
    const RegionAudit audit = RegionAudit::of(cluster.region(0), cluster.layout());
    for (const auto& [offset, bytes] : audit.reachable) {
      if (bytes != sizeof(Group)) continue;
      std::memcpy(&found[offset], cluster.region(0) + offset, sizeof(Header));
    }
    return found;
  };
  const std::map<uint64_t, Header> before = headers();
  ASSERT_EQ(before.size(), 16u);
  for (const auto& [offset, header] : before) {
    // A lease and a read timestamp that both halves must inherit.
    auto* gap = reinterpret_cast<Header*>(cluster.region(0) + offset);
    gap->rts = 77ull << 40;
    gap->sundial = (100ull << 16) | 50;
  }
  cluster.run(inserter(cluster, table, 0, 2'000));
  uint64_t split = 0;
  for (const auto& [offset, now] : headers()) {
    EXPECT_EQ(now.lock, 0u);
    const auto old = before.find(offset);
    if (now.length == kInitialDepth) continue;
    ++split;
    EXPECT_GT(now.sundial >> 16, 150u);
    EXPECT_GE(now.rts, 77ull << 40);
    if (old == before.end()) continue;
    EXPECT_GT(now.incarnation, old->second.incarnation);
  }
  EXPECT_GT(split, 32u);
}

}  // namespace
}  // namespace rdmacc
