#include "engine/log/log_ring.h"

#include <map>

#include "tests/unit/log/log_cluster.h"

namespace rdmacc {
namespace {

const std::vector<NodeId> kBoth{0, 1};

bool holds(const std::vector<FoundEntry>& entries, uint64_t ctts, const Payload& payload) {
  for (const FoundEntry& entry : entries) {
    if (entry.header.lock_ctts == ctts) {
      return entry.stored.size() == payload.size() &&
             std::equal(payload.begin(), payload.end(), entry.stored.begin());
    }
  }
  return false;
}

// Coroutines append, live for a while and are applied in any order, over many laps.
TEST(LogRing, KeepsEveryEntryUntilApplied) {
  for (uint64_t seed = 1; seed <= 6; ++seed) {
    LogCluster cluster(seed);
    LogUser& user = cluster.user(0);
    std::map<uint64_t, Payload> live;  // acknowledged by both nodes
    int under_way = 0;
    uint64_t bytes_appended = 0, next_ctts = 1;
    for (int c = 0; c < 12; ++c) {
      ++under_way;
      CHECK(user.worker.scheduler().spawn([&, c] {
        Random random(seed * 100 + static_cast<uint64_t>(c));
        for (int i = 0; i < 25; ++i) {
          const uint64_t ctts = next_ctts++;
          const size_t bytes = 1 + random.below(random.percent(20) ? 60'000 : 14'000);
          const Payload payload = make_payload(bytes, ctts);
          VerbArena arena(user.worker.pool());
          std::vector<LogPlacement> placements;
          ASSERT_TRUE(append(cluster, user, payload, ctts, kBoth, arena, placements).ok());
          bytes_appended += bytes;
          live.emplace(ctts, payload);
          user.worker.scheduler().sleep_for(random.below(60));
          for (const NodeId node : kBoth) {
            const auto entries = cluster.entries(node, user.worker.id());
            for (const auto& [of, expected] : live) {
              ASSERT_TRUE(holds(entries, of, expected)) << "seed " << seed << " ctts " << of;
            }
          }
          live.erase(ctts);
          user.log.applied(placements);
          if (random.percent(10)) user.worker.scheduler().sleep_for(random.below(100));
        }
        --under_way;
      }));
    }
    ASSERT_TRUE(cluster.fabric().run_until([&] { return under_way == 0; }, 200'000'000));
    EXPECT_GT(bytes_appended, 8 * kLogRingBytes);
    EXPECT_GT(user.log.full_waits(), 0u);
    // What is found now is old but whole: each lap's bytes never pass as another's.
    for (const FoundEntry& entry : cluster.entries(0, user.worker.id())) {
      const Payload expected = make_payload(entry.stored.size(), entry.header.lock_ctts);
      EXPECT_TRUE(std::equal(expected.begin(), expected.end(), entry.stored.begin()));
    }
  }
}

TEST(LogRing, AFullRingWaitsUntilTheOldestIsApplied) {
  LogCluster cluster(1);
  LogUser& user = cluster.user(0);
  const Payload payload = make_payload(100'000, 1);
  VerbArena arena(user.worker.pool());
  std::vector<LogPlacement> first, second, third;
  cluster.run(user.worker, [&] {
    ASSERT_TRUE(append(cluster, user, payload, 1, kBoth, arena, first).ok());
    ASSERT_TRUE(append(cluster, user, payload, 2, kBoth, arena, second).ok());
  });
  bool placed = false;
  CHECK(user.worker.scheduler().spawn([&] {
    ASSERT_TRUE(append(cluster, user, payload, 3, kBoth, arena, third).ok());
    placed = true;
  }));
  const auto run_for = [&](uint64_t us) {
    cluster.run(cluster.node(0).worker, [&] { cluster.node(0).worker.scheduler().sleep_for(us); });
  };
  run_for(20'000);
  EXPECT_FALSE(placed);
  user.log.applied(second);  // not the oldest: its room is behind the first's
  run_for(20'000);
  EXPECT_FALSE(placed);
  user.log.applied(first);
  run_for(20'000);
  EXPECT_TRUE(placed);
  EXPECT_EQ(user.log.full_waits(), 1u);
  const auto entries = cluster.entries(1, user.worker.id());
  EXPECT_TRUE(holds(entries, 3, payload));
}

TEST(LogRing, CancellingTheWaitLeavesNothingBehind) {
  LogCluster cluster(2);
  LogUser& user = cluster.user(0);
  const Payload payload = make_payload(110'000, 1);
  VerbArena arena(user.worker.pool());
  std::vector<LogPlacement> first, second, third;
  bool cancelled = false;
  cluster.run(user.worker, [&] {
    ASSERT_TRUE(append(cluster, user, payload, 1, kBoth, arena, first).ok());
    ASSERT_TRUE(append(cluster, user, payload, 2, kBoth, arena, second).ok());
  });
  CHECK(cluster.node(0).worker.scheduler().spawn([&] {
    cluster.node(0).worker.scheduler().sleep_for(5'000);
    cancelled = true;
  }));
  cluster.run(user.worker, [&] {
    EXPECT_EQ(append(cluster, user, payload, 3, kBoth, arena, third, &cancelled).code(),
              Code::kCancelled);
    EXPECT_TRUE(third.empty());
    user.log.applied(first);
    EXPECT_TRUE(append(cluster, user, payload, 4, kBoth, arena, third).ok());
  });
}

TEST(LogRing, AVoidedEntryIsNoEntry) {
  LogCluster cluster(3);
  LogUser& user = cluster.user(0);
  const Payload payload = make_payload(500, 1);
  cluster.run(user.worker, [&] {
    VerbArena arena(user.worker.pool());
    VerbCounters counters;
    std::vector<LogPlacement> placements;
    ASSERT_TRUE(append(cluster, user, payload, 1, kBoth, arena, placements).ok());
    DoorbellBatch batch(user.worker.scheduler(), counters);
    for (const LogPlacement& placement : placements) {
      ASSERT_TRUE(add_log_voiding(cluster.layout(), placement, arena, batch));
    }
    ASSERT_TRUE(batch.execute().ok());
    user.log.applied(placements);
  });
  EXPECT_TRUE(cluster.entries(0, user.worker.id()).empty());
  EXPECT_TRUE(cluster.entries(1, user.worker.id()).empty());
}

TEST(LogRing, ALargePayloadGoesThroughSegments) {
  LogCluster cluster(4);
  LogUser& user = cluster.user(0);
  const Payload payload = make_payload(10'000'003, 1);
  const uint64_t used = cluster.node(1).storage->statistics().used_bytes;
  VerbArena arena(user.worker.pool());
  std::vector<LogPlacement> placements;
  cluster.run(user.worker, [&] {
    ASSERT_TRUE(append(cluster, user, payload, 9, kBoth, arena, placements).ok());
  });
  EXPECT_GT(cluster.node(1).storage->statistics().used_bytes, used + payload.size());
  std::vector<RingEntry> read;
  cluster.run(cluster.node(0).worker, [&] {
    VerbCounters counters;
    ASSERT_TRUE(
        read_ring(cluster.node(0).worker, cluster.layout(), 1, user.worker.id(), read, counters)
            .ok());
  });
  ASSERT_EQ(read.size(), 1u);
  EXPECT_EQ(read[0].payload, payload);
  EXPECT_FALSE(read[0].prepared);

  user.log.applied(placements);
  cluster.run(user.worker, [&] { user.worker.scheduler().sleep_for(5'000); });
  cluster.run(cluster.node(1).worker, [&] {
    for (int i = 0; i < 20; ++i) {
      cluster.node(1).worker.scheduler().sleep_for(1'000);
      cluster.node(1).storage->maintain();
    }
  });
  EXPECT_EQ(cluster.node(1).storage->statistics().used_bytes, used);
}

TEST(LogRing, WithoutRoomForSegmentsTheTransactionFailsCleanly) {
  LogCluster cluster(5);
  LogUser& user = cluster.user(0);
  const Payload payload = make_payload(120'000'000, 1);
  VerbArena arena(user.worker.pool());
  std::vector<LogPlacement> placements;
  cluster.run(user.worker, [&] {
    EXPECT_EQ(append(cluster, user, payload, 9, kBoth, arena, placements).code(), Code::kNoSpace);
    EXPECT_TRUE(placements.empty());
    const Payload small = make_payload(1'000, 2);
    EXPECT_TRUE(append(cluster, user, small, 10, kBoth, arena, placements).ok());
  });
}

// The coordinator dies at every event of two appends: each entry is there whole or not at all,
// and what was acknowledged is there.
TEST(LogRing, ACoordinatorThatDiesLeavesWholeEntriesOnly) {
  const Payload first = make_payload(700, 1), second = make_payload(1'200, 2);
  bool ended = false;
  uint64_t with_none = 0, with_one = 0, with_both = 0;
  for (uint64_t kill_at = 1; !ended; ++kill_at) {
    LogCluster cluster(kill_at % 7 + 1, 2);
    LogUser& user = cluster.user(0);
    int acknowledged = 0;
    VerbArena arena(user.worker.pool());
    CHECK(user.worker.scheduler().spawn([&] {
      std::vector<LogPlacement> placements[2];
      CHECK(append(cluster, user, first, 1, kBoth, arena, placements[0]).ok());
      ++acknowledged;
      CHECK(append(cluster, user, second, 2, kBoth, arena, placements[1]).ok());
      ++acknowledged;
    }));
    uint64_t events = 0;
    cluster.fabric().set_observer([&](uint64_t) {
      if (++events == kill_at) cluster.kill(user);
    });
    cluster.fabric().run_until([&] { return user.killed || acknowledged == 2; }, 100'000);
    ended = !user.killed;
    cluster.kill(user);
    cluster.wait_departed();
    for (const NodeId node : kBoth) {
      const auto entries = cluster.entries(node, user.worker.id());
      for (const FoundEntry& entry : entries) {
        EXPECT_TRUE(
            holds(entries, entry.header.lock_ctts, entry.header.lock_ctts == 1 ? first : second));
      }
      EXPECT_GE(entries.size(), static_cast<size_t>(acknowledged));
      (entries.empty() ? with_none : entries.size() == 1 ? with_one : with_both) += 1;
    }
  }
  EXPECT_GT(with_none, 10u);
  EXPECT_GT(with_one, 10u);
  EXPECT_GT(with_both, 0u);
}

TEST(LogRing, ANewOwnerStartsWithACleanRing) {
  LogCluster cluster(6);
  LogUser& old_owner = cluster.user(0);
  const WorkerId id = old_owner.worker.id();
  const Payload payload = make_payload(500, 1);
  cluster.run(old_owner.worker, [&] {
    for (uint64_t ctts = 1; ctts <= 5; ++ctts) {
      VerbArena arena(old_owner.worker.pool());
      std::vector<LogPlacement> placements;
      ASSERT_TRUE(append(cluster, old_owner, payload, ctts, kBoth, arena, placements).ok());
      if (ctts < 3) old_owner.log.applied(placements);
    }
  });
  cluster.kill(old_owner);
  cluster.wait_departed();
  cluster.fabric().release(id);
  LogUser& owner = cluster.add_user();
  ASSERT_EQ(owner.worker.id(), id);
  cluster.run(owner.worker, [&] {
    VerbArena arena(owner.worker.pool());
    std::vector<LogPlacement> placements;
    ASSERT_TRUE(append(cluster, owner, payload, 100, kBoth, arena, placements).ok());
  });
  const auto entries = cluster.entries(0, id);
  ASSERT_EQ(entries.size(), 1u);
  EXPECT_EQ(entries[0].header.lock_ctts, 100u);
}

TEST(LogPlacement, TravelsInARequestAndIsCheckedThere) {
  LogCluster cluster(7);
  LogUser& user = cluster.user(0);
  VerbArena arena(user.worker.pool());
  std::vector<LogPlacement> placements;
  cluster.run(user.worker, [&] {
    VerbCounters counters;
    ASSERT_TRUE(user.log
                    .place(LoggedBytes(make_payload(300, 1)), 5, std::vector<NodeId>{1}, arena,
                           nullptr, counters, placements)
                    .ok());
  });
  std::vector<std::byte> bytes;
  MessageWriter writer(bytes);
  encode_placement(placements[0], writer);
  MessageReader whole(bytes);
  auto decoded = decode_placement(whole, user.worker.id(), 1, arena);
  ASSERT_TRUE(decoded.ok() && whole.at_end());
  EXPECT_EQ(decoded->position, placements[0].position);
  EXPECT_TRUE(std::equal(decoded->entry.begin(), decoded->entry.end(), placements[0].entry.begin(),
                         placements[0].entry.end()));

  Random random(8);
  for (int i = 0; i < 50'000; ++i) {
    std::vector<std::byte> mutated = bytes;
    for (uint64_t n = 1 + random.below(3); n > 0; --n) {
      mutated[random.below(60)] ^= static_cast<std::byte>(1 + random.below(255));
    }
    if (random.percent(20)) mutated.resize(random.below(mutated.size()));
    VerbArena scratch(user.worker.pool());
    MessageReader in(mutated);
    auto accepted = decode_placement(in, user.worker.id(), 1, scratch);
    if (!accepted.ok()) continue;
    EXPECT_LE(accepted->position % kLogRingBytes + accepted->entry.size(), kLogRingBytes);
    EXPECT_EQ(accepted->position % 64, 0u);
  }
}

}  // namespace
}  // namespace rdmacc
