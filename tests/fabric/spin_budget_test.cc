#include "rdma/coroutine/spin_budget.h"

#include <gtest/gtest.h>

namespace rdmacc {
namespace {

TEST(SpinBudget, StaysWhileSomethingIsFoundNowAndThen) {
  SpinBudget budget(50);
  for (int i = 0; i < 100; ++i) {
    EXPECT_EQ(50u, budget.begin());
    (i + 1) % SpinBudget::kInVainMax == 0 ? budget.found(1) : budget.found_nothing();
  }
}

TEST(SpinBudget, IsUsedUpBySpinsInVainAndTriesAgainNowAndThen) {
  SpinBudget budget(50);
  for (uint32_t i = 0; i < SpinBudget::kInVainMax; ++i) {
    EXPECT_EQ(50u, budget.begin());
    budget.found_nothing();
  }
  uint32_t tries = 0;
  for (uint32_t i = 0; i < 10 * SpinBudget::kSleepsPerTry; ++i) {
    if (budget.begin() == 0) continue;
    ++tries;
    budget.found_nothing();
  }
  EXPECT_EQ(10u, tries);
  budget.found(5);
  EXPECT_EQ(50u, budget.begin());
}

// Its thread had to wait for the processor: what came meanwhile says nothing for spinning.
TEST(SpinBudget, CountsAnAnswerThatCameMuchTooLateAsNone) {
  SpinBudget budget(50);
  for (uint32_t i = 0; i < SpinBudget::kInVainMax; ++i) budget.found(3'000);
  EXPECT_EQ(0u, budget.begin());
}

TEST(SpinBudget, OfNothingIsNothing) {
  SpinBudget budget(0);
  for (int i = 0; i < 100; ++i) {
    EXPECT_EQ(0u, budget.begin());
    budget.found(1);
  }
}

}  // namespace
}  // namespace rdmacc
