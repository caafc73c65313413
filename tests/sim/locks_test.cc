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
  run_seeds(5, locking, [&](const SimRun& run) { committed += run.committed(); });
  std::printf("%lu transactions\n", committed);
  EXPECT_GT(committed, 0u);
}

// A reader count names no holder: what a dead coordinator shared is found by a sweep, because its
// line at the gate says that there may be some. (No lock is left, as in every run.)
TEST_P(EarlyLocks, ThatTheDeadHaveSharedAreSwept) {
  if (!rules_of(GetParam().protocol)->lock_early) GTEST_SKIP() << "reads are locks, or none is";
  uint64_t resolved = 0, sweeps = 0;
  run_seeds(
      10,
      [](uint64_t seed) {
        SimScenario deadly = locking(seed);
        deadly.kills = 2;
        return deadly;
      },
      [&](const SimRun& run) {
        resolved += run.resolved();
        sweeps += run.reader_count_sweeps();
      });
  if (seeds_percent() < 100) return;  // the first seeds need not have any
  EXPECT_GT(resolved, 0u);
  EXPECT_GT(sweeps, 0u);
}

RDMACC_FOR_EACH_PROTOCOL(EarlyLocks);

}  // namespace
}  // namespace rdmacc
