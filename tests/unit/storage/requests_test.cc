#include <gtest/gtest.h>

#include "engine/storage/layout/overflow.h"
#include "engine/storage/layout/sundial_word.h"
#include "engine/storage/wire/storage_messages.h"
#include "region_audit.h"
#include "test_index.h"

// What a faulty or malicious peer may send: it is refused, and nothing changes.

namespace rdmacc {
namespace {

using Coordinator = StorageCluster::Coordinator;
using Free = StorageClient::FreeRequest;

class Requests : public ::testing::Test {
 protected:
  Requests() : cluster_({.nodes = 1}) {
    cluster_.run([&](Coordinator& c) {
      TableSpec spec;
      spec.relfilenode = 1;
      spec.record_size = TestIndex::kRecordSize;
      spec.history = 0;
      table_ = c.client.create_table(spec, c.worker.counters()).value();
      TestIndex index(c, cluster_.topology(), table_);
      for (uint64_t key = 0; key < 50; ++key) ASSERT_TRUE(index.insert(key).ok());
    });
    const RegionAudit audit = RegionAudit::of(cluster_.region(0), cluster_.layout());
    linked_slot_ = *audit.slots.begin();
    for (const auto& [offset, bytes] : audit.reachable) {
      if (bytes == sizeof(Group)) group_ = offset;
    }
  }

  Code send(Coordinator& c, MethodId method, const Rpc::Bytes& request) {
    Rpc::Call call;
    call.to = 0;
    call.method = method;
    call.request = request;
    return c.worker.rpc().call_one(call, c.worker.counters()).code();
  }
  Code free_one(Coordinator& c, uint64_t offset, FreeKind kind, uint64_t ctts) {
    const Free request{GlobalAddress::make(0, offset), kind};
    return c.client.free(std::span(&request, 1), ctts, c.worker.counters()).code();
  }
  Header& header(uint64_t offset) {
    return *reinterpret_cast<Header*>(cluster_.region(0) + offset);
  }

