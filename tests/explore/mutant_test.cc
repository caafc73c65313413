// Tests of the tests: the exploration finds what is wrong with a wrong engine, and nothing wrong
// with the right one on the same program.
#include <gtest/gtest.h>

#include "tests/explore/explorer.h"
#include "tests/explore/mutants.h"

namespace rdmacc {
namespace {

class ExploreMutants : public testing::TestWithParam<size_t> {};

TEST_P(ExploreMutants, AreFound) {
  const ExploreMutant& mutant = explore_mutants()[GetParam()];
  const ExploreSetup setup = mutant.setup();
  const auto program = ExploreProgram::parse(mutant.program);
  ASSERT_TRUE(program);
  put_in_use(mutant.rules);
  {
    Explorer wrong(*program, setup, {mutated_rules_of, mutant.rewriter});
    const ExploreReport report = wrong.explore({200'000});
    EXPECT_NE(report.problem, "") << report.summary();
    std::printf("%s, after %lu executions\n", report.problem.c_str(), report.executions);
  }
  Explorer sound(*program, setup);
  const ExploreReport report = sound.explore({200'000});
  EXPECT_EQ(report.problem, "") << report.trace;
  EXPECT_NE(report.exhausted, mutant.vast) << report.summary();
}

INSTANTIATE_TEST_SUITE_P(All, ExploreMutants, testing::Range<size_t>(0, explore_mutants().size()),
                         [](const auto& its) { return explore_mutants()[its.param].name; });

}  // namespace
}  // namespace rdmacc
