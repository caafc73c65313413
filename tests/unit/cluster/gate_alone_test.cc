// A transaction that has the gate to itself, and what becomes of those that wait for it.
#include "tests/unit/cluster/gate_cluster.h"

namespace rdmacc {
namespace {

constexpr uint64_t kEventsMax = 20'000'000;
constexpr uint64_t kLongUs = 60'000'000;
constexpr uint64_t kSoonUs = 3 * Gate::kHoldOffUs;  // every waiter that can get in has by then

struct Held {
  GatePass pass;
  Status status;
  bool ended = false;  // enter() has returned
  bool inside() const { return ended && status.ok(); }
};

class GateAlone : public testing::Test {
 protected:
  // Coroutines that still wait refer to what the tests hold.
  ~GateAlone() override {
    for (size_t i = 0; i < cluster_.users(); ++i) {
      if (!cluster_.user(i).killed) cluster_.user(i).worker.scheduler().unwind();
    }
  }

  void start(size_t user, ProtocolId protocol, bool alone, Held& held, uint64_t wait_us = kLongUs) {
    GateUser& by = cluster_.user(user);
    CHECK(by.worker.scheduler().spawn([&by, protocol, alone, &held, wait_us] {
      VerbCounters counters;
      const uint64_t deadline_us = by.worker.endpoint().now_us() + wait_us;
      held.status = alone ? by.gate.enter_alone(protocol, deadline_us, nullptr, counters, held.pass)
                          : by.gate.enter(protocol, deadline_us, nullptr, counters, held.pass);
      held.ended = true;
    }));
  }
  void enter(size_t user, ProtocolId protocol, bool alone, Held& held) {
    start(user, protocol, alone, held);
    ASSERT_TRUE(cluster_.fabric().run_until([&] { return held.ended; }, kEventsMax));
    ASSERT_TRUE(held.status.ok());
  }
  void leave(size_t user, Held& held) { cluster_.user(user).gate.leave(held.pass); }
  void run_for(uint64_t us) {
    const uint64_t until_us = cluster_.node().endpoint().now_us() + us;
    bool done = false;
    CHECK(cluster_.node().scheduler().spawn([&] {
      cluster_.node().scheduler().sleep_until(until_us);
      done = true;
    }));
    ASSERT_TRUE(cluster_.fabric().run_until([&] { return done; }, kEventsMax));
  }
  void kill(size_t user) {
    cluster_.kill(cluster_.user(user));
    ASSERT_TRUE(cluster_.fabric().run_until([&] { return !cluster_.fabric().departed().empty(); },
                                            kEventsMax));
  }
  void resolve() {
    bool done = false;
    CHECK(cluster_.node().scheduler().spawn([&] {
      cluster_.resolve_departed();
      done = true;
    }));
    ASSERT_TRUE(cluster_.fabric().run_until([&] { return done; }, kEventsMax));
  }
  GateWord word() { return GateWord::unpack(cluster_.gate_line().word); }
  uint64_t passages() { return cluster_.gate_line().passages; }

