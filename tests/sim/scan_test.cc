// Writers that scan: one that has lost a few times gets exclusive gate mode, so that they all get
// through under every protocol, however they meet.
#include <gtest/gtest.h>

#include "tests/sim/each_protocol.h"
#include "tests/sim/seeds.h"
#include "tests/workloads/predicate.h"

namespace rdmacc {
namespace {

class ProtocolScans : public EachProtocol {};
RDMACC_FOR_EACH_PROTOCOL(ProtocolScans);

TEST_P(ProtocolScans, WritersGetThroughInBoundedAttempts) {
  // Four lost scans, then alone; one that is refused the gate in the crowd asks again after eight
  // and sixteen, and an exclusive attempt may still lose to the split of a group.
  constexpr uint32_t kAttemptsMax = 20;
  uint64_t exclusive = 0;
  run_seeds(
      12,
      [](uint64_t seed) {
        SimScenario crowd = scenario(seed);
        crowd.load = SimScenario::Load::kPredicate;
        crowd.read_only_percent = 0;
        crowd.coordinators = 4;
        crowd.coroutines = 3;
        return crowd;
      },
      [&](const SimRun& run) {
        exclusive += run.exclusive();
        for (const PredicateKind kind : kPredicateScans) {
          const auto found = run.attempts_max().find(static_cast<uint32_t>(kind));
          if (found == run.attempts_max().end()) continue;  // none was drawn
          EXPECT_LE(found->second, kAttemptsMax)
              << "kind " << found->first << ", seed " << run.seed();
        }
      });
  std::printf("%s: %llu attempts alone\n", GetParam().name().c_str(),
              static_cast<unsigned long long>(exclusive));
}

}  // namespace
}  // namespace rdmacc
