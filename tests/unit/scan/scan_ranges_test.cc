// The ranges that a scan goes through, from root arrays as they are and as a split may leave them
// under a reader.
#include <gtest/gtest.h>

#include <map>
#include <set>

#include "engine/txn/transaction/scan_ranges.h"

namespace rdmacc {
namespace {

using Array = std::vector<uint64_t>;

// By definition: each group is at all places of one range, and at no other.
bool is_partition_by_definition(const Array& groups) {
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

CachedRoot root_of(const Array& groups) {
  CachedRoot root;
  root.groups = groups;
  return root;
}

std::vector<HashRange> walk(CachedRoot& root) {
  std::vector<HashRange> ranges;
  for (RangeWalk walk; !walk.ended();) ranges.push_back(walk.next(root));
  return ranges;
}

void check(const Array& groups) {
  CachedRoot root = root_of(groups);
  const std::vector<HashRange> ranges = walk(root);
  ASSERT_EQ(root.partition, is_partition_by_definition(groups)) << testing::PrintToString(groups);
  const bool whole = *root.partition;
  ASSERT_TRUE(whole || ranges.size() == 1);
  std::vector<int> covered(groups.size());
  std::set<uint64_t> seen;
  for (const HashRange& range : ranges) {
    EXPECT_TRUE(seen.insert(groups[range.bits]).second) << "a group has two ranges";
    for (uint64_t place = 0; place < groups.size(); place++) {
      if (group_bits_of(place, range.depth) == range.bits) covered[place]++;
    }
  }
  EXPECT_EQ(covered, std::vector<int>(groups.size(), 1)) << testing::PrintToString(groups);
  EXPECT_TRUE(!whole || seen == std::set<uint64_t>(groups.begin(), groups.end()));
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
  EXPECT_FALSE(is_partition(Array{0, 0, 2, 1}));
  EXPECT_FALSE(is_partition(Array{}));
  EXPECT_TRUE(is_partition(Array{0, 1, 0, 2}));
  CachedRoot root = root_of(Array{0, 1, 0, 2});
  EXPECT_EQ(walk(root).size(), 3u);
}

// Every order of two arrays of 4 and 8 places, the second with each group of the first split once
// or not: each part of the space comes once, wherever the array is read anew, torn in between or
// not.
TEST(ScanRangesTest, AnArrayThatIsReadAnewGoesOnWhereTheOldOneEnded) {
  for (const Array& before :
       {Array{1, 2}, Array{1, 2, 1, 3}, Array{1, 2, 4, 3}, Array{1, 1, 2, 1}}) {
    for (uint32_t split = 0; split < 16; split++) {
      Array after(8);
      for (uint64_t place = 0; place < 8; place++) {
        after[place] = before[place % before.size()];
        if (place >= 4 && (split >> place % 4 & 1) != 0) after[place] = 10 + place;
      }
      for (size_t turn = 0; turn <= before.size(); turn++) {
        CachedRoot old_root = root_of(before), new_root = root_of(after);
        std::vector<int> covered(after.size());
        RangeWalk walk;
        for (size_t i = 0; !walk.ended(); i++) {
          const HashRange range = walk.next(i < turn ? old_root : new_root);
          for (uint64_t place = 0; place < after.size(); place++) {
            if (group_bits_of(place, range.depth) == range.bits) covered[place]++;
          }
        }
        EXPECT_EQ(covered, std::vector<int>(after.size(), 1));
      }
    }
  }
}

// A walk that is put into a word between any two of its ranges, and taken on from there.
TEST(ScanRangesTest, AWalkGoesOnFromAWord) {
  CachedRoot root = root_of(Array{0, 1, 2, 1, 0, 3, 2, 4});
  const std::vector<HashRange> ranges = walk(root);
  constexpr NodeId kNodes = 3;
  uint64_t word = 0;
  std::vector<std::pair<NodeId, uint64_t>> taken;
  while (TableWalk::unpack(word).node < kNodes) {
    TableWalk next = TableWalk::unpack(word);
    taken.emplace_back(next.node, next.ranges.next(root).bits);
    next.go_on();
    word = next.pack();
  }
  ASSERT_EQ(taken.size(), kNodes * ranges.size());
  for (size_t i = 0; i < taken.size(); i++) {
    EXPECT_EQ(taken[i].first, i / ranges.size());
    EXPECT_EQ(taken[i].second, ranges[i % ranges.size()].bits);
  }
}

}  // namespace
}  // namespace rdmacc
