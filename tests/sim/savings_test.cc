// What posted verbs save makes no difference to what is true: each is left out, beside faults.
#include <gtest/gtest.h>

#include <algorithm>

#include "tests/sim/campaign.h"
#include "tests/sim/each_protocol.h"
#include "tests/sim/seeds.h"

namespace rdmacc {
namespace {

class VerbsThatSaveLess : public EachProtocol {
 protected:
  // The campaign's workloads and faults, with verbs that are posted, of coordinators.
  static SimScenario saving_less(const NamedSaving& left_out, uint64_t seed) {
    SimScenario scenario =
        campaign_scenario({GetParam().protocol, GetParam().lock_mode}, 7'000 + seed);
    scenario.one_by_one = false;
    scenario.code = stages_of(GetParam().protocol);
    scenario.savings.*left_out.saving = false;
    return scenario;
  }
};

TEST_P(VerbsThatSaveLess, KeepHistoriesSerializable) {
  uint64_t committed = 0;
  for (const NamedSaving& each : kVerbSavings) {
    run_seeds(
        4, [&each](uint64_t seed) { return saving_less(each, seed); },
        [&](const SimRun& run) { committed += run.committed(); });
    if (HasFatalFailure()) return;
  }
  EXPECT_GT(committed, 0u);
}

RDMACC_FOR_EACH_PROTOCOL(VerbsThatSaveLess);

}  // namespace
}  // namespace rdmacc
