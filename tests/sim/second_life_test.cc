// What follows on a run that was sound: nodes that are started again, tables that are dropped and
// leave nothing behind, a session that is alone; and nodes that die while their index changes.
#include <gtest/gtest.h>

#include "tests/sim/campaign.h"
#include "tests/sim/each_protocol.h"

namespace rdmacc {
namespace {

class SecondLife : public EachProtocol {
 protected:
  static SimScenario shared(uint64_t seed) {
    SimScenario scenario = scenario_of_any_load(seed);
    if (seed % 2 == 0) scenario.load = SimScenario::Load::kDoor;
    scenario.lone_transactions = 20;
    return scenario;
  }
  static SimScenario loads(uint64_t seed) {
    return loads_scenario({GetParam().protocol, GetParam().lock_mode}, seed);
  }
};

TEST_P(SecondLife, DroppedTablesLeaveNothingBehind) {
  run_seeds(3, [](uint64_t seed) {
    SimScenario scenario = shared(seed);
    scenario.drops_after = true;
    return scenario;
  });
}

TEST_P(SecondLife, NodesThatWereStartedAgainGoOn) {
  run_seeds(3, [](uint64_t seed) {
    SimScenario scenario = shared(seed);
    scenario.restarts_after = true;
    return scenario;
  });
}

TEST_P(SecondLife, NodesRepairWhatTheyLeftHalfDone) {
  uint64_t struck = 0;
  run_seeds(
      3,
      [](uint64_t seed) {
        SimScenario scenario = loads(seed);
        scenario.strikes = 2;
        scenario.deep_rows = 0;
        return scenario;
      },
      [&struck](const SimRun& run) { struck += run.struck(); });
  if (seeds_percent() < 100) return;
  EXPECT_GT(struck, 0u);
}

TEST_P(SecondLife, ARootArrayLargerThanAPageIsLikeOthers) {
  run_seeds(1, [](uint64_t seed) {
    SimScenario scenario = loads(seed);
    scenario.coordinators = 2;
    scenario.coroutines = 1;
    scenario.strikes = 0;
    scenario.deep_rows = 8;
    scenario.drops_after = true;
    return scenario;
  });
}

TEST_P(SecondLife, AbsencesHoldBesideSplits) {
  run_seeds(3, [](uint64_t seed) {
    SimScenario scenario = scenario_of_any_load(seed);
    scenario.load = SimScenario::Load::kHeads;
    scenario.transactions = 12;
    return scenario;
  });
}

TEST_P(SecondLife, ProcessesDieWhenTheyHaveLogged) {
  uint64_t struck = 0;
  run_seeds(
      3,
      [](uint64_t seed) {
        SimScenario scenario = scenario_of_any_load(seed);
        scenario.kills = 1;
        scenario.node_restarts = 1;
        scenario.aimed = true;
        return scenario;
      },
      [&struck](const SimRun& run) { struck += run.struck(); });
  if (seeds_percent() < 100 || executes_procedures(GetParam().protocol)) return;
  EXPECT_GT(struck, 0u);
}

TEST_P(SecondLife, LogRecordsOfSeveralSegmentsAreResolved) {
  run_seeds(2, [](uint64_t seed) {
    SimScenario scenario = scenario_of_any_load(seed);
    scenario.load = SimScenario::Load::kDoor;
    scenario.long_rows = true;
    scenario.kills = 2;
    scenario.aimed = true;
    return scenario;
  });
}

RDMACC_FOR_EACH_PROTOCOL(SecondLife);

// An observer of one node strikes that node, some events later, and no more often than asked for.
TEST(Strikes, MeetTheNodeThatChangesItsIndex) {
  StructureLedger ledger;
  Topology topology;
  topology.nodes = 3;
  Strikes strikes(/*seed=*/1, {.in_changes = 2}, topology, &ledger);
  for (uint64_t i = 0; i < 1'000; ++i) {
    const StructureSpan while_loading(strikes.at(1), StructureChange::kSplit, 7);
    ASSERT_FALSE(strikes.due());
  }
  strikes.begin();
  uint32_t struck = 0;
  for (uint64_t i = 0; i < 100'000; ++i) {
    if (i % 10 == 0) const StructureSpan split(strikes.at(1), StructureChange::kSplit, 7);
    const std::optional<Strikes::Struck> now = strikes.due();
    if (!now) continue;
    EXPECT_FALSE(now->coordinator);
    EXPECT_EQ(now->node, 1);
    ++struck;
  }
  EXPECT_EQ(struck, 2u);
  EXPECT_EQ(strikes.struck(), 2u);
}

}  // namespace
}  // namespace rdmacc