  GateCluster cluster_{1, 4};
};

TEST_F(GateAlone, WaitsForThoseInsideAndKeepsOthersOut) {
  Held first, alone, late;
  enter(0, 1, false, first);
  start(1, 1, true, alone);
  run_for(kSoonUs);
  start(2, 1, false, late);
  run_for(kSoonUs);
  EXPECT_FALSE(alone.ended || late.ended);
  leave(0, first);
  run_for(kSoonUs);
  EXPECT_TRUE(alone.inside() && alone.pass.alone);
  EXPECT_FALSE(late.ended);
  leave(1, alone);
  run_for(kSoonUs);
  EXPECT_TRUE(late.inside() && !late.pass.alone);
  EXPECT_EQ(passages(), 1u);
  EXPECT_EQ(cluster_.gate_line().switches, 0u);
}

TEST_F(GateAlone, IsTheFirstOfAllToEnter) {
  Held alone, late;
  enter(0, 1, true, alone);
  EXPECT_TRUE(alone.pass.alone);
  start(1, 1, false, late);
  run_for(kSoonUs);
  EXPECT_FALSE(late.ended);
  leave(0, alone);
  run_for(kSoonUs);
  EXPECT_TRUE(late.inside());
}

TEST_F(GateAlone, APassageIsForOneTransaction) {
  Held alone, sibling, again;
  enter(0, 1, true, alone);
  start(0, 1, false, sibling);
  start(0, 1, true, again);
  run_for(kSoonUs);
  EXPECT_FALSE(sibling.ended || again.ended);
  leave(0, alone);
  run_for(kSoonUs);
  EXPECT_TRUE(sibling.inside() && !sibling.pass.alone);
  EXPECT_FALSE(again.ended);
  leave(0, sibling);
  run_for(kSoonUs);
  EXPECT_TRUE(again.inside() && again.pass.alone);
  EXPECT_EQ(passages(), 2u);
}

TEST_F(GateAlone, WaitersGoBeforeTheNextThatWantsToBeAlone) {
  Held alone, next, shared;
  enter(0, 1, true, alone);
  start(1, 1, true, next);
  run_for(kSoonUs);
  start(2, 1, false, shared);
  run_for(kSoonUs);
  leave(0, alone);
  run_for(kSoonUs);
  EXPECT_TRUE(shared.inside());
  EXPECT_FALSE(next.ended);
  leave(2, shared);
  run_for(kSoonUs);
  EXPECT_TRUE(next.inside() && next.pass.alone);
}

TEST_F(GateAlone, SharesTheGateWhenItDoesNotDrain) {
  Held idle, alone, late;
  enter(0, 1, false, idle);
  start(1, 1, true, alone);
  run_for(Gate::kDrainUsMax / 2);
  start(2, 1, false, late);
  run_for(Gate::kDrainUsMax / 4);
  EXPECT_FALSE(alone.ended || late.ended);
  run_for(Gate::kDrainUsMax);
  EXPECT_TRUE(alone.inside() && !alone.pass.alone);
  EXPECT_TRUE(late.inside());
  EXPECT_EQ(word().next, 0);
  EXPECT_EQ(passages(), 0u);
}

TEST_F(GateAlone, SharesTheGateWhenHalfItsTimeIsOver) {
  constexpr uint64_t kWaitUs = Gate::kDrainUsMax / 2;
  Held idle, alone;
  enter(0, 1, false, idle);
  start(1, 1, true, alone, kWaitUs);
  run_for(kWaitUs / 4);
  EXPECT_FALSE(alone.ended);
  run_for(kWaitUs / 2);
  EXPECT_TRUE(alone.inside() && !alone.pass.alone);
}

TEST_F(GateAlone, WaitsBehindOneThatIsAloneAndStays) {
  Held first, second;
  enter(0, 1, true, first);
  start(1, 1, true, second);
  run_for(Gate::kPassageUsMax + kSoonUs);
  EXPECT_FALSE(second.ended);  // the first is inside still: the gate has to drain
  run_for(2 * Gate::kDrainUsMax);
  EXPECT_TRUE(second.inside() && !second.pass.alone);
}

TEST_F(GateAlone, OneThatStaysIsJoinedByItsProtocolOnly) {
  Held alone, late, other;
  enter(0, 1, true, alone);
  start(1, 1, false, late);
  run_for(Gate::kPassageUsMax / 2);
  EXPECT_FALSE(late.ended);
  run_for(Gate::kPassageUsMax);
  EXPECT_TRUE(late.inside());
  start(2, 2, false, other);
  leave(1, late);
  run_for(2 * Gate::kPassageUsMax);
  EXPECT_FALSE(other.ended);
  leave(0, alone);
  run_for(kSoonUs);
  EXPECT_TRUE(other.inside());
}

TEST_F(GateAlone, OneThatDiesInsideStopsAnotherProtocolOnly) {
  Held alone, late, other;
  enter(0, 1, true, alone);
  kill(0);
  start(1, 1, false, late);
  run_for(kSoonUs);
  EXPECT_TRUE(late.inside());
  leave(1, late);
  start(2, 2, false, other);
  run_for(kSoonUs);
  EXPECT_FALSE(other.ended);
  resolve();
  run_for(kSoonUs);
  EXPECT_TRUE(other.inside());
}

TEST_F(GateAlone, OneThatDiesWaitingStopsNoOther) {
  Held first, alone, late;
  enter(0, 1, false, first);
  start(1, 1, true, alone);
  run_for(kSoonUs);
  EXPECT_TRUE(word().revocable());
  kill(1);
  start(2, 1, false, late);
  run_for(kSoonUs);
  leave(0, first);
  run_for(kSoonUs);
  EXPECT_TRUE(late.inside());
}

// It is alive, but comes neither in nor goes: as a stopped process does.
TEST_F(GateAlone, OneThatDoesNotComeInIsNotWaitedForLong) {
  Held late;
  cluster_.gate_line().word =
      GateWord{2, 0, 5, static_cast<uint16_t>(cluster_.user(0).worker.id() + 1)}.pack();
  WorkerLine& line = cluster_.line_of(cluster_.user(0));
  line.waiting_for = 2 | kAskedAlone;
  line.waiting_since_us = 1;
  line.incarnation = cluster_.user(0).worker.endpoint().incarnation();
  start(1, 1, false, late);
  run_for(Gate::kHoldOffUs / 2);
  EXPECT_FALSE(late.ended);
  run_for(kSoonUs);
  EXPECT_TRUE(late.inside());
}

TEST_F(GateAlone, AnotherProtocolAndManyThatWantToBeAloneTakeTurns) {
  uint64_t alone_count = 0, other_count = 0, shared_count = 0;
  bool stop = false;
  int running = 4;
  const auto work = [&](size_t user, ProtocolId protocol, bool alone, uint64_t& count) {
    GateUser& by = cluster_.user(user);
    CHECK(by.worker.scheduler().spawn([&, protocol, alone] {
      while (!stop) {
        VerbCounters counters;
        GatePass pass;
        const uint64_t deadline_us = by.worker.endpoint().now_us() + kLongUs;
        const Status entered =
            alone ? by.gate.enter_alone(protocol, deadline_us, nullptr, counters, pass)
                  : by.gate.enter(protocol, deadline_us, nullptr, counters, pass);
        ASSERT_TRUE(entered.ok());
        by.worker.scheduler().sleep_for(50);
        by.gate.leave(pass);
        ++count;
      }
      --running;
    }));
  };
  work(0, 0, true, alone_count);
  work(1, 0, true, alone_count);
  work(2, 0, false, shared_count);
  work(3, 1, false, other_count);
  run_for(500'000);
  EXPECT_GT(alone_count, 20u);
  EXPECT_GT(shared_count, 20u);
  EXPECT_GT(other_count, 20u);
  EXPECT_GT(passages(), 20u);
  stop = true;
  ASSERT_TRUE(cluster_.fabric().run_until([&] { return running == 0; }, kEventsMax));
}

}  // namespace
}  // namespace rdmacc
