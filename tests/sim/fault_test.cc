// Coordinators and nodes die at any event: what was logged is committed, the rest is not, and no
// lock is left.
#include <gtest/gtest.h>

#include "tests/sim/directed.h"
#include "tests/sim/each_protocol.h"

namespace rdmacc {
namespace {

class ProtocolFaults : public EachProtocol {};

TEST_P(ProtocolFaults, DeadCoordinatorsAreResolved) {
  uint64_t resolved = 0, reader_count_sweeps = 0;
  run_seeds(
      20,
      [](uint64_t seed) {
        SimScenario deadly = scenario_of_any_load(seed);
        deadly.kills = 1 + static_cast<uint32_t>(seed % 2);
        return deadly;
      },
      [&](const SimRun& run) {
        resolved += run.resolved();
        reader_count_sweeps += run.reader_count_sweeps();
      });
  EXPECT_GT(resolved, 0u);
  // Of early locks that are shared: locks_test.cc.
  EXPECT_EQ(reader_count_sweeps > 0, GetParam().lock_mode == LockMode::kShared);
}

TEST_P(ProtocolFaults, RestartedNodesLoseNothing) {
  uint64_t reader_count_sweeps = 0;
  run_seeds(
      15,
      [](uint64_t seed) {
        SimScenario restarts = scenario_of_any_load(seed);
        restarts.node_restarts = 1 + static_cast<uint32_t>(seed % 3 == 0);
        return restarts;
      },
      [&reader_count_sweeps](const SimRun& run) {
        reader_count_sweeps += run.reader_count_sweeps();
      });
  // Requests whose node died had shared locks.
  EXPECT_EQ(reader_count_sweeps > 0, GetParam().lock_mode == LockMode::kShared);
}

TEST_P(ProtocolFaults, EverythingAtOnce) {
  run_seeds(15, [](uint64_t seed) {
    SimScenario all = scenario_of_any_load(seed);
    all.kills = 2;
    all.node_restarts = 1;
    all.loss_percent = 5;
    all.duplicate_percent = 5;
    return all;
  });
}

RDMACC_FOR_EACH_PROTOCOL(ProtocolFaults);

// Scenarios of the campaign that an engine of ours has failed.
TEST(Campaign, SeedsThatFailedOnce) {
  struct Failed {
    CampaignVariant variant;
    uint64_t seed;
    const char* what;
    bool long_rows = false;
    bool directed = false;
  };
  const std::array failed = {
      Failed{{Protocol::kWaitdie, LockMode::kExclusive},
             3,
             "a look-up went on by the root array of a table that another coroutine saw dropped"},
      Failed{{Protocol::kNowait, LockMode::kShared},
             5396,
             "node 0 died in a sweep, which left the gate closed and a dead sharer inside"},
      Failed{{Protocol::kNowait, LockMode::kExclusive},
             73,
             "a scan that skips locked rows met one twice, in a group that a split was cleaning",
             true},
      Failed{{Protocol::kNowait, LockMode::kShared},
             91,
             "room was asked for in a group of a table that had been dropped: an invalid argument"},
      Failed{{Protocol::kCalvin, LockMode::kExclusive},
             104,
             "a group was dropped between its lock and its install, which left it locked",
             false,
             true},
      Failed{{Protocol::kCalvin, LockMode::kExclusive},
             98,
             "a decided insert waited for a bucket while memory waited for the order to go on",
             false,
             true},
      Failed{{Protocol::kNowait, LockMode::kExclusive},
             1075,
             "a lock that its coordinator had left to resolution was waited for, for ever",
             false,
             true},
      Failed{{Protocol::kWoundwait, LockMode::kExclusive},
             5020,
             "what had failed to prepare was committed from outside, when others had its locks",
             false,
             true},
      Failed{{Protocol::kWoundwait, LockMode::kExclusive},
             30117,
             "a node started again took the slot of a committed insert for one that was kept"},
      Failed{{Protocol::kWaitdie, LockMode::kExclusive},
             6205,
             "a transaction left to resolution had left the gate: its block was another row's",
             false,
             true},
  };
  for (const Failed& each : failed) {
    SimScenario scenario = each.directed ? directed_scenario(each.variant, each.seed)
                                         : campaign_scenario(each.variant, each.seed);
    scenario.long_rows = each.long_rows;
    SimRun run(scenario);
    EXPECT_EQ(run.run(), "") << each.variant.name() << " seed " << each.seed << ": " << each.what;
  }
}

}  // namespace
}  // namespace rdmacc
