#include "engine/cluster/gate.h"

#include "tests/unit/cluster/gate_cluster.h"

namespace rdmacc {
namespace {

constexpr uint64_t kEventsMax = 20'000'000;
constexpr uint64_t kLongUs = 60'000'000;

// Runs `task` on the user's worker until it has ended.
void run(GateCluster& cluster, Worker& worker, const std::function<void()>& task) {
  bool done = false;
  ASSERT_TRUE(worker.scheduler().spawn([&] {
    task();
    done = true;
  }));
  ASSERT_TRUE(cluster.fabric().run_until([&] { return done; }, kEventsMax));
}

// A transaction that is inside until release() is called.
struct Held {
  GateEntry entry;
  Status status;
  bool ended = false;  // enter() has returned
  bool cancelled = false;
};
void start_enter(GateUser& user, ProtocolId protocol, uint64_t wait_us, Held& held) {
  CHECK(user.worker.scheduler().spawn([&user, protocol, wait_us, &held] {
    VerbCounters counters;
    held.status = user.gate.enter(protocol, user.worker.endpoint().now_us() + wait_us,
                                  &held.cancelled, counters, held.entry);
    held.ended = true;
  }));
}
void enter_now(GateCluster& cluster, GateUser& user, ProtocolId protocol, Held& held) {
  start_enter(user, protocol, kLongUs, held);
  ASSERT_TRUE(cluster.fabric().run_until([&] { return held.ended; }, kEventsMax));
  ASSERT_TRUE(held.status.ok());
}
void run_for(GateCluster& cluster, uint64_t us) {
  const uint64_t until_us = cluster.node().endpoint().now_us() + us;
  run(cluster, cluster.node(), [&] { cluster.node().scheduler().sleep_until(until_us); });
}

TEST(Gate, IsSharedByTransactionsOfTheSameProtocol) {
  GateCluster cluster(1, 2);
  Held first, second, third;
  enter_now(cluster, cluster.user(0), 1, first);
  enter_now(cluster, cluster.user(1), 1, second);
  enter_now(cluster, cluster.user(1), 1, third);
  EXPECT_EQ(cluster.line_of(cluster.user(0)).inside, 2u);
  EXPECT_EQ(cluster.gate_line().switches, 0u);
}

TEST(Gate, AWorkersTransactionsJoinTheOneInsideWithoutAVerb) {
  GateCluster cluster(31, 1);
  GateUser& user = cluster.user(0);
  Held first;
  enter_now(cluster, user, 1, first);
  GateEntry second;
  VerbCounters counters;
  run(cluster, user.worker, [&] {
    ASSERT_TRUE(
        user.gate.enter(1, user.worker.endpoint().now_us() + kLongUs, nullptr, counters, second)
            .ok());
  });
  EXPECT_EQ(counters.round_trips, 0u);
  user.gate.leave(first.entry);
  run_for(cluster, 1'000);
  EXPECT_EQ(cluster.line_of(user).inside, 2u);
  user.gate.leave(second);
  run_for(cluster, 1'000);
  EXPECT_EQ(cluster.line_of(user).inside, 0u);
}

TEST(Gate, AWorkerThatIsNeverEmptyLetsAnotherProtocolIn) {
  constexpr int kBusyCoroutines = 4;
  constexpr uint64_t kInsideUs = 30, kEnoughUs = 20 * Gate::kShareUs;
  GateCluster cluster(32, 2);
  GateUser& busy = cluster.user(0);
  bool stop = false;
  int running = kBusyCoroutines;
  for (int i = 0; i < kBusyCoroutines; ++i) {
    ASSERT_TRUE(busy.worker.scheduler().spawn([&, i] {
      busy.worker.scheduler().sleep_for(static_cast<uint64_t>(i) * kInsideUs / kBusyCoroutines);
      while (!stop) {
        VerbCounters counters;
        GateEntry entry;
        const uint64_t deadline_us = busy.worker.endpoint().now_us() + kLongUs;
        ASSERT_TRUE(busy.gate.enter(0, deadline_us, nullptr, counters, entry).ok());
        busy.worker.scheduler().sleep_for(kInsideUs);
        busy.gate.leave(entry);
      }
      --running;
    }));
  }
  run_for(cluster, 2'000);
  EXPECT_EQ(cluster.gate_line().switches, 0u);
  Held other;
  start_enter(cluster.user(1), 1, kLongUs, other);
  run_for(cluster, kEnoughUs);
  EXPECT_TRUE(other.ended && other.status.ok());
  stop = true;
  if (other.entry.inside) cluster.user(1).gate.leave(other.entry);
  ASSERT_TRUE(cluster.fabric().run_until([&] { return running == 0; }, kEventsMax));
}

TEST(Gate, TellsWhichProtocolIsOpen) {
  GateCluster cluster(2, 2);
  VerbCounters counters;
  run(cluster, cluster.user(0).worker,
      [&] { EXPECT_EQ(cluster.user(0).gate.open_protocol(counters).value(), Gate::kNoProtocol); });
  Held held;
  enter_now(cluster, cluster.user(0), 2, held);
  run(cluster, cluster.user(1).worker,
      [&] { EXPECT_EQ(cluster.user(1).gate.open_protocol(counters).value(), 2); });
}

TEST(Gate, AnotherProtocolWaitsUntilTheLastHasLeft) {
  GateCluster cluster(3, 2);
  Held first, second, other;
  enter_now(cluster, cluster.user(0), 0, first);
  enter_now(cluster, cluster.user(0), 0, second);
  start_enter(cluster.user(1), 1, kLongUs, other);
  run_for(cluster, 20'000);
  EXPECT_FALSE(other.ended);
  cluster.user(0).gate.leave(first.entry);
  run_for(cluster, 20'000);
  EXPECT_FALSE(other.ended);
  cluster.user(0).gate.leave(second.entry);
  run_for(cluster, 20'000);
  EXPECT_TRUE(other.ended && other.status.ok());
  EXPECT_EQ(cluster.gate_line().switches, 1u);
  EXPECT_GE(cluster.gate_line().switch_us_max, 40'000u);
}

TEST(Gate, NewcomersOfTheOpenProtocolWaitBehindARequestedSwitch) {
  GateCluster cluster(4, 3);
  Held first, other, late, late_same_worker;
  enter_now(cluster, cluster.user(0), 0, first);
  start_enter(cluster.user(1), 1, kLongUs, other);
  run_for(cluster, 20'000);
  start_enter(cluster.user(2), 0, kLongUs, late);
  start_enter(cluster.user(0), 0, kLongUs, late_same_worker);
  run_for(cluster, 20'000);
  EXPECT_FALSE(other.ended || late.ended || late_same_worker.ended);
  cluster.user(0).gate.leave(first.entry);
  run_for(cluster, 20'000);
  EXPECT_TRUE(other.ended);
  EXPECT_FALSE(late.ended || late_same_worker.ended);
  cluster.user(1).gate.leave(other.entry);
  run_for(cluster, 20'000);
  EXPECT_TRUE(late.ended && late_same_worker.ended);
}

TEST(Gate, EndsTheWaitAtTheDeadline) {
  GateCluster cluster(5, 2);
  Held first, other;
  enter_now(cluster, cluster.user(0), 0, first);
  const uint64_t start_us = cluster.node().endpoint().now_us();
  start_enter(cluster.user(1), 1, 5'000, other);
  ASSERT_TRUE(cluster.fabric().run_until([&] { return other.ended; }, kEventsMax));
  EXPECT_EQ(other.status.code(), Code::kTimeout);
  const uint64_t waited_us = cluster.node().endpoint().now_us() - start_us;
  EXPECT_GE(waited_us, 5'000u);
  EXPECT_LE(waited_us, 10'000u);
}

TEST(Gate, EndsTheWaitWhenCancelled) {
  GateCluster cluster(6, 2);
  Held first, other;
  enter_now(cluster, cluster.user(0), 0, first);
  start_enter(cluster.user(1), 1, kLongUs, other);
  run_for(cluster, 10'000);
  EXPECT_FALSE(other.ended);
  other.cancelled = true;
  run_for(cluster, 3'000);
  EXPECT_TRUE(other.ended);
  EXPECT_EQ(other.status.code(), Code::kCancelled);
  run_for(cluster, 1'000);
  EXPECT_EQ(cluster.line_of(cluster.user(1)).waiting_for, 0u);
  EXPECT_EQ(cluster.line_of(cluster.user(1)).inside, 0u);
}

// A switch that is no longer waited for must not keep the open protocol out.
TEST(Gate, OpensAgainForTheOpenProtocolWhenTheRequesterGaveUp) {
  for (uint64_t seed = 1; seed <= 20; ++seed) {
    GateCluster cluster(seed, 3);
    Held first, other, late;
    enter_now(cluster, cluster.user(0), 0, first);
    start_enter(cluster.user(1), 1, 5'000, other);
    run_for(cluster, 10'000);
    ASSERT_EQ(other.status.code(), Code::kTimeout);
    cluster.user(0).gate.leave(first.entry);
    enter_now(cluster, cluster.user(2), 0, late);
    EXPECT_EQ(cluster.gate_line().switches, 0u);
  }
}

TEST(Gate, OnlyResolutionLetsADeadWorkerOut) {
  GateCluster cluster(7, 2);
  Held first, other;
  enter_now(cluster, cluster.user(0), 0, first);
  cluster.kill(cluster.user(0));
  start_enter(cluster.user(1), 1, kLongUs, other);
  run_for(cluster, 50'000);
  EXPECT_FALSE(other.ended);
  run(cluster, cluster.node(), [&] { cluster.resolve_departed(); });
  run_for(cluster, 20'000);
  EXPECT_TRUE(other.ended && other.status.ok());
}

TEST(Gate, ADeadWaiterIsNotWaitedFor) {
  GateCluster cluster(8, 3);
  Held first, dead, other;
  enter_now(cluster, cluster.user(0), 0, first);
  start_enter(cluster.user(1), 1, kLongUs, dead);
  run_for(cluster, 5'000);
  start_enter(cluster.user(2), 2, kLongUs, other);
  run_for(cluster, 5'000);
  cluster.kill(cluster.user(1));
  cluster.user(0).gate.leave(first.entry);
  run_for(cluster, 50'000);
  EXPECT_TRUE(other.ended && other.status.ok());
}

TEST(Gate, OpensForTheLongestWaiting) {
  GateCluster cluster(9, 3);
  Held first, older, younger;
  enter_now(cluster, cluster.user(0), 0, first);
  start_enter(cluster.user(1), 1, kLongUs, older);
  run_for(cluster, 1'000);
  start_enter(cluster.user(2), 2, kLongUs, younger);
  run_for(cluster, 20'000);
  cluster.user(0).gate.leave(first.entry);
  run_for(cluster, 20'000);
  EXPECT_TRUE(older.ended);
  EXPECT_FALSE(younger.ended);
}

// A stopped process keeps its place in the queue but not the others out.
TEST(Gate, AWaiterThatSleepsDoesNotStarveTheOthers) {
  GateCluster cluster(10, 3);
  Held first, sleeper, other;
  enter_now(cluster, cluster.user(0), 0, first);
  start_enter(cluster.user(1), 1, kLongUs, sleeper);
  run_for(cluster, 5'000);
  cluster.fabric().attach(cluster.user(1).worker.id(), nullptr);
  start_enter(cluster.user(2), 2, kLongUs, other);
  cluster.user(0).gate.leave(first.entry);
  run_for(cluster, 50'000);
  EXPECT_TRUE(other.ended && other.status.ok());
}

TEST(Gate, PublishesTheOldestEpochOfThoseInside) {
  GateCluster cluster(11, 1);
  GateUser& user = cluster.user(0);
  Held first, second, third;
  enter_now(cluster, user, 0, first);
  cluster.gate_line().epoch = 5;
  run_for(cluster, 2 * Gate::kShareUs);  // or the next one joins, with the epoch known by then
  enter_now(cluster, user, 0, second);
  cluster.gate_line().epoch = 9;
  run_for(cluster, 2 * Gate::kShareUs);
  enter_now(cluster, user, 0, third);
  run_for(cluster, 1'000);
  EXPECT_EQ(cluster.line_of(user).epoch, 2u);
  user.gate.leave(first.entry);
  run_for(cluster, 1'000);
  EXPECT_EQ(cluster.line_of(user).epoch, 5u);
  user.gate.leave(third.entry);
  run_for(cluster, 1'000);
  EXPECT_EQ(cluster.line_of(user).epoch, 5u);
  user.gate.leave(second.entry);
  run_for(cluster, 1'000);
  EXPECT_EQ(cluster.line_of(user).epoch, 0u);
  EXPECT_EQ(cluster.line_of(user).inside, 0u);
}

TEST(Gate, ABusyWorkerDoesNotPinTheEpoch) {
  GateCluster cluster(12, 1);
  GateUser& user = cluster.user(0);
  Held held[2];
  enter_now(cluster, user, 0, held[0]);
  for (uint64_t epoch = 3; epoch < 50; ++epoch) {
    cluster.gate_line().epoch = epoch;
    Held& next = held[(epoch + 1) % 2 == 0 ? 1 : 0];
    Held& previous = &next == &held[0] ? held[1] : held[0];
    next = Held{};
    run_for(cluster, 2 * Gate::kShareUs);
    enter_now(cluster, user, 0, next);
    user.gate.leave(previous.entry);
    run_for(cluster, 100);
    EXPECT_EQ(cluster.line_of(user).epoch, epoch);
    EXPECT_EQ(cluster.line_of(user).inside, 1u);
  }
}

TEST(Gate, ANewOwnerOfASlotGivesOutLargerTimestamps) {
  GateCluster cluster(13, 1);
  const uint64_t ahead = (uint64_t{1} << 40) << 16;
  cluster.line_of(cluster.user(0)).last_ctts = ahead;
  Held held;
  enter_now(cluster, cluster.user(0), 0, held);
  EXPECT_GT(cluster.user(0).clock.next(), ahead);
  EXPECT_GE(cluster.line_of(cluster.user(0)).last_ctts, ahead & ~uint64_t{0xFFFF});
}

TEST(Gate, SnapshotShowsGateAndLines) {
  GateCluster cluster(14, 2);
  Held held;
  enter_now(cluster, cluster.user(1), 1, held);
  run(cluster, cluster.user(0).worker, [&] {
    GateLine gate;
    std::vector<WorkerLine> lines;
    VerbCounters counters;
    ASSERT_TRUE(cluster.user(0).gate.snapshot(&gate, &lines, counters).ok());
    EXPECT_EQ(GateWord::unpack(gate.word).open, 2);
    ASSERT_EQ(lines.size(), cluster.topology().workers_max);
    EXPECT_EQ(lines[cluster.user(1).worker.id()].inside, 2u);
    EXPECT_EQ(lines[cluster.user(0).worker.id()].inside, 0u);
  });
}

}  // namespace
}  // namespace rdmacc
