// Bulk loads of several sessions while groups split under them, with pauses between the READs of a
// batch: every row that was acknowledged is found by look-up and by scan, and found quickly.
#include <gtest/gtest.h>

#include "tests/sim/campaign.h"
#include "tests/sim/each_protocol.h"
#include "tests/sim/seeds.h"

namespace rdmacc {
namespace {

class EngineLoads : public EachProtocol {
 protected:
  static SimScenario loads(uint64_t seed) {
    return loads_scenario({GetParam().protocol, GetParam().lock_mode}, seed);
  }
};

TEST_P(EngineLoads, LoseNothingBesideSplits) {
  uint64_t splits = 0, committed = 0;
  run_seeds(4, loads, [&](const SimRun& run) {
    splits += run.splits();
    committed += run.committed();
  });
  std::printf("%lu loads, %lu splits\n", committed, splits);
  EXPECT_GT(splits, 0U);
  if (all_seeds_run()) {
    EXPECT_GT(splits, committed / 10);
  }
}

RDMACC_FOR_EACH_PROTOCOL(EngineLoads);

}  // namespace
}  // namespace rdmacc
