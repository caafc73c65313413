// The ranges that a scan goes through, from root arrays as they are and as a split may leave them
// under a reader.
#include <gtest/gtest.h>

#include <map>
#include <set>

#include "engine/txn/transaction/scan_cursor.h"

namespace rdmacc {
namespace {

using Array = std::vector<uint64_t>;

// By definition: each group is at all places of one range, and at no other.
bool is_partition(const Array& groups) {
  const auto depth = static_cast<uint32_t>(std::countr_zero(groups.size()));
  std::map<uint64_t, std::set<uint64_t>> places;
  for (uint64_t place = 0; place < groups.size(); place++) places[groups[place]].insert(place);
  for (const auto& [group, at] : places) {
    bool found = false;
    for (uint32_t own = 0; own <= depth; own++) {
      std::set<uint64_t> range;
      for (uint64_t place = 0; place < groups.size(); place++) {
        if (group_bits_of(place, own) == group_bits_of(*at.begin(), own)) range.insert(place);
      }
      found = found || range == at;
    }
    if (!found) return false;
  }
  return true;
}

void check(const Array& groups) {
  std::deque<HashRange> ranges;
  const bool planned = plan_ranges(groups, ranges);
  ASSERT_EQ(planned, is_partition(groups)) << testing::PrintToString(groups);
  if (!planned) return;
  std::vector<int> covered(groups.size());
  std::set<uint64_t> seen;
  for (const HashRange& range : ranges) {
    EXPECT_TRUE(seen.insert(groups[range.bits]).second) << "a group has two ranges";
    for (uint64_t place = 0; place < groups.size(); place++) {
      if (group_bits_of(place, range.depth) == range.bits) covered[place]++;
    }
  }
  EXPECT_EQ(covered, std::vector<int>(groups.size(), 1)) << testing::PrintToString(groups);
}

TEST(ScanRangesTest, EveryArrayOfFourGroupsIsAPartitionOrIsRefused) {
  for (const size_t places : {1u, 2u, 4u, 8u}) {
    Array groups(places);
    for (uint64_t number = 0; number < 1ull << (2 * places); number++) {
      for (size_t i = 0; i < places; i++) groups[i] = number >> (2 * i) & 3;
      check(groups);
      if (HasFatalFailure()) return;
    }
  }
}

TEST(ScanRangesTest, AGroupThatWasSplitTwiceUnderTheReaderIsRefused) {
  std::deque<HashRange> ranges;
  EXPECT_FALSE(plan_ranges(Array{0, 0, 2, 1}, ranges));
  EXPECT_FALSE(plan_ranges(Array{}, ranges));
  EXPECT_TRUE(plan_ranges(Array{0, 1, 0, 2}, ranges));
  EXPECT_EQ(ranges.size(), 3u);
}

}  // namespace
}  // namespace rdmacc
