#include "tests/sim/second_life/splits_due.h"

#include <algorithm>
#include <cstring>

#include "engine/storage/owner/group_split.h"

namespace rdmacc {
namespace {

// Chained behind one bucket when a transaction asked for room: so many are full of entries that
// the group is worth splitting. Fewer may be filled later, of which the owner hears nothing.
constexpr uint32_t kLinksWhenFull = GroupSplitter::kSplitEntriesMin / kEntriesPerBucket;

template <typename T>
T at(const std::byte* region, uint64_t offset) {
  T value;
  std::memcpy(&value, region + offset, sizeof(value));
  return value;
}

}  // namespace

std::string find_split_due(const std::byte* region, const RegionLayout& layout, TableId table) {
  const auto entry = at<DirectoryEntry>(region, layout.directory_entry(table));
  if (entry.id != table || entry.state != TableState::kLive) return "";
  const IndexRoot root{entry.root};
  for (uint64_t i = 0; i < 1ull << root.depth(); ++i) {
    const auto offset = at<uint64_t>(region, root.offset() + 8 * i);
    const auto group = at<Group>(region, offset);
    if (group.gap.key_hash != i || group.gap.length >= kDepthMax) continue;
    uint32_t entries = 0;
    uint32_t longest = 0;
    for (Bucket bucket : group.buckets) {
      for (uint32_t links = 0; links < kChainMax; ++links) {
        for (const uint64_t each : bucket.entries) entries += each == 0 ? 0 : 1;
        if (bucket.next == 0) break;
        longest = std::max(longest, links + 1);
        bucket = at<Bucket>(region, bucket.next);
      }
    }
    if (longest < kLinksWhenFull || entries < GroupSplitter::kSplitEntriesMin) continue;
    return "group " + std::to_string(i) + " of table " + std::to_string(table) + " has " +
           std::to_string(entries) + " entries, and has not been split";
  }
  return "";
}

}  // namespace rdmacc
