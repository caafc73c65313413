// Transactions inside that wait for something else than the engine.
#include <algorithm>
#include <array>

#include "tests/unit/cluster/gate_test_base.h"

namespace rdmacc {
namespace {

// What each user is said to wait for outside of the engine.
std::array<Standstill, 4> standstills;

class GateStandstill : public GateTest {
 protected:
  GateStandstill() {
    standstills.fill(Standstill::kNone);
    for (size_t i = 0; i < cluster_.users(); ++i) {
      workers[i] = id(i);
      cluster_.user(i).gate.watch_standstills([](WorkerId worker) {
        const auto user = std::find(workers.begin(), workers.end(), worker);
        return standstills[static_cast<size_t>(user - workers.begin())];
      });
    }
  }

  static std::array<WorkerId, 4> workers;
};

std::array<WorkerId, 4> GateStandstill::workers;

TEST_F(GateStandstill, OneThatIsAloneAndWaitsElsewhereIsJoined) {
  for (const Standstill standstill : {Standstill::kForLock, Standstill::kForClient}) {
    Held exclusive, late, other;
    enter(0, 1, true, exclusive);
    ASSERT_TRUE(exclusive.entry.exclusive);
    start(1, 1, false, late);
    for (int i = 0; i < 3; ++i) {  // it gets on in between
      standstills[0] = standstill;
      run_for(Gate::kStandstillUs / 2);
      standstills[0] = Standstill::kNone;
      run_for(Gate::kStandstillUs / 2);
    }
    EXPECT_FALSE(late.ended);
    standstills[0] = standstill;
    run_for(2 * Gate::kStandstillUs);
    ASSERT_TRUE(late.inside());
    start(2, 2, false, other);
    run_for(2 * Gate::kStandstillUs);
    EXPECT_FALSE(other.ended);  // another protocol waits for all that are inside
    standstills[0] = Standstill::kNone;
    leave(0, exclusive);
    leave(1, late);
    run_for(kSoonUs);
    ASSERT_TRUE(other.inside());
    leave(2, other);
  }
}

TEST_F(GateStandstill, ARequestGivesWayToOneInsideThatWaitsForALock) {
  for (const Standstill standstill : {Standstill::kForLock, Standstill::kForClient}) {
    Held inside, exclusive, late;
    enter(0, 1, false, inside);
    start(1, 1, true, exclusive);
    run_for(kSoonUs);
    start(2, 1, false, late);
    run_for(kSoonUs);
    EXPECT_FALSE(exclusive.ended || late.ended);
    standstills[0] = standstill;
    run_for(2 * Gate::kStandstillUs);
    const bool lock = standstill == Standstill::kForLock;
    EXPECT_EQ(exclusive.ended, lock);  // a client's pause is waited for as long as work is
    EXPECT_EQ(late.ended, lock);
    run_for(Gate::kDrainUsMax);
    EXPECT_TRUE(exclusive.inside() && !exclusive.entry.exclusive && late.inside());
    standstills[0] = Standstill::kNone;
    leave(0, inside);
    leave(1, exclusive);
    leave(2, late);
    run_for(kSoonUs);
  }
}

// Of two that wait, the one of the open protocol may have what the one inside waits for.
TEST_F(GateStandstill, AnotherProtocolsRequestGivesWayToo) {
  Held inside, other, late;
  enter(0, 1, false, inside);
  start(2, 2, false, other);
  run_for(kSoonUs);
  start(1, 1, false, late);
  run_for(Gate::kDrainUsMax);
  EXPECT_FALSE(other.ended || late.ended);
  standstills[0] = Standstill::kForLock;
  run_for(2 * Gate::kStandstillUs);
  EXPECT_FALSE(other.ended);
  ASSERT_TRUE(late.inside());
  leave(1, late);
  standstills[0] = Standstill::kNone;
  run_for(kSoonUs);
  EXPECT_FALSE(other.ended);
  leave(0, inside);
  run_for(kSoonUs);
  EXPECT_TRUE(other.inside());
}

}  // namespace
}  // namespace rdmacc
