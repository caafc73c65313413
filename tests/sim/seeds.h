#pragma once
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <functional>
#include <string>

#include "tests/sim/sim_run.h"

namespace rdmacc {

inline uint64_t number_in_environment(const char* name, uint64_t otherwise) {
  const char* text = std::getenv(name);
  return text == nullptr ? otherwise : std::strtoull(text, nullptr, 10);
}

// The command that repeats one seed of the running test.
inline std::string command_of(uint64_t seed) {
  const testing::TestInfo& test = *testing::UnitTest::GetInstance()->current_test_info();
  return "SEED=" + std::to_string(seed) +
         " build/release/tests/sim_test --gtest_filter=" + test.test_suite_name() + "." +
         test.name();
}

// SEEDS_PERCENT=n: the share of all seeds that is run, for builds that are slow.
inline uint64_t seeds_percent() { return number_in_environment("SEEDS_PERCENT", 100); }

// What some seeds come to between them is asked of all of them only, not of a share or a single one
// that is repeated.
inline bool all_seeds_run() {
  return seeds_percent() >= 100 && number_in_environment("SEED", 0) == 0 &&
         number_in_environment("SEEDS", 0) == 0;
}

// Its rules and stages are another protocol's for the most part: what the tests look for with that
// one they need not look for as long once more. The campaign makes no difference.
inline bool is_like_another(Protocol protocol, LockMode mode) {
  const bool waits = protocol == Protocol::kWaitdie || protocol == Protocol::kWoundwait;
  return protocol == Protocol::kTictoc || protocol == Protocol::kMaat ||
         protocol == Protocol::kTimestamp || protocol == Protocol::kCicada ||
         protocol == Protocol::kDrtm || (waits && mode == LockMode::kShared);
}
constexpr uint64_t kShareOfAlike = 4;  // they get a quarter

// Runs the scenario that `scenario_of` makes of each seed, and stops at the first that fails.
// SEED=n runs that one alone; SEEDS=n runs n instead of `seeds`; HISTORY_FILE=name keeps the
// history of the failed run.
inline void run_seeds(uint64_t seeds, const std::function<SimScenario(uint64_t seed)>& scenario_of,
                      const std::function<void(const SimRun&)>& look = nullptr) {
  const uint64_t only = number_in_environment("SEED", 0);
  const SimScenario first = scenario_of(1);
  const uint64_t parts = is_like_another(first.protocol, first.lock_mode) ? kShareOfAlike : 1;
  const uint64_t share = std::max<uint64_t>(1, seeds * seeds_percent() / 100 / parts);
  const uint64_t last = only != 0 ? only : number_in_environment("SEEDS", share);
  for (uint64_t seed = only != 0 ? only : 1; seed <= last; ++seed) {
    SimScenario scenario = scenario_of(seed);
    scenario.seed = seed;
    SimRun run(scenario);
    const std::string problem = run.run();
    if (const char* file = std::getenv("HISTORY_FILE"); file != nullptr && !problem.empty()) {
      std::ofstream(file) << run.history_text();
    }
    ASSERT_EQ(problem, "") << command_of(seed) << "\n"
                           << protocol_name(scenario.protocol) << " "
                           << lock_mode_name(scenario.lock_mode) << " stages " << scenario.code;
    if (look) look(run);
  }
}

}  // namespace rdmacc
