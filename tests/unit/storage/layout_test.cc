#include <gtest/gtest.h>

#include <cstring>
#include <vector>

#include "engine/storage/layout/control_area.h"
#include "engine/storage/layout/region_layout.h"
#include "engine/storage/layout/sundial_word.h"
#include "engine/storage/owner/arena.h"

namespace rdmacc {
namespace {

Topology topology_of(WorkerId workers, uint64_t bytes) {
  Topology topology;
  topology.workers_max = workers;
  topology.region_bytes = bytes;
  return topology;
}

TEST(RegionLayout, PlacesPartsOneBehindTheOtherWithinTheRegion) {
  for (const WorkerId workers : {WorkerId{2}, WorkerId{64}, WorkerId{1000}}) {
    const Topology topology = topology_of(workers, 1ull << 30);
    const RegionLayout layout(topology);
    EXPECT_GE(layout.control, sizeof(Superblock));
    EXPECT_GE(layout.directory, layout.worker_line(workers));
    EXPECT_GE(layout.log_rings, layout.directory + kDirectoryEntries * sizeof(DirectoryEntry));
    EXPECT_GE(layout.page_table, layout.log_ring(workers));
    EXPECT_GE(layout.pages, layout.page_table + layout.page_count * 8);
    EXPECT_LE(layout.page(layout.page_count), topology.region_bytes);
    EXPECT_GT(layout.page(layout.page_count) + 2 * kPageBytes, topology.region_bytes);
    EXPECT_EQ(layout.pages % kPageBytes, 0u);
    EXPECT_EQ(layout.directory_entry(5), layout.directory_entry(5 + kDirectoryEntries));
  }
}

TEST(RegionLayout, SmallestRegionHasPagesAndLessHasNone) {
  Topology topology = topology_of(64, 1ull << 30);
  topology.region_bytes = region_bytes_min(topology);
  EXPECT_GE(RegionLayout(topology).page_count, 16u);
  topology.region_bytes = 1 << 20;
  EXPECT_EQ(RegionLayout(topology).page_count, 0u);
}

TEST(ControlArea, StartsWithNoProtocolAndTheFirstEpoch) {
  const RegionLayout layout(topology_of(8, 64ull << 20));
  std::vector<uint64_t> region(layout.directory / 8, ~0ull);
  auto* bytes = reinterpret_cast<std::byte*>(region.data());
  format_control_area(bytes, layout);
  GateLine gate;
  std::memcpy(&gate, bytes + layout.control, sizeof(gate));
  EXPECT_EQ(gate.word, 0u);
  EXPECT_EQ(gate.epoch, kFirstEpoch);
  for (WorkerId worker = 0; worker < 8; ++worker) {
    EXPECT_EQ(region[layout.worker_line(worker) / 8 + 1], 0u);
  }
}

TEST(OverflowUnits, HoldTheirBlockAndWasteLittle) {
  uint32_t last = 0;
  for (uint64_t bytes = 1; bytes <= kOverflowBytesMax; bytes += bytes < 4096 ? 1 : 97) {
    const uint32_t unit = overflow_unit_bytes(bytes);
    ASSERT_GE(unit, bytes + sizeof(OverflowHeader));
    ASSERT_EQ(unit % 64, 0u);
    ASSERT_GE(unit, last);
    const uint64_t total = bytes + sizeof(OverflowHeader);
    if (unit > kPageBytes) {
      ASSERT_EQ(unit, round_up(total, kPageBytes));
    } else {
      ASSERT_LE(unit, std::max<uint64_t>(64 + 63, total * 5 / 4 + 63));
    }
    last = unit;
  }
  EXPECT_GE(kPageBytes / overflow_unit_bytes(67'000), 3u);
}

TEST(SundialWord, KeepsItsParts) {
  const uint64_t unlocked = sundial_unlocked_word(kSundialWtsMax, 7);
  EXPECT_FALSE(sundial_locked(unlocked));
  EXPECT_EQ(sundial_wts(unlocked), kSundialWtsMax);
  EXPECT_EQ(sundial_rts_bound(unlocked), kSundialWtsMax + 7);
  const uint64_t locked = sundial_locked_word(12, 3);
  EXPECT_TRUE(sundial_locked(locked));
  EXPECT_EQ(sundial_wts(locked), 12u);
  EXPECT_EQ(sundial_rts_bound(locked), 12 + kSundialDeltaMax);
}

}  // namespace
}  // namespace rdmacc
