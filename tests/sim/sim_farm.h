#pragma once
#include <functional>
#include <string>

#include "tests/sim/sim_run.h"

// Runs many scenarios in a few forked processes, so that one that dies, or never comes to an end,
// is a result like any other. Called from a process of one thread.

namespace rdmacc {

struct SimResult {
  size_t index = 0;     // of the scenario
  std::string problem;  // empty, or what SimRun::run said, or how its process ended
  uint64_t committed = 0, aborted = 0, unknown = 0;  // attempts in its history
  uint64_t resolved = 0;                             // dead coordinators
  uint64_t aimed_struck = 0;                         // faults of SimScenario::aim
  uint64_t real_time_violations = 0;
  uint64_t events = 0;
  StructureCounts structure;
};

struct SimFarmOptions {
  size_t processes = 1;
  uint64_t run_seconds_max = 600;  // of one scenario; more is a hang
};

// What one scenario gives, in this process.
SimResult run_scenario(size_t index, const SimScenario& scenario);

// Scenarios 0 .. count - 1, as far as `on_result` (in the calling process, in the order in which
// they end) asks for more. False when it did not, or when no process could be started.
bool run_scenarios(size_t count, const std::function<SimScenario(size_t index)>& scenario_of,
                   const SimFarmOptions& options,
                   const std::function<bool(const SimResult&)>& on_result);

}  // namespace rdmacc
