// A transaction in exclusive gate mode, and what becomes of those that wait for it.
#include "tests/unit/cluster/gate_test_base.h"

namespace rdmacc {
namespace {

class GateExclusive : public GateTest {};

TEST_F(GateExclusive, WaitsForThoseInsideAndKeepsOthersOut) {
  Held first, exclusive, late;
  enter(0, 1, false, first);
  start(1, 1, true, exclusive);
  run_for(kSoonUs);
  start(2, 1, false, late);
  run_for(kSoonUs);
  EXPECT_FALSE(exclusive.ended || late.ended);
  leave(0, first);
  run_for(kSoonUs);
  EXPECT_TRUE(exclusive.inside() && exclusive.entry.exclusive);
  EXPECT_FALSE(late.ended);
  leave(1, exclusive);
  run_for(kSoonUs);
  EXPECT_TRUE(late.inside() && !late.entry.exclusive);
  EXPECT_EQ(exclusive_entries(), 1u);
  EXPECT_EQ(cluster_.gate_line().switches, 0u);
}

TEST_F(GateExclusive, IsTheFirstOfAllToEnter) {
  Held exclusive, late;
  enter(0, 1, true, exclusive);
  EXPECT_TRUE(exclusive.entry.exclusive);
  start(1, 1, false, late);
  run_for(kSoonUs);
  EXPECT_FALSE(late.ended);
  leave(0, exclusive);
  run_for(kSoonUs);
  EXPECT_TRUE(late.inside());
}

TEST_F(GateExclusive, ExclusiveModeIsForOneTransaction) {
  Held exclusive, sibling, again;
  enter(0, 1, true, exclusive);
  start(0, 1, false, sibling);
  start(0, 1, true, again);
  run_for(kSoonUs);
  EXPECT_FALSE(sibling.ended || again.ended);
  leave(0, exclusive);
  run_for(kSoonUs);
  EXPECT_TRUE(sibling.inside() && !sibling.entry.exclusive);
  EXPECT_FALSE(again.ended);
  leave(0, sibling);
  run_for(kSoonUs);
  EXPECT_TRUE(again.inside() && again.entry.exclusive);
  EXPECT_EQ(exclusive_entries(), 2u);
}

TEST_F(GateExclusive, WaitersGoBeforeTheNextThatWantsToBeAlone) {
  Held exclusive, next, shared;
  enter(0, 1, true, exclusive);
  start(1, 1, true, next);
  run_for(kSoonUs);
  start(2, 1, false, shared);
  run_for(kSoonUs);
  leave(0, exclusive);
  run_for(kSoonUs);
  EXPECT_TRUE(shared.inside());
  EXPECT_FALSE(next.ended);
  leave(2, shared);
  run_for(kSoonUs);
  EXPECT_TRUE(next.inside() && next.entry.exclusive);
}

TEST_F(GateExclusive, SharesTheGateWhenItDoesNotDrain) {
  Held idle, exclusive, late;
  enter(0, 1, false, idle);
  start(1, 1, true, exclusive);
  run_for(Gate::kDrainUsMax / 2);
  start(2, 1, false, late);
  run_for(Gate::kDrainUsMax / 4);
  EXPECT_FALSE(exclusive.ended || late.ended);
  run_for(Gate::kDrainUsMax);
  EXPECT_TRUE(exclusive.inside() && !exclusive.entry.exclusive);
  EXPECT_TRUE(late.inside());
  EXPECT_EQ(word().next, 0);
  EXPECT_EQ(exclusive_entries(), 0u);
}

TEST_F(GateExclusive, SharesTheGateWhenHalfItsTimeIsOver) {
  constexpr uint64_t kWaitUs = Gate::kDrainUsMax / 2;
  Held idle, exclusive;
  enter(0, 1, false, idle);
  start(1, 1, true, exclusive, kWaitUs);
  run_for(kWaitUs / 4);
  EXPECT_FALSE(exclusive.ended);
  run_for(kWaitUs / 2);
  EXPECT_TRUE(exclusive.inside() && !exclusive.entry.exclusive);
}

TEST_F(GateExclusive, WaitsBehindOneThatIsAloneAndStays) {
  Held first, second;
  enter(0, 1, true, first);
  start(1, 1, true, second);
  run_for(Gate::kExclusiveUsMax + kSoonUs);
  EXPECT_FALSE(second.ended);  // the first is inside still: the gate has to drain
  run_for(2 * Gate::kDrainUsMax);
  EXPECT_TRUE(second.inside() && !second.entry.exclusive);
}

TEST_F(GateExclusive, OneThatStaysIsJoinedByItsProtocolOnly) {
  Held exclusive, late, other;
  enter(0, 1, true, exclusive);
  start(1, 1, false, late);
  run_for(Gate::kExclusiveUsMax / 2);
  EXPECT_FALSE(late.ended);
  run_for(Gate::kExclusiveUsMax);
  EXPECT_TRUE(late.inside());
  start(2, 2, false, other);
  leave(1, late);
  run_for(2 * Gate::kExclusiveUsMax);
  EXPECT_FALSE(other.ended);
  leave(0, exclusive);
  run_for(kSoonUs);
  EXPECT_TRUE(other.inside());
}

TEST_F(GateExclusive, OneThatDiesInsideStopsAnotherProtocolOnly) {
  Held exclusive, late, other;
  enter(0, 1, true, exclusive);
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

TEST_F(GateExclusive, OneThatDiesWaitingStopsNoOther) {
  Held first, exclusive, late;
  enter(0, 1, false, first);
  start(1, 1, true, exclusive);
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
TEST_F(GateExclusive, OneThatDoesNotComeInIsNotWaitedForLong) {
  Held late;
  cluster_.gate_line().word =
      GateWord{2, 0, 5, static_cast<uint16_t>(cluster_.user(0).worker.id() + 1)}.pack();
  WorkerLine& line = cluster_.line_of(cluster_.user(0));
  line.waiting_for = 2 | kAskedExclusive;
  line.waiting_since_us = 1;
  line.incarnation = cluster_.user(0).worker.endpoint().incarnation();
  start(1, 1, false, late);
  run_for(Gate::kHoldOffUs / 2);
  EXPECT_FALSE(late.ended);
  run_for(kSoonUs);
  EXPECT_TRUE(late.inside());
}

TEST_F(GateExclusive, AnotherProtocolAndManyThatWantToBeAloneTakeTurns) {
  uint64_t alone_count = 0, other_count = 0, shared_count = 0;
  bool stop = false;
  int running = 4;
  const auto work = [&](size_t user, ProtocolId protocol, bool exclusive, uint64_t& count) {
    GateUser& by = cluster_.user(user);
    CHECK(by.worker.scheduler().spawn([&, protocol, exclusive] {
      while (!stop) {
        VerbCounters counters;
        GateEntry entry;
        const uint64_t deadline_us = by.worker.endpoint().now_us() + kLongUs;
        const Status entered =
            exclusive ? by.gate.enter_exclusive(protocol, deadline_us, nullptr, counters, entry)
                      : by.gate.enter(protocol, deadline_us, nullptr, counters, entry);
        ASSERT_TRUE(entered.ok());
        by.worker.scheduler().sleep_for(50);
        by.gate.leave(entry);
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
  EXPECT_GT(exclusive_entries(), 20u);
  stop = true;
  ASSERT_TRUE(cluster_.fabric().run_until([&] { return running == 0; }, kEventsMax));
}

}  // namespace
}  // namespace rdmacc
