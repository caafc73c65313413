// The cluster's clock on another host than node 0's: what an answer tells, and for how long.
#include <gtest/gtest.h>

#include "rdma/bootstrap/cluster_clock.h"

namespace rdmacc {
namespace {

constexpr uint64_t kEpochNs = 5'000'000;  // of node 0's clock, which counts as ours does here
constexpr RandomToken kHere{1}, kThere{2};

uint64_t truth_ns() { return monotonic_now_ns() - kEpochNs; }

// An answer that node 0 gave `after_ns` from a question on, of one that took `took_ns`.
void hear(ClusterClock& clock, uint64_t took_ns, uint64_t after_ns) {
  const uint64_t asked_ns = monotonic_now_ns() - took_ns;
  ClockReading reading;
  reading.boot_id = kThere;
  reading.epoch_ns = kEpochNs;
  reading.memory_id = 1;
  reading.now_ns = asked_ns + after_ns - kEpochNs;
  clock.set(reading, kHere, asked_ns, asked_ns + took_ns);
}

void expect_bounds_hold(const ClusterClock& clock, uint64_t width_us_max) {
  const uint64_t before_us = truth_ns() / 1000;
  const ClockBounds bounds = clock.bounds();
  EXPECT_LE(bounds.earliest_us, truth_ns() / 1000);
  EXPECT_GE(bounds.latest_us, before_us);
  EXPECT_LE(bounds.latest_us - bounds.earliest_us, width_us_max);
}

TEST(ClusterClock, IsNotOffByMoreThanHalfOfAnAnswersWay) {
  for (const uint64_t after_ns : {0, 1'000'000, 4'000'000}) {
    ClusterClock clock;
    hear(clock, 4'000'000, after_ns);
    EXPECT_FALSE(clock.exact());
    expect_bounds_hold(clock, 4'200);
  }
}

// What was told before is ahead of the better estimate, and is told again: it must not pass for
// as good as that one.
TEST(ClusterClock, BoundsAreThoseOfTheLatestEstimateThoughItNeverStepsBack) {
  ClusterClock clock;
  hear(clock, 4'000'000, 4'000'000);
  const uint64_t ahead_ns = clock.now_ns();
  EXPECT_GT(ahead_ns, truth_ns() + 1'000'000);
  hear(clock, 20'000, 20'000);
  EXPECT_GE(clock.now_ns(), ahead_ns);
  expect_bounds_hold(clock, 100);
}

TEST(ClusterClock, TakesNoWorseEstimate) {
  ClusterClock clock;
  hear(clock, 20'000, 10'000);
  hear(clock, 4'000'000, 0);
  expect_bounds_hold(clock, 100);
}

TEST(ClusterClock, IsExactOnNodeZerosHost) {
  ClusterClock clock;
  ClockReading reading;
  reading.boot_id = kHere;
  reading.epoch_ns = kEpochNs;
  clock.set(reading, kHere, 0, 0);
  EXPECT_TRUE(clock.exact());
  expect_bounds_hold(clock, 1);
}

// Node 0's host knows nothing of the time before its memory was lost.
TEST(ClusterClock, CountsForOneMemoryOnly) {
  ClusterClock clock;
  ClockReading reading;
  reading.boot_id = kThere;
  reading.epoch_ns = 100;
  reading.memory_id = 7;
  reading.now_ns = 60'000'000'000;
  EXPECT_TRUE(clock.counts(reading));
  clock.set(reading, kHere, 1'000, 2'000);
  EXPECT_TRUE(clock.counts(reading));
  ClockReading anew = reading;
  anew.memory_id = 8;
  EXPECT_FALSE(clock.counts(anew));
  const uint64_t before_ns = clock.now_ns();
  anew.now_ns = 0;
  clock.forget();
  EXPECT_TRUE(clock.counts(anew));
  clock.set(anew, kHere, 1'000, 2'000);  // a worse estimate, of another time
  EXPECT_FALSE(clock.exact());
  EXPECT_LT(clock.now_ns(), before_ns);
}

}  // namespace
}  // namespace rdmacc
