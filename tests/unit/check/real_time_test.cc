// Serializable is not strictly serializable: one that ended before another began must come before
// it.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "rdma/base/random.h"
#include "tests/unit/check/made_history.h"

namespace rdmacc {
namespace {

using testing::HasSubstr;
using testing::StartsWith;

TEST(RealTime, PassesWhatRespectsIt) {
  const CheckReport report =
      check({kLoad, timed(10, 20, {op('w', "x", 2)}), timed(21, 30, {op('r', "x", 2)}),
             // Under way at once with the next: either order will do.
             timed(31, 50, {op('r', "x", 2)}), timed(40, 60, {op('w', "x", 3)})});
  EXPECT_TRUE(report.strictly_serializable) << report.real_time_problem;
  EXPECT_EQ(report.real_time_violations, 0u);
}

TEST(RealTime, FindsAStaleRead) {
  const std::vector<HistoryTransaction> history{kLoad, timed(10, 20, {op('w', "x", 2)}),
                                                timed(21, 30, {op('r', "x", 1)})};
  const CheckReport report = check(history);
  EXPECT_TRUE(report.serializable);
  EXPECT_FALSE(report.strictly_serializable);
  EXPECT_EQ(report.real_time_violations, 1u);
  EXPECT_EQ(report.real_time_problem,
            "stale read, cycle of 2: T2 (worker 1) ended at 20 -> T3 (worker 1) began at 21 (real "
            "time); T3 (worker 1) read t1/x version 1 -> T2 (worker 1) made its next version 2 "
            "(rw)");
  // Only on demand.
  EXPECT_TRUE(check_serializable(history, {}).strictly_serializable);
}

TEST(RealTime, EqualTimesAreNoOrder) {
  EXPECT_TRUE(check({kLoad, timed(10, 20, {op('w', "x", 2)}), timed(20, 30, {op('r', "x", 1)})})
                  .strictly_serializable);
}

TEST(RealTime, FindsWritesIntoThePastAndReadsFromTheFuture) {
  EXPECT_THAT(check({kLoad, timed(10, 20, {op('w', "x", 3)}), timed(21, 30, {op('w', "x", 2)})})
                  .real_time_problem,
              StartsWith("write into the past, cycle of 2: "));
  EXPECT_THAT(check({kLoad, timed(10, 20, {op('r', "x", 2)}), timed(21, 30, {op('w', "x", 2)})})
                  .real_time_problem,
              StartsWith("read from the future, cycle of 2: "));
}

// No single dependency leads backwards here, but three together do.
TEST(RealTime, FindsAWayBackThroughOthers) {
  const CheckReport report =
      check({kLoad, timed(10, 20, {op('w', "y", 2), op('w', "x", 3)}),
             timed(15, 45, {op('r', "z", 5), op('w', "x", 2)}), timed(40, 60, {op('i', "z", 5)})});
  EXPECT_TRUE(report.serializable);
  EXPECT_EQ(report.real_time_violations, 1u);
  EXPECT_THAT(report.real_time_problem,
              StartsWith("real-time violation, cycle of 3: T2 (worker 1) ended at 20 -> T4 (worker "
                         "1) began at 40 (real time); T4 (worker 1) wrote t1/z version 5 -> "));
}

TEST(RealTime, CountsEveryTransactionThatComesTooEarly) {
  std::vector<HistoryTransaction> history{kLoad, timed(10, 20, {op('w', "x", 2)})};
  for (int i = 0; i < 5; ++i) history.push_back(timed(30, 40, {op('r', "x", 1)}));
  history.push_back(timed(30, 40, {op('r', "x", 2)}));
  EXPECT_EQ(check(history).real_time_violations, 5u);
}

TEST(RealTime, UnknownOutcomesHaveNoEnd) {
  const auto unknown = HistoryOutcome::kUnknown;
  // Its write may have taken place long after its coordinator died at 20.
  EXPECT_TRUE(check({kLoad, timed(10, 20, {op('w', "x", 2)}, unknown),
                     timed(30, 40, {op('r', "x", 1)}), timed(50, 60, {op('r', "x", 2)})})
                  .strictly_serializable);
  // But not before it began.
  EXPECT_THAT(
      check({kLoad, timed(10, 20, {op('r', "x", 2)}), timed(30, 40, {op('w', "x", 2)}, unknown)})
          .real_time_problem,
      StartsWith("read from the future"));
}

TEST(RealTime, IsNotLookedAtInWhatIsNotSerializable) {
  const CheckReport report = check({kLoad, timed(10, 20, {op('r', "x", 1), op('w', "x", 2)}),
                                    timed(30, 40, {op('r', "x", 1), op('w', "x", 3)})});
  EXPECT_THAT(report.problem, HasSubstr("lost update"));
  EXPECT_FALSE(report.strictly_serializable);
  EXPECT_EQ(report.real_time_problem, "");
}

TEST(RealTime, RefusesAnEndBeforeTheBeginning) {
  EXPECT_EQ(check({kLoad, timed(20, 10, {op('r', "x", 1)})}).real_time_problem,
            "T2 (worker 1) ended at 10, before it began at 20");
}

// Against the definition itself: a cycle over dependencies and all pairs of real time. Writers of
// one key each, so the dependencies are its order of versions.
TEST(RealTime, AgreesWithAllPairs) {
  uint32_t strict = 0;
  for (uint64_t seed = 1; seed <= 300; ++seed) {
    Random random(seed);
    constexpr size_t kCount = 6;
    std::vector<HistoryTransaction> history{kLoad};
    std::vector<std::vector<bool>> before(kCount + 1, std::vector<bool>(kCount + 1, false));
    size_t last_writer[2] = {0, 0};
    for (size_t t = 1; t <= kCount; ++t) {
      const size_t key = random.below(2);
      const uint64_t start = 10 + 5 * t + random.below(20);
      history.push_back(timed(start, start + random.below(12), {op('w', key ? "x" : "y", t + 1)}));
      before[last_writer[key]][t] = true;
      last_writer[key] = t;
    }
    for (size_t a = 1; a <= kCount; ++a) {
      for (size_t b = 1; b <= kCount; ++b) {
        if (history[a].end_us < history[b].start_us) before[a][b] = true;
      }
    }
    for (size_t k = 0; k <= kCount; ++k) {
      for (size_t a = 0; a <= kCount; ++a) {
        for (size_t b = 0; b <= kCount; ++b) {
          if (before[a][k] && before[k][b]) before[a][b] = true;
        }
      }
    }
    bool cyclic = false;
    for (size_t t = 0; t <= kCount; ++t) cyclic = cyclic || before[t][t];
    const CheckReport report = check(history);
    EXPECT_TRUE(report.serializable);
    EXPECT_EQ(report.strictly_serializable, !cyclic) << "seed " << seed;
    EXPECT_EQ(report.real_time_violations == 0, !cyclic) << "seed " << seed;
    strict += cyclic ? 0 : 1;
  }
  EXPECT_GT(strict, 30u);
  EXPECT_LT(strict, 270u);
}

}  // namespace
}  // namespace rdmacc
