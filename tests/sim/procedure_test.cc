// Transactions that declare their keys and run as procedures of the deterministic order: none
// loses to another, and nodes and coordinators may die at any event.
#include <gtest/gtest.h>

#include "engine/protocols/registry.h"
#include "tests/sim/seeds.h"

namespace rdmacc {
namespace {

SimScenario declared(uint64_t seed, SimScenario::Load load) {
  constexpr uint16_t kCodes[] = {0, 128, 256, 384};
  SimScenario scenario;
  for (const Protocol protocol : available_protocols()) {
    if (executes_procedures(protocol)) scenario.protocol = protocol;
  }
  scenario.code = kCodes[seed % std::size(kCodes)];
  scenario.load = load;
  scenario.declared = true;
  return scenario;
}

// Eight accounts, two of them hot.
TEST(Procedures, NeverLoseToOneAnother) {
  run_seeds(
      20, [](uint64_t seed) { return declared(seed, SimScenario::Load::kBank); },
      [](const SimRun& run) {
        uint64_t committed = 0;
        for (const HistoryTransaction& transaction : run.history()) {
          EXPECT_NE(transaction.outcome, HistoryOutcome::kAborted);
          committed += transaction.outcome == HistoryOutcome::kCommitted ? 1 : 0;
        }
        EXPECT_GE(committed, run.committed());
      });
}

// Some are declared, and those that scan are not.
TEST(Procedures, MeetReconnaissance) {
  run_seeds(30, [](uint64_t seed) { return declared(seed, SimScenario::Load::kMixed); });
}

TEST(Procedures, SurviveEverythingAtOnce) {
  run_seeds(30, [](uint64_t seed) {
    SimScenario all =
        declared(seed, seed % 2 == 0 ? SimScenario::Load::kBank : SimScenario::Load::kMixed);
    all.kills = 1;
    all.node_restarts = 1 + static_cast<uint32_t>(seed % 2);
    all.loss_percent = 5;
    all.duplicate_percent = 5;
    return all;
  });
}

}  // namespace
}  // namespace rdmacc
