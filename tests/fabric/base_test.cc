#include "rdma/base/histogram.h"

#include <algorithm>

#include "tests/fabric/fabric_harness.h"

namespace rdmacc {
namespace {

TEST(Histogram, PercentilesAreWithinFivePercent) {
  Histogram histogram;
  Random random(7);
  std::vector<uint64_t> values;
  for (int i = 0; i < 100'000; ++i) {
    values.push_back(random.below(1ull << (1 + random.below(40))));
    histogram.record(values.back());
  }
  std::sort(values.begin(), values.end());
  for (double percent : {1.0, 25.0, 50.0, 90.0, 99.0, 99.9}) {
    const auto rank = static_cast<size_t>(percent / 100 * static_cast<double>(values.size()));
    const auto exact = static_cast<double>(values[rank]);
    EXPECT_NEAR(exact, static_cast<double>(histogram.percentile(percent)), exact * 0.05 + 1);
  }
  EXPECT_EQ(values.front(), histogram.min());
  EXPECT_EQ(values.back(), histogram.max());
  EXPECT_EQ(values.back(), histogram.percentile(100));
}

TEST(Histogram, HoldsTheLargestValueAndNothing) {
  Histogram histogram;
  EXPECT_EQ(0u, histogram.percentile(50));
  EXPECT_EQ(0.0, histogram.mean());
  histogram.record(UINT64_MAX);
  histogram.record(0);
  EXPECT_EQ(2u, histogram.count());
  EXPECT_EQ(UINT64_MAX, histogram.max());
}

TEST(Histogram, BucketsHoldWhatWasRecorded) {
  Histogram histogram, again;
  Random random(8);
  std::vector<uint64_t> values{0, 31, 32, 63, 64, 65, 1'000'000};
  for (int i = 0; i < 1'000; ++i) values.push_back(random.below(1ull << (1 + random.below(40))));
  for (const uint64_t value : values) histogram.record(value);
  uint64_t end = 0, counted = 0;
  histogram.for_each_bucket([&](uint64_t least, uint64_t below, uint64_t count) {
    EXPECT_GE(least, end);
    EXPECT_GT(below, least);
    EXPECT_EQ(count, std::count_if(values.begin(), values.end(), [&](uint64_t value) {
                return value >= least && value < below;
              }));
    end = below;
    counted += count;
    again.record(least + (below - least) / 2, count);
  });
  EXPECT_EQ(counted, values.size());
  EXPECT_EQ(again.count(), histogram.count());
  for (double percent : {1.0, 50.0, 90.0}) {
    EXPECT_EQ(again.percentile(percent), histogram.percentile(percent));
  }
}

TEST(Histogram, MergeAddsUp) {
  Histogram a, b;
  for (uint64_t i = 1; i <= 100; ++i) (i <= 50 ? a : b).record(i);
  a.merge(b);
  EXPECT_EQ(100u, a.count());
  EXPECT_DOUBLE_EQ(50.5, a.mean());
  EXPECT_NEAR(50, static_cast<double>(a.percentile(50)), 3);
  a.clear();
  EXPECT_EQ(0u, a.count());
}

TEST(RegisteredPool, ReusesWhatIsGivenBack) {
  FabricHarness cluster(FabricKind::kSim);
  RegisteredPool& pool = cluster.coordinator(0).pool();
  std::byte* small = pool.take(100);
  std::byte* large = pool.take(100'000);
  ASSERT_NE(nullptr, small);
  ASSERT_NE(nullptr, large);
  pool.give_back(small, 100);
  pool.give_back(large, 100'000);
  EXPECT_EQ(small, pool.take(RegisteredPool::kBlockBytes));
  EXPECT_EQ(large, pool.take(70'000));  // the same power of two
  EXPECT_EQ(nullptr, pool.take(1ull << 40));
}

TEST(VerbArena, AlignsAndKeepsItsFirstBlock) {
  FabricHarness cluster(FabricKind::kSim);
  VerbArena arena(cluster.coordinator(0).pool());
  std::byte* first = arena.allocate(8);
  EXPECT_EQ(0u, reinterpret_cast<uintptr_t>(arena.allocate(12)) % 8);
  EXPECT_EQ(0u, reinterpret_cast<uintptr_t>(arena.allocate(64)) % 64);
  EXPECT_NE(nullptr, arena.allocate(1 << 20));
  EXPECT_EQ(8u + 12 + 64 + (1 << 20), arena.allocated_bytes());
  arena.reset();
  EXPECT_EQ(0u, arena.allocated_bytes());
  EXPECT_EQ(first, arena.allocate(8));
}

}  // namespace
}  // namespace rdmacc
