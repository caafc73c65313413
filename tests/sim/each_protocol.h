#pragma once
#include <vector>

#include "engine/protocols/registry.h"
#include "tests/sim/seeds.h"

namespace rdmacc {

// A protocol in one of its lock modes.
struct SimProtocol {
  Protocol protocol;
  LockMode lock_mode;

  SimScenario scenario() const {
    SimScenario scenario;
    scenario.protocol = protocol;
    scenario.lock_mode = lock_mode;
    return scenario;
  }
  std::string name() const {
    const bool shared = lock_mode == LockMode::kShared;
    return std::string(protocol_name(protocol)) + (shared ? "_shared" : "");
  }
};

// Every protocol, and once more with shared locks where it has them.
inline std::vector<SimProtocol> sim_protocols() {
  std::vector<SimProtocol> protocols;
  for (const Protocol protocol : available_protocols()) {
    protocols.push_back({protocol, LockMode::kExclusive});
    if (rules_of(protocol, LockMode::kShared)->lock_mode == LockMode::kShared) {
      protocols.push_back({protocol, LockMode::kShared});
    }
  }
  return protocols;
}

// Tests that run under every protocol there is, under another hybrid code with every seed.
class EachProtocol : public testing::TestWithParam<SimProtocol> {
 protected:
  static SimScenario scenario(uint64_t seed) {
    SimScenario scenario = GetParam().scenario();
    scenario.code = static_cast<uint16_t>(Random(seed).below(kStageCodeMax + 1) &
                                          stages_of(GetParam().protocol));
    return scenario;
  }

  // One workload after the other, seed by seed.
  static SimScenario scenario_of_any_load(uint64_t seed) {
    static constexpr SimScenario::Load kLoads[] = {
        SimScenario::Load::kMixed, SimScenario::Load::kBank, SimScenario::Load::kPredicate};
    SimScenario any = scenario(seed);
    any.load = kLoads[seed % std::size(kLoads)];
    return any;
  }
};

// INSTANTIATE_TEST_SUITE_P of a suite derived from EachProtocol: All/Suite.Test/occ.
#define RDMACC_FOR_EACH_PROTOCOL(suite)               \
  INSTANTIATE_TEST_SUITE_P(                           \
      All, suite, testing::ValuesIn(sim_protocols()), \
      [](const testing::TestParamInfo<SimProtocol>& tested) { return tested.param.name(); })

}  // namespace rdmacc
