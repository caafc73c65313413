// Every protocol and hybrid code on random schedules: histories are serializable, no lock is left,
// rows are whole, money is kept.
#include <gtest/gtest.h>

#include "engine/protocols/registry.h"
#include "tests/sim/seeds.h"

namespace rdmacc {
namespace {

struct Variant {
  Protocol protocol;
  uint16_t code;
};

std::string name_of(const testing::TestParamInfo<Variant>& variant) {
  return std::string(protocol_name(variant.param.protocol)) + "_" +
         std::to_string(variant.param.code);
}

// All subsets of the stages that the protocol has.
std::vector<Variant> all_variants() {
  std::vector<Variant> variants;
  for (const Protocol protocol : available_protocols()) {
    const uint16_t stages = stages_of(protocol);
    for (uint16_t code = 0; code <= stages; ++code) {
      if ((code & stages) == code) variants.push_back({protocol, code});
    }
  }
  return variants;
}

class HybridCode : public testing::TestWithParam<Variant> {};

TEST_P(HybridCode, MixedIsSerializable) {
  run_seeds(2, [](uint64_t) {
    SimScenario scenario;
    scenario.protocol = GetParam().protocol;
    scenario.code = GetParam().code;
    return scenario;
  });
}

INSTANTIATE_TEST_SUITE_P(All, HybridCode, testing::ValuesIn(all_variants()), name_of);

class ProtocolSeeds : public testing::TestWithParam<Protocol> {
 protected:
  // Another hybrid code with every seed.
  static SimScenario scenario(uint64_t seed) {
    SimScenario scenario;
    scenario.protocol = GetParam();
    scenario.code =
        static_cast<uint16_t>(Random(seed).below(kStageCodeMax + 1) & stages_of(GetParam()));
    return scenario;
  }
};

TEST_P(ProtocolSeeds, MixedIsSerializable) {
  run_seeds(60, [](uint64_t seed) { return scenario(seed); });
}

TEST_P(ProtocolSeeds, BankKeepsItsTotal) {
  run_seeds(30, [](uint64_t seed) {
    SimScenario bank = scenario(seed);
    bank.load = SimScenario::Load::kBank;
    return bank;
  });
}

TEST_P(ProtocolSeeds, LostAndDoubledDatagramsDoNoHarm) {
  run_seeds(20, [](uint64_t seed) {
    SimScenario lossy = scenario(seed);
    lossy.load = seed % 2 == 0 ? SimScenario::Load::kBank : SimScenario::Load::kMixed;
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

INSTANTIATE_TEST_SUITE_P(All, ProtocolSeeds,
                         testing::ValuesIn(available_protocols().begin(),
                                           available_protocols().end()),
                         [](const testing::TestParamInfo<Protocol>& protocol) {
                           return protocol_name(protocol.param);
                         });

}  // namespace
}  // namespace rdmacc
