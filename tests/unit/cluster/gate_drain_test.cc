#include "engine/cluster/gate_drain.h"

#include "tests/unit/cluster/gate_test_base.h"

namespace rdmacc {
namespace {

constexpr uint64_t kBoundUs = 50'000;

// Coordinators, and node 0's drain of the gate.
class Drain : public GateTest {
 protected:
  ~Drain() override { cluster_.node().scheduler().unwind(); }

  void start_enter(size_t user, ProtocolId protocol, Held& held) {
    start(user, protocol, /*exclusive=*/false, held);
  }
  void enter(size_t user, ProtocolId protocol, Held& held) {
    GateTest::enter(user, protocol, /*exclusive=*/false, held);
  }

  void start_close(std::vector<WorkerId> ended = {}, bool new_gate = false) {
    closed_ = false;
    CHECK(cluster_.node().scheduler().spawn([this, ended, new_gate] {
      close_status_ = drain_.close(ended, kBoundUs, new_gate);
      closed_ = true;
    }));
  }
  Status close(std::vector<WorkerId> ended = {}, bool new_gate = false) {
    start_close(std::move(ended), new_gate);
    EXPECT_TRUE(cluster_.fabric().run_until([&] { return closed_; }, kEventsMax));
    return close_status_;
  }
  void open(bool swept) {
    run(cluster_.node(), [&] { EXPECT_TRUE(drain_.open(swept).ok()); });
    run_for(1'000);
  }
  WorkerLine& node_line() {
    return *(&cluster_.line_of(cluster_.user(0)) - id(0) + cluster_.node().id());
  }

  GateDrain drain_{cluster_.node(), cluster_.topology()};
  Status close_status_;
  bool closed_ = false;
};

TEST_F(Drain, NothingWasEverOpen) { EXPECT_EQ(close().code(), Code::kNotFound); }

// D5: what the first transaction, or the default of its session, names is the first protocol.
TEST_F(Drain, ANewGateIsOpenForNoProtocolAfterwards) {
  Held late;
  ASSERT_TRUE(close({}, /*new_gate=*/true).ok());
  start_enter(0, 2, late);
  run_for(50'000);
  EXPECT_FALSE(late.ended);
  open(/*swept=*/false);
  run_for(10'000);
  EXPECT_TRUE(late.inside());
  EXPECT_EQ(word().open, 2 + 1);
  EXPECT_EQ(cluster_.gate_line().switches, 0u);

  leave(0, late);
  ASSERT_TRUE(close({}, /*new_gate=*/true).ok());
  open(/*swept=*/false);
  EXPECT_EQ(word().open, 0);
  EXPECT_EQ(word().next, 0);
  Held other;
  enter(1, 1, other);
  EXPECT_EQ(word().open, 1 + 1);
}

TEST_F(Drain, ANewGateWithATransactionInsideKeepsItsProtocol) {
  Held idle, other;
  enter(0, 1, idle);
  EXPECT_EQ(close({}, /*new_gate=*/true).code(), Code::kTimeout);
  EXPECT_EQ(word().open, 1 + 1);
  EXPECT_EQ(word().next, 0);
  start_enter(1, 2, other);
  run_for(50'000);
  EXPECT_FALSE(other.ended);
  leave(0, idle);
  run_for(50'000);
  EXPECT_TRUE(other.inside());
}

TEST_F(Drain, WaitsForThoseInsideAndKeepsNewcomersOut) {
  Held first, late;
  enter(0, 1, first);
  start_close();
  run_for(10'000);
  EXPECT_FALSE(closed_);
  start_enter(1, 1, late);
  run_for(10'000);
  EXPECT_FALSE(late.ended);
  leave(0, first);
  ASSERT_TRUE(cluster_.fabric().run_until([&] { return closed_; }, kEventsMax));
  EXPECT_TRUE(close_status_.ok());
  run_for(200'000);
  EXPECT_FALSE(late.ended);
  EXPECT_EQ(cluster_.gate_line().sweeps, 0u);
  open(/*swept=*/true);
  run_for(10'000);
  EXPECT_TRUE(late.ended && late.status.ok());
  EXPECT_EQ(cluster_.gate_line().sweeps, 1u);
  EXPECT_EQ(cluster_.gate_line().switches, 0u);
  EXPECT_EQ(node_line().inside, 0u);
}

// D2: a request that comes before the drain, in its midst or after it may be taken back (G4), and
// the drain not.
class DrainAndRequest : public Drain, public testing::WithParamInterface<uint64_t> {};

TEST_P(DrainAndRequest, StaysClosedWhileARequestGivesWay) {
  static bool stands;
  stands = true;
  for (size_t user = 0; user < 3; ++user) {
    cluster_.user(user).gate.watch_standstills(
        [](WorkerId) { return stands ? Standstill::kForLock : Standstill::kNone; });
  }
  Held first, other, late;
  enter(0, 1, first);
  run_for(1'000);
  start_close();
  run_for(GetParam());
  start_enter(1, 2, other);
  run_for(1'000);
  const auto closed = [&] { return word().next == word().open; };  // else the request was before it
  ASSERT_TRUE(cluster_.fabric().run_until(closed, kEventsMax));
  start_enter(2, 1, late);
  run_for(Gate::kStandstillUs + 2 * Gate::kStandstillLookUs);
  EXPECT_FALSE(closed_ || other.ended || late.ended);
  leave(0, first);
  ASSERT_TRUE(cluster_.fabric().run_until([&] { return closed_; }, kEventsMax));
  ASSERT_TRUE(close_status_.ok()) << close_status_.to_string();
  run_for(5 * Gate::kStandstillUs);
  EXPECT_FALSE(other.ended || late.ended);
  stands = false;
  open(/*swept=*/true);
  run_for(10'000);
  ASSERT_TRUE(late.ended && late.status.ok());
  leave(2, late);
  run_for(20'000);
  EXPECT_TRUE(other.ended && other.status.ok());
}

INSTANTIATE_TEST_SUITE_P(Us, DrainAndRequest, testing::Range<uint64_t>(0, 40));

// Exclusive mode was granted to a worker that does not come for it: nothing but a waiter ends that,
// and no bound for those inside is too short to be one.
TEST_F(Drain, GetsPastOneThatDoesNotComeForExclusiveMode) {
  constexpr uint64_t kShortUs = 2'000;
  static_assert(kShortUs < Gate::kHoldOffUs);
  Held first;
  enter(0, 1, first);
  leave(0, first);
  run_for(10'000);
  GateWord granted = word();
  granted.exclusive = static_cast<uint16_t>(id(1) + 1);
  granted.generation++;
  cluster_.gate_line().word = granted.pack();
  WorkerLine& line = cluster_.line_of(cluster_.user(1));
  line.incarnation = cluster_.node().endpoint().incarnation_of(id(1));
  line.waiting_for = granted.open | kAskedExclusive;
  Status status;
  run(cluster_.node(), [&] { status = drain_.close({}, kShortUs); });
  EXPECT_TRUE(status.ok()) << status.to_string();
  open(/*swept=*/true);
  EXPECT_EQ(word().exclusive, 0u);
}

TEST_F(Drain, AnIdleTransactionHoldsOthersUpForTheBoundOnly) {
  Held idle, late;
  enter(0, 1, idle);
  start_close();
  run_for(10'000);
  start_enter(1, 1, late);
  ASSERT_TRUE(cluster_.fabric().run_until([&] { return closed_; }, kEventsMax));
  EXPECT_EQ(close_status_.code(), Code::kTimeout);
  run_for(10'000);
  EXPECT_TRUE(late.ended && late.status.ok());
  EXPECT_EQ(word().next, 0);
  EXPECT_EQ(node_line().inside, 0u);
  EXPECT_EQ(cluster_.gate_line().sweeps, 0u);
  leave(0, idle);
  leave(1, late);
  EXPECT_TRUE(close().ok());
  open(true);
  EXPECT_EQ(cluster_.gate_line().sweeps, 1u);
}

TEST_F(Drain, TheResolvedDeadDoNotCountButOtherDeadDo) {
  Held dead;
  enter(0, 1, dead);
  kill(0);
  EXPECT_EQ(close().code(), Code::kUnavailable);
  EXPECT_EQ(word().next, 0);
  EXPECT_TRUE(close({id(0)}).ok());
  open(true);
}

TEST_F(Drain, AWaiterOfAnotherProtocolGetsItAfterwards) {
  Held first, other;
  enter(0, 1, first);
  start_close();
  run_for(5'000);
  start_enter(1, 2, other);
  run_for(5'000);
  leave(0, first);
  ASSERT_TRUE(cluster_.fabric().run_until([&] { return closed_; }, kEventsMax));
  ASSERT_TRUE(close_status_.ok());
  run_for(50'000);
  EXPECT_FALSE(other.ended);
  open(true);
  run_for(50'000);
  EXPECT_TRUE(other.ended && other.status.ok());
  EXPECT_EQ(cluster_.gate_line().switches, 1u);
}

TEST_F(Drain, UnderARequestedSwitchItWaitsForItsTurn) {
  Held first, other;
  enter(0, 1, first);
  start_enter(1, 2, other);
  run_for(5'000);
  start_close();
  run_for(5'000);
  leave(0, first);
  run_for(20'000);
  EXPECT_TRUE(other.ended && other.status.ok());
  leave(1, other);
  ASSERT_TRUE(cluster_.fabric().run_until([&] { return closed_; }, kEventsMax));
  EXPECT_TRUE(close_status_.ok());
  open(true);
  EXPECT_EQ(cluster_.gate_line().sweeps, 1u);
}

// D2, D4: a request for exclusive mode must not open it again while it is swept.
TEST_F(Drain, OverrulesOneThatWantsToBeAlone) {
  Held dead, exclusive;
  enter(0, 1, dead);
  GateUser& by = cluster_.user(1);
  ASSERT_TRUE(by.worker.scheduler().spawn([&] {
    VerbCounters counters;
    exclusive.status = by.gate.enter_exclusive(1, by.worker.endpoint().now_us() + kLongUs, nullptr,
                                               counters, exclusive.entry);
    exclusive.ended = true;
  }));
  run_for(20'000);
  EXPECT_TRUE(word().revocable());
  kill(0);
  ASSERT_TRUE(close({id(0)}).ok());
  EXPECT_FALSE(word().revocable());
  run_for(2 * Gate::kDrainUsMax);
  EXPECT_FALSE(exclusive.ended);
  open(true);
  EXPECT_EQ(cluster_.gate_line().sweeps, 1u);
  run(cluster_.node(), [&] { cluster_.resolve_departed(); });
  run_for(2 * Gate::kDrainUsMax);
  EXPECT_TRUE(exclusive.ended && exclusive.status.ok());
}

TEST_F(Drain, WaitsForOneThatIsAlone) {
  Held exclusive;
  GateUser& by = cluster_.user(0);
  run(by.worker, [&] {
    VerbCounters counters;
    exclusive.status = by.gate.enter_exclusive(1, by.worker.endpoint().now_us() + kLongUs, nullptr,
                                               counters, exclusive.entry);
  });
  ASSERT_TRUE(exclusive.status.ok() && exclusive.entry.exclusive);
  start_close();
  run_for(10'000);
  EXPECT_FALSE(closed_);
  leave(0, exclusive);
  ASSERT_TRUE(cluster_.fabric().run_until([&] { return closed_; }, kEventsMax));
  EXPECT_TRUE(close_status_.ok());
  open(true);
  EXPECT_EQ(cluster_.gate_line().sweeps, 1u);
}

// Node 0 died in the middle: no transaction gets in before its line is cleared, then all do.
TEST_F(Drain, AnAbandonedDrainKeepsTheGateClosedUntilItIsCleared) {
  Held first, late;
  enter(0, 1, first);
  leave(0, first);
  ASSERT_TRUE(close().ok());
  start_enter(1, 1, late);
  run_for(100'000);
  EXPECT_FALSE(late.ended);
  GateDrain successor(cluster_.node(), cluster_.topology());
  run(cluster_.node(), [&] {
    EXPECT_TRUE(successor.was_abandoned().value());
    EXPECT_TRUE(successor.clear_abandoned().ok());
    EXPECT_FALSE(successor.was_abandoned().value());
  });
  run_for(10'000);
  EXPECT_TRUE(late.ended && late.status.ok());
  EXPECT_EQ(word().next, 0);
}

TEST_F(Drain, LinesTellOfSharesUntilTheyAreCleared) {
  Held held;
  cluster_.gate_line().sweeps = 7;
  cluster_.user(0).gate.will_share();
  enter(0, 1, held);
  EXPECT_EQ(cluster_.line_of(cluster_.user(0)).shares, 1u);
  EXPECT_EQ(cluster_.line_of(cluster_.user(0)).reader_counts_lost, 0u);
  cluster_.user(0).gate.lost_reader_counts();
  leave(0, held);
  run_for(1'000);
  EXPECT_EQ(cluster_.line_of(cluster_.user(0)).inside, 0u);
  EXPECT_EQ(cluster_.line_of(cluster_.user(0)).reader_counts_lost, 8u);
  Held other;
  enter(0, 2, other);
  EXPECT_EQ(cluster_.line_of(cluster_.user(0)).shares, 1u);
  EXPECT_EQ(cluster_.line_of(cluster_.user(0)).reader_counts_lost, 8u);
  kill(0);
  run(cluster_.node(), [&] { cluster_.resolve_departed(); });
  EXPECT_EQ(cluster_.line_of(cluster_.user(0)).shares, 0u);
  EXPECT_EQ(cluster_.line_of(cluster_.user(0)).reader_counts_lost, 0u);
}

TEST_F(Drain, ATransactionThatJoinsAndSharesLocksTellsItFirst) {
  Held first, sharer;
  enter(0, 1, first);
  EXPECT_EQ(cluster_.line_of(cluster_.user(0)).shares, 0u);
  cluster_.user(0).gate.will_share();
  enter(0, 1, sharer);
  EXPECT_EQ(cluster_.line_of(cluster_.user(0)).shares, 1u);
}

TEST_F(Drain, ANewOwnerOfALineKeepsWhatItsPredecessorLost) {
  cluster_.line_of(cluster_.user(0)).reader_counts_lost = 3;
  Held held;
  enter(0, 1, held);
  EXPECT_EQ(cluster_.line_of(cluster_.user(0)).reader_counts_lost, 3u);
}

}  // namespace
}  // namespace rdmacc
