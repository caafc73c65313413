// Many coroutines of many workers with random protocols, some of which ask for exclusive mode, or
// stand still inside, and workers that die inside: over seeds.
#include <cstdlib>

#include "engine/cluster/gate_drain.h"
#include "tests/unit/cluster/gate_cluster.h"

namespace rdmacc {
namespace {

constexpr size_t kUsers = 4;
constexpr int kCoroutines = 3;
constexpr uint64_t kEventsMax = 30'000'000;

// Coroutines of each worker that wait for a lock elsewhere.
std::array<int, 16> standing;

Standstill standstill_of(WorkerId worker) {
  return standing.at(worker) > 0 ? Standstill::kForLock : Standstill::kNone;
}

struct Storm {
  Storm(uint64_t storm_seed, bool with_kills)
      : cluster(storm_seed, kUsers, 12), seed(storm_seed), kills(with_kills) {
    standing.fill(0);
  }

  GateCluster cluster;
  GateDrain drain{cluster.node(), cluster.topology()};
  const uint64_t seed;
  const bool kills;
  int under_way = 0;  // coroutines of live users
  int kills_left = 3;
  bool stopped = false, node_ended = false;
  uint64_t entered = 0, timeouts = 0, exclusive = 0, drained = 0;
  const GateUser* owner = nullptr;  // in exclusive mode
  ProtocolId phase = 0xFF;          // protocol of the last that entered
  uint64_t largest_ctts = 0;        // given out so far
  uint64_t phase_floor = 0;         // largest_ctts when the phase began

