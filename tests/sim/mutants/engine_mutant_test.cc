// Tests of the tests: engines that are wrong on purpose are noticed within a few seeds, the right
// one passes where they were.
#include <gtest/gtest.h>

#include <vector>

#include "tests/sim/mutants/mutants.h"
#include "tests/sim/seeds.h"
#include "tests/sim/sim_farm.h"

namespace rdmacc {
namespace {

std::vector<const SimMutant*> all_mutants() {
  std::vector<const SimMutant*> all;
  for (const SimMutant& mutant : rule_mutants()) all.push_back(&mutant);
  for (const SimMutant& mutant : lease_mutants()) all.push_back(&mutant);
  for (const SimMutant& mutant : early_lock_mutants()) all.push_back(&mutant);
  for (const SimMutant& mutant : chain_mutants()) all.push_back(&mutant);
  return all;
}

SimScenario scenario_of(const SimMutant& mutant, size_t index) {
  SimScenario scenario = mutant.scenario;
  scenario.seed = index + mutant.first_seed;
  return scenario;
}

class EngineMutants : public testing::TestWithParam<const SimMutant*> {
 protected:
  // The first of `seeds` that notices the mutant.
  static SimResult run_mutant(const SimMutant& mutant, size_t seeds) {
    put_in_use(mutant.rules);
    SimResult noticed;
    run_scenarios(
        seeds,
        [&mutant](size_t index) {
          SimScenario scenario = scenario_of(mutant, index);
          scenario.rules_of = mutated_rules_of;
          return scenario;
        },
        {},
        [&noticed](const SimResult& result) {
          noticed = result;
          return result.problem.empty();
        });
    return noticed;
  }
};

TEST_P(EngineMutants, AreNoticed) {
  const SimMutant& mutant = *GetParam();
  if (seeds_percent() < 100) GTEST_SKIP() << "tests the tests, not the engine";
  if (mutant.rare && number_in_environment("RARE_MUTANTS", 0) == 0) {
    GTEST_SKIP() << "needs many seeds, or is the exploration's: RARE_MUTANTS=1 looks for it";
  }
  const SimResult noticed = run_mutant(mutant, mutant.seeds_max);
  if (mutant.harmless != nullptr) {
    EXPECT_EQ(noticed.problem, "") << "not harmless at seed " << noticed.index + mutant.first_seed;
    EXPECT_EQ(noticed.index + 1, mutant.seeds_max);
    return;
  }
  ASSERT_NE(noticed.problem, "") << "not noticed in " << mutant.seeds_max
                                 << " seeds: " << mutant.breaks;
  std::printf("%s (%s): seed %zu: %s\n", mutant.name, mutant.breaks,
              noticed.index + mutant.first_seed, noticed.problem.substr(0, 160).c_str());
  SimScenario right = scenario_of(mutant, noticed.index);
  right.prepare = nullptr;
  EXPECT_EQ(run_scenario(noticed.index, right).problem, "");
}

TEST(EngineMutantTable, HoldsManyMutants) {
  size_t counted = 0;
  for (const SimMutant* mutant : all_mutants()) counted += mutant->harmless == nullptr ? 1 : 0;
  EXPECT_GE(counted, 50u);
}

INSTANTIATE_TEST_SUITE_P(All, EngineMutants, testing::ValuesIn(all_mutants()),
                         [](const auto& tested) { return std::string(tested.param->name); });

}  // namespace
}  // namespace rdmacc
