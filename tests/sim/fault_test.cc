// Coordinators and nodes die at any event: what was logged is committed, the rest is not, and no
// lock is left.
#include <gtest/gtest.h>

#include "engine/protocols/registry.h"
#include "tests/sim/seeds.h"

namespace rdmacc {
namespace {

class ProtocolFaults : public testing::TestWithParam<Protocol> {
 protected:
  static SimScenario scenario(uint64_t seed) {
    SimScenario scenario;
    scenario.protocol = GetParam();
    scenario.code =
        static_cast<uint16_t>(Random(seed).below(kStageCodeMax + 1) & stages_of(GetParam()));
    scenario.load = seed % 2 == 0 ? SimScenario::Load::kBank : SimScenario::Load::kMixed;
    return scenario;
  }
};

TEST_P(ProtocolFaults, DeadCoordinatorsAreResolved) {
  uint64_t resolved = 0;
  run_seeds(
      30,
      [](uint64_t seed) {
        SimScenario deadly = scenario(seed);
        deadly.kills = 1 + static_cast<uint32_t>(seed % 2);
        return deadly;
      },
      [&resolved](const SimRun& run) { resolved += run.resolved(); });
  EXPECT_GT(resolved, 0u);
}

TEST_P(ProtocolFaults, RestartedNodesLoseNothing) {
  run_seeds(20, [](uint64_t seed) {
    SimScenario restarts = scenario(seed);
    restarts.node_restarts = 1 + static_cast<uint32_t>(seed % 3 == 0);
    return restarts;
  });
}

TEST_P(ProtocolFaults, EverythingAtOnce) {
  run_seeds(20, [](uint64_t seed) {
    SimScenario all = scenario(seed);
    all.kills = 2;
    all.node_restarts = 1;
    all.loss_percent = 5;
    all.duplicate_percent = 5;
    return all;
  });
}

INSTANTIATE_TEST_SUITE_P(All, ProtocolFaults,
                         testing::ValuesIn(available_protocols().begin(),
                                           available_protocols().end()),
                         [](const testing::TestParamInfo<Protocol>& protocol) {
                           return protocol_name(protocol.param);
                         });

}  // namespace
}  // namespace rdmacc