  void transact(GateUser& user, Random& random, ProtocolId protocol) {
    VerbCounters counters;
    GateEntry entry;
    const bool hurried = random.percent(5);
    const uint64_t now_us = user.worker.endpoint().now_us();
    const uint64_t deadline_us = now_us + (hurried ? random.below(3'000) : 30'000'000);
    const auto enter = random.percent(15) ? &Gate::enter_exclusive : &Gate::enter;
    const Status status = (user.gate.*enter)(protocol, deadline_us, nullptr, counters, entry, 0);
    if (!status.ok()) {
      EXPECT_TRUE(hurried && status.code() == Code::kTimeout) << status.to_string();
      ++timeouts;
      return;
    }
    ++user.inside[protocol];
    ++entered;
    ASSERT_EQ(cluster.protocols_inside(), 1) << "seed " << seed;
    ASSERT_TRUE(owner == nullptr || owner->killed) << "seed " << seed << ": not alone";
    if (entry.exclusive) {
      ASSERT_EQ(alive_inside(), 1) << "seed " << seed;
      owner = &user;
      ++exclusive;
    }
    if (protocol != phase) {
      phase = protocol;
      phase_floor = largest_ctts;
    }
    // A clock runs ahead of the time when it has seen the stamp of one that does. (What a dead
    // worker gave out is only known to be below the time, so not with kills.)
    if (!kills && random.percent(20)) user.clock.observe(largest_ctts + (random.below(900) << 16));
    for (int i = 0; i < 2; ++i) {
      const uint64_t ctts = user.clock.next();
      ASSERT_GT(ctts, phase_floor) << "seed " << seed;
      largest_ctts = std::max(largest_ctts, ctts);
      if (random.percent(70)) user.worker.scheduler().sleep_for(random.below(40));
      ASSERT_EQ(cluster.protocols_inside(), 1) << "seed " << seed;
    }
    if (random.percent(1)) stand_still(user, random);
    --user.inside[protocol];
    if (owner == &user) owner = nullptr;
    user.gate.leave(entry);
  }

  // Others may join it then, although it is in exclusive mode.
  void stand_still(GateUser& user, Random& random) {
    if (owner == &user) owner = nullptr;
    ++standing.at(user.worker.id());
    user.worker.scheduler().sleep_for(random.below(3 * Gate::kStandstillUs));
    --standing.at(user.worker.id());
    ASSERT_EQ(cluster.protocols_inside(), 1) << "seed " << seed;
  }

  // As node 0 does for its sweeps: none is inside, nor comes in.
  void drain_now_and_then(Random& random) {
    constexpr uint64_t kBoundUs = 2 * Gate::kStandstillUs;
    if (!random.percent(10) || !drain.close({}, kBoundUs).ok()) return;
    ++drained;
    ASSERT_EQ(cluster.protocols_inside(), 0) << "seed " << seed;
    cluster.node().scheduler().sleep_for(random.below(3 * Gate::kStandstillUs));
    ASSERT_EQ(cluster.protocols_inside(), 0) << "seed " << seed;
    ASSERT_TRUE(drain.open(/*swept=*/true).ok());
  }

  int alive_inside() {
    int inside = 0;
    for (size_t i = 0; i < cluster.users(); ++i) {
      if (cluster.user(i).killed) continue;
      for (const int count : cluster.user(i).inside) inside += count;
    }
    return inside;
  }

  void start(GateUser& user, int transactions) {
    user.gate.watch_standstills(standstill_of);
    for (int c = 0; c < kCoroutines; ++c) {
      ++under_way;
      CHECK(user.worker.scheduler().spawn([this, &user, transactions, c] {
        Random random(seed * 1000 + user.worker.id() * 10u + static_cast<uint64_t>(c));
        for (int i = 0; i < transactions; ++i) {
          transact(user, random, static_cast<ProtocolId>(random.below(kProtocols)));
          if (random.percent(30)) user.worker.scheduler().sleep_for(random.below(200));
        }
        --under_way;
      }));
    }
  }

  void run(int transactions) {
    for (size_t i = 0; i < kUsers; ++i) start(cluster.user(i), transactions);
    CHECK(cluster.node().scheduler().spawn([this, transactions] {
      Random random(seed);
      while (!stopped) {
        cluster.node().scheduler().sleep_for(200 + random.below(1'500));
        cluster.resolve_departed();
        if (!kills) drain_now_and_then(random);
        if (!kills || kills_left == 0) continue;
        GateUser& victim = cluster.user(random.below(cluster.users()));
        if (victim.killed || cluster.users() > 9) continue;
        // Coroutines of a dead worker never end; count those that were under way.
        under_way -= static_cast<int>(victim.worker.scheduler().busy_coroutines());
        cluster.kill(victim);
        --kills_left;
        cluster.node().scheduler().sleep_for(random.below(3'000));
        start(cluster.add_user(), transactions / 4);
      }
      node_ended = true;
    }));
    const bool ended = cluster.fabric().run_until([&] { return under_way == 0; }, kEventsMax);
    stopped = true;
    ASSERT_TRUE(cluster.fabric().run_until([&] { return node_ended; }, kEventsMax));
    EXPECT_TRUE(ended) << "seed " << seed << ": a worker waits for ever";
  }
};

uint64_t seeds(uint64_t usual) {
  const char* asked = std::getenv("SEEDS");
  return asked != nullptr ? std::strtoull(asked, nullptr, 10) : usual;
}

TEST(GateStorm, NeverLetsTwoProtocolsMeet) {
  uint64_t switches = 0, exclusive = 0, drained = 0;
  for (uint64_t seed = 1; seed <= seeds(150) && !testing::Test::HasFailure(); ++seed) {
    Storm storm(seed, false);
    storm.run(25);
    EXPECT_GT(storm.entered, storm.timeouts);
    switches += storm.cluster.gate_line().switches;
    exclusive += storm.exclusive;
    drained += storm.drained;
  }
  EXPECT_GT(switches, 2'000u);
  EXPECT_GT(exclusive, 2'000u);
  EXPECT_GT(drained, 100u);
}

TEST(GateStorm, NeverLetsTwoProtocolsMeetWhenWorkersDie) {
  uint64_t switches = 0, exclusive = 0;
  for (uint64_t seed = 101; seed < 101 + seeds(150) && !testing::Test::HasFailure(); ++seed) {
    Storm storm(seed, true);
    storm.run(25);
    switches += storm.cluster.gate_line().switches;
    exclusive += storm.exclusive;
  }
  EXPECT_GT(switches, 2'000u);
  EXPECT_GT(exclusive, 2'000u);
}

}  // namespace
}  // namespace rdmacc
