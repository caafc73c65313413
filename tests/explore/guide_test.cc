// The protocol that docs/writing_a_protocol.md writes, in NOWAIT's place, in every order of the
// events of small programs; and with the fault that the page plants.
#include <gtest/gtest.h>

#include "tests/explore/explorer.h"
#include "tests/explore/mutants.h"
#include "tests/guide/guide.h"

namespace rdmacc {
namespace {

ExploreReport explore(const ProtocolRules& rules, const char* text, StagePlan plan,
                      uint64_t states_max) {
  const auto program = ExploreProgram::parse(text);
  CHECK(program);
  ExploreSetup setup;
  setup.protocol = rules.protocol;
  setup.plan = plan;
  put_in_use(rules);
  Explorer explorer(*program, setup, {mutated_rules_of, nullptr});
  return explorer.explore({states_max});
}

TEST(Guide, TheExplorationFindsNothing) {
  for (const char* program :
       {"gx,px|gx,px", "gx,py|gy,px", "gx,gy|px,py", "gz,iz|gz,iz", "sc,iz|sc,px", "rx|px,gy"}) {
    for (const StagePlan plan : {StagePlan(), StagePlan(0)}) {
      const ExploreReport report = explore(kGuideRules, program, plan, 2'000);
      EXPECT_EQ(report.problem, "") << program << '\n' << report.trace;
      std::printf("%s, stages %u: %s\n", program, plan.code(), report.summary().c_str());
    }
  }
}

TEST(Guide, TheExplorationFindsThePlantedFault) {
  const ExploreReport report = explore(kGuideFaultyRules, "gx,px|gx,px", StagePlan(), 200'000);
  EXPECT_NE(report.problem, "") << report.summary();
  std::printf("%s, after %lu executions\n", report.problem.c_str(), report.executions);
}

}  // namespace
}  // namespace rdmacc
