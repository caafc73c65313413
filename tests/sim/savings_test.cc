// What posted verbs save makes no difference to what is true: each is left out, with every fault.
#include <gtest/gtest.h>

#include <algorithm>

#include "tests/sim/campaign.h"
#include "tests/sim/each_protocol.h"
#include "tests/sim/seeds.h"

namespace rdmacc {
namespace {

constexpr bool VerbSavings::*kSavings[] = {
    &VerbSavings::doorbell_batches, &VerbSavings::outstanding_requests, &VerbSavings::one_cas,
    &VerbSavings::one_read, &VerbSavings::one_round};

class VerbsThatSaveLess : public EachProtocol {
 protected:
  // Of the campaign, the seeds whose verbs are posted: one saving less with each.
  static SimScenario saving_less(uint64_t seed) {
    SimScenario scenario =
        campaign_scenario({GetParam().protocol, GetParam().lock_mode}, 7'000 + seed);
    scenario.one_by_one = false;
    scenario.savings.*kSavings[seed % std::size(kSavings)] = false;
    return scenario;
  }
};

TEST_P(VerbsThatSaveLess, KeepHistoriesSerializable) {
  uint64_t committed = 0;
  run_seeds(10, saving_less, [&](const SimRun& run) { committed += run.committed(); });
  EXPECT_GT(committed, 0u);
}

RDMACC_FOR_EACH_PROTOCOL(VerbsThatSaveLess);

}  // namespace
}  // namespace rdmacc
