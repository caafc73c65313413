// An ordered index and its table, changed by concurrent transactions that split its nodes: under
// every protocol and a share of the hybrid codes, with every fault. Histories are serializable, and
// index and table agree in all that commits, and at the end.
#include <gtest/gtest.h>

#include "tests/sim/each_protocol.h"
#include "tests/sim/sim_farm.h"

namespace rdmacc {
namespace {

class ProtocolIndex : public EachProtocol {
 protected:
  static SimScenario indexed(uint64_t seed) {
    SimScenario scenario = EachProtocol::scenario(seed);
    scenario.load = SimScenario::Load::kIndexed;
    return scenario;
  }
};

TEST_P(ProtocolIndex, AgreesWithItsTable) {
  uint64_t committed = 0;
  run_seeds(20, indexed, [&committed](const SimRun& run) { committed += run.committed(); });
  EXPECT_GT(committed, 0u);
}

TEST_P(ProtocolIndex, AgreesAfterEveryFault) {
  uint64_t resolved = 0;
  run_seeds(
      12,
      [](uint64_t seed) {
        SimScenario faulty = indexed(seed);
        faulty.kills = static_cast<uint32_t>(seed % 3);
        faulty.node_restarts = seed % 4 == 1 ? 1 : 0;
        faulty.loss_percent = faulty.duplicate_percent = seed % 2 == 0 ? 5 : 0;
        return faulty;
      },
      [&resolved](const SimRun& run) { resolved += run.resolved(); });
  EXPECT_GT(resolved, 0u);
}

RDMACC_FOR_EACH_PROTOCOL(ProtocolIndex);

// A lock was left: of two keys that met on one header, by a stale location, one had lost its CAS
// just before the other one's won.
TEST(IndexSeeds, ThatFailedOnce) {
  SimScenario scenario;
  scenario.seed = 226;
  scenario.protocol = Protocol::kNowait;
  scenario.code = 24;
  scenario.load = SimScenario::Load::kIndexed;
  scenario.kills = 1;
  scenario.loss_percent = scenario.duplicate_percent = 5;
  SimRun run(scenario);
  EXPECT_EQ(run.run(), "");
}

// What hints came to: leaves that covered the place that was looked for, and others.
uint64_t right_leaves, wrong_leaves;

bool covers_and_counts(const TreeNode& node, const TreePlace& place) {
  const bool right = covers_by_fences(node, place);
  ++(right ? right_leaves : wrong_leaves);
  return right;
}

bool believes_hints(const TreeNode&, const TreePlace&) { return true; }

SimScenario scenario_of_splits(size_t index, Covers covers) {
  SimScenario scenario;
  scenario.seed = index + 1;
  scenario.protocol = Protocol::kOcc;
  scenario.code = stages_of(scenario.protocol);
  scenario.load = SimScenario::Load::kIndexed;
  scenario.read_only_percent = 10;
  scenario.covers = covers;
  return scenario;
}

TEST(IndexHints, AreSometimesWrong) {
  right_leaves = wrong_leaves = 0;
  for (size_t index = 0; index < 10; index++) {
    SimRun run(scenario_of_splits(index, covers_and_counts));
    ASSERT_EQ(run.run(), "") << "seed " << index + 1;
  }
  std::printf("%lu leaves were right, %lu wrong\n", right_leaves, wrong_leaves);
  EXPECT_GT(wrong_leaves, 0u);
  EXPECT_GT(right_leaves, wrong_leaves * 10);
}

// An index that takes whatever leaf the hints have led to is noticed; the right one passes there.
TEST(IndexMutants, UncheckedFencesAreNoticed) {
  if (seeds_percent() < 100) GTEST_SKIP() << "tests the tests, not the engine";
  SimResult noticed;
  run_scenarios(
      40, [](size_t index) { return scenario_of_splits(index, believes_hints); }, {},
      [&noticed](const SimResult& result) {
        noticed = result;
        return result.problem.empty();
      });
  ASSERT_NE(noticed.problem, "");
  std::printf("seed %zu: %s\n", noticed.index + 1, noticed.problem.substr(0, 160).c_str());
  const SimScenario right = scenario_of_splits(noticed.index, covers_by_fences);
  EXPECT_EQ(run_scenario(noticed.index, right).problem, "");
}

}  // namespace
}  // namespace rdmacc