  StorageCluster cluster_;
  TableMeta table_;
  uint64_t linked_slot_ = 0, group_ = 0;
};

TEST_F(Requests, ToFreeWhatIsNotTheirsAreRefused) {
  cluster_.run([&](Coordinator& c) {
    const std::vector<uint64_t> wrong = {0,
                                         8,
                                         cluster_.layout().pages - 64,
                                         linked_slot_ + 64,
                                         linked_slot_ + 8,
                                         group_,
                                         cluster_.topology().region_bytes,
                                         (1ull << 48) - 64};
    for (const uint64_t offset : wrong) {
      EXPECT_EQ(free_one(c, offset, FreeKind::kSlot, 1), Code::kInvalidArgument) << offset;
      EXPECT_EQ(free_one(c, offset, FreeKind::kOverflow, 1), Code::kInvalidArgument) << offset;
    }
    EXPECT_EQ(free_one(c, linked_slot_, FreeKind::kSlot, 1), Code::kInvalidArgument);
    EXPECT_EQ(free_one(c, linked_slot_, FreeKind::kOverflow, 1), Code::kInvalidArgument);
    StorageClient::SlotRequest slot{};
    slot.table = table_.id;
    ASSERT_TRUE(c.client.allocate(std::span(&slot, 1), 0x50001, c.worker.counters()).ok());
    // Put off until its lock is free, and forgotten when its owner has freed it meanwhile.
    EXPECT_EQ(free_one(c, slot.slot.offset(), FreeKind::kSlot, 0x60001), Code::kOk);
    EXPECT_EQ(header(slot.slot.offset()).lock, 0x50001u);
    EXPECT_EQ(free_one(c, slot.slot.offset(), FreeKind::kSlot, 0x50001), Code::kOk);
  });
}

TEST_F(Requests, ToSplitSoonAreHints) {
  cluster_.run([&](Coordinator& c) {
    VerbCounters& counters = c.worker.counters();
    const GlobalAddress hints[] = {
        GlobalAddress::make(0, group_), GlobalAddress::make(0, group_ + 8),
        GlobalAddress::make(0, linked_slot_), GlobalAddress::make(0, (1ull << 48) - 64)};
    EXPECT_TRUE(c.client.split_soon(hints, counters).ok());
    EXPECT_TRUE(c.client.wait_for_pending_splits(std::vector<NodeId>{0}, counters).ok());
    EXPECT_EQ(c.client.statistics(0, counters)->splits, 0u) << "none of them is full";
    Rpc::Bytes request;
    MessageWriter(request).u32(kFullGroupsMax + 1);
    for (uint32_t i = 0; i <= kFullGroupsMax; ++i) MessageWriter(request).u64(group_);
    EXPECT_EQ(send(c, kMethodSplitSoon, request), Code::kInvalidArgument);
  });
  EXPECT_EQ(RegionAudit::of(cluster_.region(0), cluster_.layout()).fault, "");
}

TEST_F(Requests, ToExtendNeedTheLockAndARealBucket) {
  cluster_.run([&](Coordinator& c) {
    VerbCounters& counters = c.worker.counters();
    const GlobalAddress group = GlobalAddress::make(0, group_);
    const auto extend = [&](GlobalAddress at, uint32_t bucket, uint32_t entries, uint64_t ctts) {
      return c.client.extend_bucket(at, bucket, entries, ctts, counters).code();
    };
    EXPECT_EQ(extend(group, 0, 1, 0), Code::kInvalidArgument);
    EXPECT_EQ(extend(group, 0, 1, 0x70001), Code::kInvalidArgument);
    // SUNDIAL's own word names its worker, of which another transaction may be the holder.
    const uint64_t lease = std::exchange(header(group_).sundial, sundial_locked_word(12, 1));
    EXPECT_EQ(extend(group, 0, 1, 0x70001), Code::kInvalidArgument);
    header(group_).sundial = lease;
    header(group_).lock = 0x70001;
    EXPECT_EQ(extend(group, 8, 1, 0x70001), Code::kInvalidArgument);
    EXPECT_EQ(extend(group, 0, 1u << 31, 0x70001), Code::kNoSpace);
    EXPECT_EQ(extend(GlobalAddress::make(0, linked_slot_), 0, 1, 0x70001), Code::kInvalidArgument);
    EXPECT_EQ(extend(group.plus(8), 0, 1, 0x70001), Code::kInvalidArgument);
    EXPECT_EQ(extend(group, 0, 30, 0x70001), Code::kOk);
    EXPECT_EQ(extend(group, 0, 30, 0x70001), Code::kOk);
    header(group_).lock = 0;
    const RegionAudit audit = RegionAudit::of(cluster_.region(0), cluster_.layout());
    EXPECT_EQ(audit.fault, "");
    EXPECT_GE(audit.chained_buckets, 4u);
    EXPECT_LE(audit.chained_buckets, 5u);
  });
}

TEST_F(Requests, ToAllocateNeedATableACttsAndASaneLength) {
  cluster_.run([&](Coordinator& c) {
    VerbCounters& counters = c.worker.counters();
    StorageClient::SlotRequest slot{};
    slot.table = table_.id + 1;
    EXPECT_EQ(c.client.allocate(std::span(&slot, 1), 5, counters).code(), Code::kNotFound);
    slot.table = table_.id + kDirectoryEntries;
    EXPECT_EQ(c.client.allocate(std::span(&slot, 1), 5, counters).code(), Code::kNotFound);
    slot.table = table_.id;
    slot.overflow_bytes = kOverflowBytesMax + 1;
    EXPECT_EQ(c.client.allocate(std::span(&slot, 1), 5, counters).code(), Code::kTooLarge);
    slot.overflow_bytes = kOverflowBytesMax;
    EXPECT_TRUE(c.client.allocate(std::span(&slot, 1), 5, counters).ok());
    Rpc::Bytes no_ctts;
    AllocateRequest{0, {{table_.id, 1, 0, true}}}.write(no_ctts);
    EXPECT_EQ(send(c, kMethodAllocate, no_ctts), Code::kInvalidArgument);
  });
}

TEST_F(Requests, ToCreateNeedAReservationAndSaneSizes) {
  cluster_.run([&](Coordinator& c) {
    TableSpec spec;
    spec.relfilenode = 2;
    Rpc::Bytes unreserved;
    TableRequest{table_.id + 7, spec}.write(unreserved);
    EXPECT_EQ(send(c, kMethodCreateTable, unreserved), Code::kInvalidArgument);
    for (const uint32_t size : {0u, 15u, kRecordInlineMax + 1, ~0u}) {
      spec.record_size = size;
      EXPECT_EQ(c.client.create_table(spec, c.worker.counters()).status().code(),
                Code::kInvalidArgument);
    }
    spec.record_size = 64;
    spec.history = kHistoryMax + 1;
    EXPECT_EQ(c.client.create_table(spec, c.worker.counters()).status().code(),
              Code::kInvalidArgument);
    spec.history = kHistoryMax;
    EXPECT_TRUE(c.client.create_table(spec, c.worker.counters()).ok());
  });
}

TEST_F(Requests, OfArbitraryBytesDoNoHarm) {
  const RegionAudit before = RegionAudit::of(cluster_.region(0), cluster_.layout());
  cluster_.run([&](Coordinator& c) {
    Random random(3);
    for (int i = 0; i < 3'000; ++i) {
      const auto method = static_cast<MethodId>(kMethodAllocate + random.below(8));
      // Dropping the table, or making one, would be a legal request.
      if (method == kMethodDropTable || method == kMethodCreateTable) continue;
      Rpc::Bytes request(random.below(60));
      for (std::byte& each : request) {
        each = static_cast<std::byte>(random.below(3) > 0 ? 0 : random.below(256));
      }
      static_cast<void>(send(c, method, request));
    }
  });
  const RegionAudit after = RegionAudit::of(cluster_.region(0), cluster_.layout());
  EXPECT_EQ(after.fault, "");
  EXPECT_EQ(after.slots, before.slots);
}

// One-sided writers can write anything; the owner's own walks must survive it.
TEST_F(Requests, MaintenanceSurvivesNonsenseInTheIndex) {
  for (uint64_t seed = 1; seed <= 30; ++seed) {
    StorageCluster cluster({.seed = seed, .nodes = 1});
    TableMeta table;
    cluster.run([&](Coordinator& c) {
      TableSpec spec;
      spec.relfilenode = 1;
      spec.record_size = TestIndex::kRecordSize;
      spec.history = 0;
      table = c.client.create_table(spec, c.worker.counters()).value();
      TestIndex index(c, cluster.topology(), table);
      for (uint64_t key = 0; key < 300; ++key) ASSERT_TRUE(index.insert(key).ok());
      Random random(seed);
      const RegionAudit audit = RegionAudit::of(cluster.region(0), cluster.layout());
      for (const auto& [offset, bytes] : audit.reachable) {
        if (bytes != sizeof(Group) || random.percent(30)) continue;
        auto* words = reinterpret_cast<uint64_t*>(cluster.region(0) + offset);
        words[8 + random.below(64)] = random.percent(50) ? random.next() : offset + 64;
        words[5] = 0x70001;
        for (uint32_t bucket = 0; bucket < 8; ++bucket) {
          static_cast<void>(c.client.extend_bucket(GlobalAddress::make(0, offset), bucket, 40,
                                                   0x70001, c.worker.counters()));
        }
        words[5] = 0;
      }
      c.worker.scheduler().sleep_for(20'000);
      EXPECT_TRUE(c.client.drop_table(table.id, c.worker.counters()).ok());
    });
  }
}

}  // namespace
}  // namespace rdmacc
