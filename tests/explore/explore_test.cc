// Every order of events of small programs, with the real rules and drivers. README.md has the
// environment variables.
#include <gtest/gtest.h>

#include <cstdio>
#include <cstdlib>

#include "engine/protocols/registry.h"
#include "tests/explore/explorer.h"

namespace rdmacc {
namespace {

// States of one program and setup that `make check` looks at.
constexpr uint64_t kStatesDefault = 2'000;

uint64_t states_max() {
  const char* budget = std::getenv("EXPLORE_BUDGET");
  return budget == nullptr ? kStatesDefault : std::strtoull(budget, nullptr, 10);
}

// One protocol, lock mode and plan.
struct Variant {
  Protocol protocol;
  LockMode lock_mode;
  StagePlan plan;
};

std::vector<Variant> variants() {
  std::vector<Variant> all;
  for (const Protocol protocol : available_protocols()) {
    for (const LockMode mode : {LockMode::kExclusive, LockMode::kShared}) {
      const ProtocolRules* rules = rules_of(protocol, mode);
      // A deterministic order leaves nothing to explore but the messages that make it: the
      // simulator's seeds are for those.
      if (rules == nullptr || rules->lock_mode != mode || rules->commits_in_order) continue;
      // All one-sided, all by RPC, and two that take turns: reads and commits, locks and logs.
      const uint16_t stages = rules->stages;
      const auto one_sided = static_cast<uint16_t>(
          static_cast<uint16_t>(Stage::kRead) | static_cast<uint16_t>(Stage::kCommit) |
          static_cast<uint16_t>(Stage::kValidate) | static_cast<uint16_t>(Stage::kRenew));
      for (const int code : {stages + 0, 0, stages & one_sided, stages & ~one_sided}) {
        all.push_back({protocol, mode, StagePlan(static_cast<uint16_t>(code))});
      }
    }
  }
  return all;
}

std::string name_of(const Variant& variant) {
  return std::string(protocol_name(variant.protocol)) +
         (variant.lock_mode == LockMode::kShared ? "_shared_" : "_") +
         std::to_string(variant.plan.code());
}

class ExplorePrograms : public testing::TestWithParam<Variant> {
 protected:
  ExploreSetup setup() const {
    ExploreSetup setup;
    setup.protocol = GetParam().protocol;
    setup.plan = GetParam().plan;
    setup.lock_mode = GetParam().lock_mode;
    return setup;
  }

  void explore(const ExploreProgram& program, const ExploreSetup& setup) {
    Explorer explorer(program, setup);
    const ExploreReport report = explorer.explore({states_max()});
    const std::string name = setup.to_string() + " " + program.to_string();
    std::printf("%s: %s\n", name.c_str(), report.summary().c_str());
    ++programs_;
    exhausted_ += report.exhausted ? 1 : 0;
    EXPECT_EQ(report.problem, "") << report.trace << "Again:\n  EXPLORE='" << setup.to_string()
                                  << "' EXPLORE_PROGRAM='" << program.to_string()
                                  << "' EXPLORE_CHOICES='" << report.choices
                                  << "' explore_test --gtest_filter=Explore.Replay";
  }
  void explore(const char* text, const ExploreSetup& setup) {
    const auto program = ExploreProgram::parse(text);
    ASSERT_TRUE(program) << text;
    explore(*program, setup);
  }
  void TearDown() override {
    std::printf("%s: %u programs, %u exhausted\n", name_of(GetParam()).c_str(), programs_,
                exhausted_);
  }

 private:
  uint32_t programs_ = 0, exhausted_ = 0;
};

// Conflicts of two rows, in either order of the timestamps.
TEST_P(ExplorePrograms, OfReadsAndWrites) {
  for (const bool younger_first : {false, true}) {
    for (const char* program :
         {"gx,py|gy,px", "gx,px|gx,px", "gx,gy|px,py", "px,py|py,px", "gx,px!|gx,py"}) {
      ExploreSetup its = setup();
      its.younger_first = younger_first;
      explore(program, its);
    }
  }
}

TEST_P(ExplorePrograms, OfInsertsDeletesAndScans) {
  for (const char* program :
       {"gz,iz|gz,iz", "gz,px|iz,gx", "sc,iz|sc,px", "rx,gz|gx,iz", "rx|px,gy", "iz,px!|gz,gx"}) {
    ExploreSetup its = setup();
    its.warm = true;
    explore(program, its);
  }
}

// Verbs that tear word by word, rows of two lines, two nodes, three transactions.
TEST_P(ExplorePrograms, OfOtherShapes) {
  ExploreSetup words = setup(), wide = setup(), nodes = setup();
  words.words = true;
  wide.wide_rows = true;
  nodes.nodes = 2;
  explore("gx|px", words);
  explore("gx,gy|px,py", wide);
  explore("gx,py|gy,px", nodes);
  explore("gx,py|gy,px|gx,gy", setup());
  explore("px|px|gx", setup());
}

// Only with a budget: all of them.
TEST_P(ExplorePrograms, OfTwoTransactionsOfTwoOperations) {
  if (std::getenv("EXPLORE_BUDGET") == nullptr) GTEST_SKIP() << "EXPLORE_BUDGET is not set";
  for (const ExploreProgram& program : all_programs_of_two()) {
    for (const bool younger_first : {false, true}) {
      ExploreSetup its = setup();
      its.younger_first = younger_first;
      explore(program, its);
    }
  }
}

INSTANTIATE_TEST_SUITE_P(All, ExplorePrograms, testing::ValuesIn(variants()),
                         [](const auto& its) { return name_of(its.param); });

// What is left out is only what commutes: the ends are the same with every event a choice.
TEST(Explore, ReductionsLoseNoEnd) {
  ExploreSetup setup;
  for (const Protocol protocol : {Protocol::kNowait, Protocol::kOcc}) {
    setup.protocol = protocol;
    for (const uint16_t code : {uint16_t{511}, uint16_t{0}}) {
      setup.plan = StagePlan(code);
      const auto program = ExploreProgram::parse("gx|px");
      const auto explore = [&](bool reduce) {
        Explorer explorer(*program, setup);
        return explorer.explore({1'000'000, reduce});
      };
      const ExploreReport few = explore(true), all = explore(false);
      EXPECT_TRUE(few.exhausted && all.exhausted);
      EXPECT_GT(all.states, few.states);
      EXPECT_EQ(all.results, few.results) << all.summary() << '\n' << few.summary();
    }
  }
}

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
      choices != nullptr ? explorer.replay(choices) : explorer.explore({states_max()});
  std::printf("%s\n%s\n", report.trace.c_str(), report.summary().c_str());
  EXPECT_EQ(report.problem, "") << report.choices;
}

}  // namespace
}  // namespace rdmacc
