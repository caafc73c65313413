// Runs that crowd one sort of moment each (directed.h) are sound.
#include "tests/sim/directed.h"

#include <gtest/gtest.h>

#include "tests/sim/each_protocol.h"

namespace rdmacc {
namespace {

class Directed : public EachProtocol {};

TEST_P(Directed, EveryKindIsSound) {
  run_seeds(4, [](uint64_t seed) {
    return directed_scenario({GetParam().protocol, GetParam().lock_mode}, seed);
  });
}

RDMACC_FOR_EACH_PROTOCOL(Directed);

}  // namespace
}  // namespace rdmacc
