// Every order of events of small programs, with the real rules and drivers.
#include <gtest/gtest.h>

#include <cstdio>
#include <cstdlib>

#include "engine/protocols/registry.h"
#include "tests/explore/explorer.h"

namespace rdmacc {
namespace {

// EXPLORE="occ stages=63 …" EXPLORE_PROGRAM="gx,py|gy,px" [EXPLORE_CHOICES=…]: this one alone.
TEST(Explore, Replay) {
  const char* setup_text = std::getenv("EXPLORE");
  const char* program_text = std::getenv("EXPLORE_PROGRAM");
  if (setup_text == nullptr || program_text == nullptr) GTEST_SKIP() << "EXPLORE is not set";
  const auto setup = ExploreSetup::parse(setup_text);
  const auto program = ExploreProgram::parse(program_text);
  ASSERT_TRUE(setup && program) << "EXPLORE or EXPLORE_PROGRAM does not parse";
  Explorer explorer(*program, *setup);
  const char* choices = std::getenv("EXPLORE_CHOICES");
  const ExploreReport report =
      choices != nullptr ? explorer.replay(choices) : explorer.explore({10'000'000});
  std::printf("%s\n%s\n", report.trace.c_str(), report.summary().c_str());
  EXPECT_EQ(report.problem, "") << report.choices;
}

}  // namespace
}  // namespace rdmacc
