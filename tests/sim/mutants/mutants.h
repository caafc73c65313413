#pragma once
#include <span>
#include <vector>

#include "tests/explore/mutants.h"
#include "tests/sim/sim_run.h"

// Engines that are wrong on purpose, each in one thing that looks harmless; seeds of the simulator
// have to notice every one of them. Rules and effects are replaced through EngineOptions and
// NodeOptions, what a driver posts and believes through the fabric's hooks.

namespace rdmacc {

struct SimMutant {
  const char* name;
  const char* breaks;  // what is wrong, and what comes of it
  ProtocolRules rules;
  // Where it shows, hooks of the fabric included, and within how many seeds.
  SimScenario scenario;
  uint32_t seeds_max;
  // Looked for with RARE_MUTANTS=1 alone: shows in one of some sixty seeds, and those are long, or
  // is one that the exploration notices.
  bool rare = false;
  // nullptr, or why it does no harm: no seed may notice it.
  const char* harmless = nullptr;
  // The first that is tried: those before it took long, and noticed nothing when it was made.
  uint32_t first_seed = 1;
};

// Wrong rules and effects (mutant_rules.cc; of leases mutant_leases.cc, of rows that are locked
// early mutant_early_locks.cc), and wrong chains and beliefs (mutant_chains.cc).
std::span<const SimMutant> rule_mutants();
std::span<const SimMutant> lease_mutants();
std::span<const SimMutant> early_lock_mutants();
std::span<const SimMutant> chain_mutants();

// Makes a table of them.
struct SimMutantTable {
  std::vector<SimMutant> all;
  // One that shows in a crowd; one that needs many long seeds.
  void add(const char* name, const char* breaks, const ProtocolRules& rules, uint32_t seeds_max);
  void add_rare(const char* name, const char* breaks, const ProtocolRules& rules);
};

// What most of them need: a few transactions at a time on very few rows.
SimScenario crowded(const ProtocolRules& rules, uint16_t code = kStageCodeMax,
                    SimScenario::Load load = SimScenario::Load::kMixed);
// On even fewer rows, half of them readers: for what shows when a reader is overtaken.
SimScenario packed(const ProtocolRules& rules, uint16_t code = kStageCodeMax);

}  // namespace rdmacc
