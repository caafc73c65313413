// WAITDIE and WOUND_WAIT starve no transaction: one that dies or is wounded was younger than one
// under way, so the oldest never does, and restarts keep their age until they are the oldest. With
// shared locks it may give up a wait, for a circle that passes through a share ends so.
#include <gtest/gtest.h>

#include <map>

#include "tests/sim/seeds.h"

namespace rdmacc {
namespace {

// From the first attempt to the last, of one age.
struct Life {
  uint64_t begin_us = UINT64_MAX, end_us = 0;
  uint32_t attempts = 0;
};

void only_the_younger_gives_way(Protocol protocol, LockMode mode, AbortReason gives_way) {
  uint64_t times = 0, restarts_max = 0, given_up = 0;
  run_seeds(
      40,
      [protocol, mode](uint64_t seed) {
        SimScenario crowd;
        crowd.protocol = protocol;
        crowd.lock_mode = mode;
        crowd.code = static_cast<uint16_t>(Random(seed).below(32));
        crowd.load = SimScenario::Load::kBank;
        crowd.coordinators = 4;
        crowd.coroutines = 3;
        return crowd;
      },
      [&](const SimRun& run) {
        std::map<uint64_t, Life> lives;  // by age
        for (const HistoryTransaction& attempt : run.history()) {
          Life& life = lives[attempt.ctts];
          life.begin_us = std::min(life.begin_us, attempt.start_us);
          life.end_us = std::max(life.end_us, attempt.end_us);
          restarts_max = std::max<uint64_t>(restarts_max, life.attempts++);
        }
        for (const HistoryTransaction& attempt : run.history()) {
          given_up += attempt.reason == AbortReason::kWaitedTooLong ? 1 : 0;
          if (attempt.reason != gives_way) continue;
          ++times;
          // A wound may come so late that it meets the next attempt, which has the same age.
          const uint64_t since =
              gives_way == AbortReason::kWounded ? lives[attempt.ctts].begin_us : attempt.start_us;
          bool older = false;
          for (const auto& [age, life] : lives) {
            if (age >= attempt.ctts) break;
            older = older || (life.begin_us <= attempt.end_us && life.end_us >= since);
          }
          ASSERT_TRUE(older) << "seed " << run.seed() << ": the oldest, " << attempt.ctts
                             << ", gave way";
        }
      });
  // Of few seeds it may be none.
  if (mode == LockMode::kExclusive) {
    EXPECT_EQ(given_up, 0u);
  } else if (all_seeds_run()) {
    EXPECT_GT(given_up, 0u);
  }
  EXPECT_GT(times, all_seeds_run() ? 50u : 0u);
  EXPECT_GT(restarts_max, 1u) << "an age was kept";
}

TEST(Age, OnlyTheYoungerDies) {
  only_the_younger_gives_way(Protocol::kWaitdie, LockMode::kExclusive, AbortReason::kDied);
}

TEST(Age, OnlyTheYoungerDiesBesideShares) {
  only_the_younger_gives_way(Protocol::kWaitdie, LockMode::kShared, AbortReason::kDied);
}

TEST(Age, OnlyTheYoungerIsWounded) {
  only_the_younger_gives_way(Protocol::kWoundwait, LockMode::kExclusive, AbortReason::kWounded);
}

TEST(Age, OnlyTheYoungerIsWoundedBesideShares) {
  only_the_younger_gives_way(Protocol::kWoundwait, LockMode::kShared, AbortReason::kWounded);
}

}  // namespace
}  // namespace rdmacc
