// How often each record is drawn.
#include "engine/workloads/record_chooser.h"

#include <gtest/gtest.h>

#include <cmath>
#include <vector>

namespace rdmacc {
namespace {

constexpr uint32_t kDraws = 100'000;

std::vector<uint32_t> counts_of(const AccessPattern& pattern) {
  const RecordChooser chooser(pattern);
  std::vector<uint32_t> counts(pattern.records);
  Random random(5);
  for (uint32_t i = 0; i < kDraws; ++i) ++counts.at(chooser.choose(random));
  return counts;
}

TEST(RecordChooser, IsUniformUnlessAskedOtherwise) {
  for (const uint32_t count : counts_of({10, 0, 0, 0})) EXPECT_NEAR(count, kDraws / 10, 500);
}

TEST(RecordChooser, GivesHotRecordsTheirShare) {
  const std::vector<uint32_t> counts = counts_of({10, 2, 60, 0});
  EXPECT_NEAR(counts[0] + counts[1], kDraws * 0.6, 1'000);
  EXPECT_NEAR(counts[0], counts[1], 1'000);
  for (size_t i = 2; i < 10; ++i) EXPECT_NEAR(counts[i], kDraws * 0.4 / 8, 500);
}

// The first two records get exactly what the distribution says, later ones nearly.
TEST(RecordChooser, FollowsZipfsDistribution) {
  for (const double theta : {0.2, 0.5, 0.99}) {
    constexpr uint64_t kRecords = 50;
    double zeta = 0;
    for (uint64_t i = 1; i <= kRecords; ++i) zeta += std::pow(i, -theta);
    const std::vector<uint32_t> counts = counts_of({kRecords, 0, 0, theta});
    EXPECT_NEAR(counts[0], kDraws / zeta, 600) << theta;
    EXPECT_NEAR(counts[1], kDraws * std::pow(2, -theta) / zeta, 600) << theta;
    uint32_t first_half = 0;
    double expected = 0;
    for (uint64_t i = 0; i < kRecords / 2; ++i) {
      first_half += counts[i];
      expected += kDraws * std::pow(i + 1, -theta) / zeta;
    }
    EXPECT_NEAR(first_half, expected, kDraws * 0.03) << theta;
    EXPECT_GT(counts[kRecords - 1], 0u) << theta;
  }
}

TEST(RecordChooser, KnowsTheSmallestSizes) {
  for (const uint64_t records : {1, 2, 3}) {
    EXPECT_EQ(counts_of({records, 0, 0, 0.9}).size(), records);
    EXPECT_EQ(counts_of({records, records, 10, 0}).size(), records);
  }
}

}  // namespace
}  // namespace rdmacc
