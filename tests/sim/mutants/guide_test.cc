// The protocol that docs/writing_a_protocol.md writes, in NOWAIT's place: what is asked of the
// engine's own it does, and with the fault that the page plants it does not.
#include <gtest/gtest.h>

#include "tests/guide/guide.h"
#include "tests/sim/campaign.h"
#include "tests/sim/mutants/mutants.h"
#include "tests/sim/seeds.h"
#include "tests/sim/sim_farm.h"

namespace rdmacc {
namespace {

constexpr uint64_t kCampaignSeeds = 30, kBankSeeds = 20, kSeedsOfFault = 20;

SimScenario under(const ProtocolRules& rules, SimScenario scenario) {
  put_in_use(rules);
  scenario.protocol = rules.protocol;
  scenario.rules_of = mutated_rules_of;
  return scenario;
}

SimScenario drawn(const ProtocolRules& rules, uint64_t seed) {
  return under(rules, campaign_scenario({.protocol = rules.protocol}, seed));
}

SimScenario bank(uint64_t seed) {
  SimScenario scenario;
  scenario.load = SimScenario::Load::kBank;
  scenario.code = static_cast<uint16_t>(Random(seed).below(kStageCodeMax + 1));
  return scenario;
}

TEST(Guide, TheCampaignFindsNothing) {
  run_seeds(kCampaignSeeds, [](uint64_t seed) { return drawn(kGuideRules, seed); });
}

// Transactions that would lose a lock under NOWAIT get it.
TEST(Guide, TheBankKeepsItsTotalInFewerAttempts) {
  const auto attempts = [](const std::function<SimScenario(uint64_t)>& scenario_of) {
    uint64_t sum = 0;
    run_seeds(kBankSeeds, scenario_of, [&sum](const SimRun& run) {
      for (const auto& [kind, most] : run.attempts_max()) sum += most;
    });
    return sum;
  };
  const uint64_t waiting = attempts([](uint64_t seed) { return under(kGuideRules, bank(seed)); });
  const uint64_t aborting = attempts(bank);
  if (all_seeds_run()) {
    EXPECT_LT(waiting, aborting);
  }
}

// As mutants are looked for: a few transactions on very few rows.
TEST(Guide, ThePlantedFaultIsNoticed) {
  if (!all_seeds_run()) GTEST_SKIP() << "tests the tests, not the engine";
  SimResult noticed;
  run_scenarios(
      kSeedsOfFault,
      [](size_t index) {
        SimScenario scenario = under(kGuideFaultyRules, crowded(kGuideFaultyRules));
        scenario.seed = index + 1;
        return scenario;
      },
      {},
      [&noticed](const SimResult& result) {
        noticed = result;
        return result.problem.empty();
      });
  EXPECT_NE(noticed.problem, "");
  std::printf("seed %zu: %s\n", noticed.index + 1, noticed.problem.substr(0, 160).c_str());
}

}  // namespace
}  // namespace rdmacc
