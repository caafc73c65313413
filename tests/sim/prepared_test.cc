// Transactions that are prepared and decided from outside: coordinators die at every point of it,
// and nodes with them. What was decided holds, what is in doubt waits, and no lock is left.
#include <gtest/gtest.h>

#include "tests/sim/each_protocol.h"

namespace rdmacc {
namespace {

class ProtocolPrepared : public EachProtocol {
 protected:
  void SetUp() override {
    if (rules_of(GetParam().protocol)->commits_in_order) {
      GTEST_SKIP() << "a deterministic protocol prepares nothing";
    }
  }
  static SimScenario prepared(uint64_t seed) {
    SimScenario scenario = scenario_of_any_load(seed);
    scenario.prepared = true;
    return scenario;
  }
};

TEST_P(ProtocolPrepared, TwoPhasesWithoutFaults) { run_seeds(8, prepared); }

TEST_P(ProtocolPrepared, DeadCoordinatorsLeaveTransactionsInDoubt) {
  uint64_t doubts = 0;
  run_seeds(
      25,
      [](uint64_t seed) {
        SimScenario deadly = prepared(seed);
        deadly.kills = 1 + static_cast<uint32_t>(seed % 3);
        return deadly;
      },
      [&](const SimRun& run) { doubts += run.doubts(); });
  if (seeds_percent() == 100 && !is_like_another(GetParam().protocol, GetParam().lock_mode)) {
    EXPECT_GT(doubts, 0u);
  }
}

TEST_P(ProtocolPrepared, DoubtsOutliveNodes) {
  run_seeds(25, [](uint64_t seed) {
    SimScenario all = prepared(seed);
    all.kills = 2;
    all.node_restarts = 1 + static_cast<uint32_t>(seed % 3);
    all.loss_percent = seed % 2 == 0 ? 5 : 0;
    all.duplicate_percent = all.loss_percent;
    return all;
  });
}

RDMACC_FOR_EACH_PROTOCOL(ProtocolPrepared);

}  // namespace
}  // namespace rdmacc
