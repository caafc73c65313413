// Tables that are made and filled by a transaction before it commits, and used by others as soon as
// it has.
#include <gtest/gtest.h>

#include "engine/protocols/registry.h"
#include "tests/sim/campaign.h"
#include "tests/sim/each_protocol.h"
#include "tests/sim/seeds.h"

namespace rdmacc {
namespace {

class EngineFreshTables : public EachProtocol {
 protected:
  static SimScenario fresh(uint64_t seed) {
    return fresh_scenario({GetParam().protocol, GetParam().lock_mode}, seed);
  }
};

TEST_P(EngineFreshTables, AreFilledBeforeTheCommit) {
  uint64_t loads = 0, committed = 0;
  run_seeds(12, fresh, [&](const SimRun& run) {
    loads += run.loads();
    committed += run.committed();
  });
  std::printf("%lu transactions, %lu loads\n", committed, loads);
  const bool may_load = rules_of(GetParam().protocol, GetParam().lock_mode)->may_load_beforehand();
  EXPECT_EQ(loads > 0, may_load);
}

RDMACC_FOR_EACH_PROTOCOL(EngineFreshTables);

}  // namespace
}  // namespace rdmacc
