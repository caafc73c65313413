#pragma once
#include <vector>

#include "engine/protocols/registry.h"
#include "tests/sim/seeds.h"

namespace rdmacc {

// Tests that run under every protocol there is, under another hybrid code with every seed.
class EachProtocol : public testing::TestWithParam<Protocol> {
 protected:
  static SimScenario scenario(uint64_t seed) {
    SimScenario scenario;
    scenario.protocol = GetParam();
    scenario.code =
        static_cast<uint16_t>(Random(seed).below(kStageCodeMax + 1) & stages_of(GetParam()));
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
#define RDMACC_FOR_EACH_PROTOCOL(suite)                                                          \
  INSTANTIATE_TEST_SUITE_P(                                                                      \
      All, suite, testing::ValuesIn(available_protocols().begin(), available_protocols().end()), \
      [](const testing::TestParamInfo<Protocol>& tested) { return protocol_name(tested.param); })

}  // namespace rdmacc
