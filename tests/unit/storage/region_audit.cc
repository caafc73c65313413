#include "region_audit.h"

namespace rdmacc {

namespace {
template <typename T>
const T& at(const std::byte* region, uint64_t offset) {
  return *reinterpret_cast<const T*>(region + offset);
}
}  // namespace

RegionAudit RegionAudit::of(const std::byte* region, const RegionLayout& layout) {
  RegionAudit audit;
  for (uint32_t i = 0; i < kDirectoryEntries; ++i) {
    const auto& entry = at<DirectoryEntry>(region, layout.directory + i * sizeof(DirectoryEntry));
    if (entry.state == TableState::kLive) audit.table(region, entry);
  }
  return audit;
}

bool RegionAudit::add(uint64_t offset, uint64_t bytes) {
  const auto next = reachable.lower_bound(offset);
  const bool clash =
      (next != reachable.end() && next->first < offset + bytes) ||
      (next != reachable.begin() && std::prev(next)->first + std::prev(next)->second > offset);
  if (clash) {
    fault = "overlap of " + std::to_string(bytes) + " bytes at " + std::to_string(offset);
    return false;
  }
  reachable.emplace(offset, bytes);
  return true;
}

void RegionAudit::table(const std::byte* region, const DirectoryEntry& entry) {
  const IndexRoot root{entry.root};
  root_depth_max = std::max(root_depth_max, root.depth());
  add(root.offset(), 8ull << root.depth());
  std::set<uint64_t> seen;
  for (uint64_t i = 0; i < 1ull << root.depth(); ++i) {
    const uint64_t offset = at<uint64_t>(region, root.offset() + 8 * i);
    const Header& gap = at<Header>(region, offset);
    if (group_bits_of(i, gap.length) != gap.key_hash || gap.length > root.depth()) {
      fault = "root slot " + std::to_string(i) + " names a group of other bits";
    }
    if (seen.insert(offset).second) group(region, entry, offset);
  }
}

void RegionAudit::group(const std::byte* region, const DirectoryEntry& entry, uint64_t offset) {
  const Header& gap = at<Header>(region, offset);
  ++groups;
  add(offset, sizeof(Group));
  if (gap.lock != 0 || (gap.sundial >> 63) != 0) ++locked_gaps;
  if (gap.table != entry.id || gap.flags != kFlagGap) fault = "group of another table";
  for (uint32_t bucket = 0; bucket < kBucketsPerGroup; ++bucket) {
    uint64_t here = bucket_offset(offset, bucket);
    for (bool home = true; here != 0; home = false) {
      if (!home) {
        ++chained_buckets;
        if (!add(here, sizeof(Bucket))) return;
      }
      for (const uint64_t word : at<Bucket>(region, here).entries) {
        if (word == 0) continue;
        const Header& slot = at<Header>(region, entry_offset(word));
        ++entries;
        if (!slots.insert(entry_offset(word)).second) fault = "slot linked twice";
        add(entry_offset(word), slot_bytes(entry.record_size, entry.history));
        if (slot.table != entry.id || home_bucket_of(slot.key_hash) != bucket ||
            group_bits_of(slot.key_hash, gap.length) != gap.key_hash) {
          fault = "entry in the wrong place";
        }
      }
      here = at<Bucket>(region, here).next;
    }
  }
}

}  // namespace rdmacc
