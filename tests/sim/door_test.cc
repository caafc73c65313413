// Every public operation of a session beside every change of an index: splits, chains, cleaning,
// tombstones that are unlinked, tables that are dropped, memory that is full.
#include <gtest/gtest.h>

#include "tests/sim/each_protocol.h"

namespace rdmacc {
namespace {

class ProtocolDoor : public EachProtocol {
 protected:
  static SimScenario door(uint64_t seed) {
    SimScenario scenario = EachProtocol::scenario(seed);
    Random random(seed ^ 0xD00E);
    scenario.load = SimScenario::Load::kDoor;
    scenario.coordinators = 3;
    scenario.declared = executes_procedures(scenario.protocol) && seed % 2 == 0;
    if (seed % 2 == 0) scenario.delays = SimDelays::draw(random);
    return scenario;
  }
};

TEST_P(ProtocolDoor, HoldsBesideChangesOfTheIndex) {
  uint64_t splits = 0, drops = 0;
  run_seeds(6, door, [&](const SimRun& run) {
    splits += run.splits();
    drops += run.drops();
  });
  if (!all_seeds_run()) return;
  EXPECT_GT(splits, 0u);
  EXPECT_GT(drops, 0u);
}

TEST_P(ProtocolDoor, HoldsWhenMemoryIsFull) {
  uint64_t full = 0;
  run_seeds(
      4,
      [](uint64_t seed) {
        SimScenario tight = door(seed);
        tight.tight = !executes_procedures(tight.protocol);  // the order would wait for memory
        return tight;
      },
      [&full](const SimRun& run) { full += run.full(); });
  if (!all_seeds_run()) return;
  EXPECT_EQ(full > 0, !executes_procedures(GetParam().protocol));
}

RDMACC_FOR_EACH_PROTOCOL(ProtocolDoor);

TEST(StructureLedger, CountsWhatOverlaps) {
  StructureLedger ledger;
  const auto count = [&ledger](DoorOp op) {
    return ledger.counts().at(op, StructureChange::kSplit);
  };
  const StructureLedger::Operation before(&ledger, DoorOp::kGet, 7);
  const StructureLedger::Operation elsewhere(&ledger, DoorOp::kScan, 8);
  {
    StructureSpan split(&ledger, StructureChange::kSplit, 7);
    const StructureLedger::Operation within(&ledger, DoorOp::kPut, 7);
    split.happened();
  }
  const StructureLedger::Operation after(&ledger, DoorOp::kUnvalidatedRead, 7);
  EXPECT_EQ(count(DoorOp::kGet), 1u);
  EXPECT_EQ(count(DoorOp::kPut), 1u);
  EXPECT_EQ(count(DoorOp::kScan), 0u);
  EXPECT_EQ(count(DoorOp::kUnvalidatedRead), 0u);
}

TEST(StructureLedger, DoesNotCountWhatCameToNothing) {
  StructureLedger ledger;
  const StructureLedger::Operation under_way(&ledger, DoorOp::kGet, 7);
  { const StructureSpan split(&ledger, StructureChange::kSplit, 7); }
  EXPECT_EQ(ledger.counts().at(DoorOp::kGet, StructureChange::kSplit), 0u);
  EXPECT_NE(ledger.counts().zeros(), "");
}

}  // namespace
}  // namespace rdmacc
