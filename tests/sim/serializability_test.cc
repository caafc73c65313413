// Every protocol and hybrid code on random schedules: histories are serializable, no lock is left,
// rows are whole, money is kept.
#include <gtest/gtest.h>

#include <bit>

#include "engine/check/key_histories.h"
#include "tests/sim/each_protocol.h"

namespace rdmacc {
namespace {

struct Variant {
  SimProtocol protocol;
  uint16_t code;
};

std::string name_of(const testing::TestParamInfo<Variant>& variant) {
  return variant.param.protocol.name() + "_" + std::to_string(variant.param.code);
}

// All subsets of the stages that the protocol has. Of those that are like another each stage is
// alone, and alone left out; the campaign goes through the rest.
std::vector<Variant> all_variants() {
  std::vector<Variant> variants;
  for (const SimProtocol& protocol : sim_protocols()) {
    const uint16_t stages = stages_of(protocol.protocol);
    for (uint16_t code = 0; code <= stages; ++code) {
      if ((code & stages) != code) continue;
      const int others = std::popcount(static_cast<uint16_t>(stages ^ code));
      const bool left_out = is_like_another(protocol.protocol, protocol.lock_mode) &&
                            std::popcount(code) > 1 && others > 1;
      if (!left_out) variants.push_back({protocol, code});
    }
  }
  return variants;
}

class HybridCode : public testing::TestWithParam<Variant> {};

SimScenario scenario_of(const Variant& variant, SimScenario::Load load) {
  SimScenario scenario = variant.protocol.scenario();
  scenario.code = variant.code;
  scenario.load = load;
  return scenario;
}

TEST_P(HybridCode, MixedIsSerializable) {
  run_seeds(1, [](uint64_t) { return scenario_of(GetParam(), SimScenario::Load::kMixed); });
}

TEST_P(HybridCode, PredicatesHold) {
  run_seeds(1, [](uint64_t) { return scenario_of(GetParam(), SimScenario::Load::kPredicate); });
}

INSTANTIATE_TEST_SUITE_P(All, HybridCode, testing::ValuesIn(all_variants()), name_of);

// Committed transactions that scanned, and wrote or only read.
struct Scanners {
  uint64_t writers = 0, readers = 0;

  void add(const SimRun& run) {
    for (const HistoryTransaction& transaction : run.history()) {
      if (transaction.outcome != HistoryOutcome::kCommitted) continue;
      bool scans = false, writes = false;
      for (const HistoryEvent& event : transaction.events) {
        scans = scans || event.op == HistoryOp::kScan;
        writes = writes || makes_a_version(event.op);
      }
      (writes ? writers : readers) += scans ? 1 : 0;
    }
  }
};

class ProtocolSeeds : public EachProtocol {
 protected:
  // `change` is told the seed. Some scan and write, and some scan and only read.
  static void expect_predicates(void (*change)(SimScenario& scenario, uint64_t seed)) {
    Scanners scanners;
    run_seeds(
        15,
        [change](uint64_t seed) {
          SimScenario predicates = scenario(seed);
          predicates.load = SimScenario::Load::kPredicate;
          change(predicates, seed);
          return predicates;
        },
        [&scanners](const SimRun& run) { scanners.add(run); });
    EXPECT_GT(scanners.writers, 0u);
    EXPECT_GT(scanners.readers, 0u);
  }
};

TEST_P(ProtocolSeeds, MixedIsSerializable) {
  run_seeds(30, [](uint64_t seed) { return scenario(seed); });
}

TEST_P(ProtocolSeeds, BankKeepsItsTotal) {
  run_seeds(15, [](uint64_t seed) {
    SimScenario bank = scenario(seed);
    bank.load = SimScenario::Load::kBank;
    return bank;
  });
}

TEST_P(ProtocolSeeds, PredicatesHold) {
  expect_predicates([](SimScenario&, uint64_t) {});
}

// What readers see belongs together: most transactions only read, a few change what they read.
TEST_P(ProtocolSeeds, ReadersSeePredicatesHold) {
  expect_predicates([](SimScenario& readers, uint64_t seed) {
    readers.read_only_percent = seed % 2 == 0 ? 50 : 90;
  });
}

TEST_P(ProtocolSeeds, LostAndDoubledDatagramsDoNoHarm) {
  run_seeds(12, [](uint64_t seed) {
    SimScenario lossy = scenario_of_any_load(seed);
    lossy.loss_percent = 1 + static_cast<uint32_t>(seed % 20);
    lossy.duplicate_percent = static_cast<uint32_t>(seed * 7 % 20);
    return lossy;
  });
}

TEST_P(ProtocolSeeds, OneSeedIsOneHistory) {
  run_seeds(
      5, [](uint64_t seed) { return scenario(seed); },
      [](const SimRun& first) {
        SimScenario again = scenario(first.seed());
        again.seed = first.seed();
        SimRun second(again);
        ASSERT_EQ(second.run(), "");
        EXPECT_FALSE(first.history_text().empty());
        EXPECT_EQ(first.events(), second.events());
        EXPECT_TRUE(first.history_text() == second.history_text());
      });
}

RDMACC_FOR_EACH_PROTOCOL(ProtocolSeeds);

}  // namespace
}  // namespace rdmacc
