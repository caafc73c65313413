// Rows that transactions lock before their commit: beside writers that do not, with waits for the
// holders or without, over savepoints, and with every fault.
#include <gtest/gtest.h>

#include "tests/sim/campaign.h"
#include "tests/sim/each_protocol.h"
#include "tests/sim/seeds.h"

namespace rdmacc {
namespace {

class EarlyLocks : public EachProtocol {
 protected:
  static SimScenario locking(uint64_t seed) {
    return locks_scenario({GetParam().protocol, GetParam().lock_mode}, seed);
  }
};

TEST_P(EarlyLocks, KeepHistoriesSerializable) {
  uint64_t committed = 0;
  run_seeds(12, locking, [&](const SimRun& run) { committed += run.committed(); });
  std::printf("%lu transactions\n", committed);
  EXPECT_GT(committed, 0u);
}

RDMACC_FOR_EACH_PROTOCOL(EarlyLocks);

}  // namespace
}  // namespace rdmacc
