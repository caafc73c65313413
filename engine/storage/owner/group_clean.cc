#include <algorithm>
#include <unordered_set>

#include "engine/storage/layout/sundial_word.h"
#include "engine/storage/owner/group_split.h"

// The second half of a split: taking what moved out of the group, and doing so again, for groups
// that a process which died had locked.

namespace rdmacc {

bool GroupSplitter::belongs(uint64_t group, uint32_t depth, uint64_t entry) const {
  const uint64_t slot = entry_offset(entry);
  if (entry == 0) return false;
  if (!arena_.is_unit(PageKind::kSlot, slot)) return true;  // there is nothing to judge by
  return group_bits_of(region_.load(slot), depth) == region_.load(group);
}

void GroupSplitter::clean(uint64_t group, OwnerWriter& writer, const KeptEntries& kept,
                          std::vector<uint64_t>* cut) const {
  for (uint32_t bucket = 0; bucket < kBucketsPerGroup; ++bucket) {
    clean_chain(group, bucket, writer, kept[bucket], cut);
  }
}

// As they stand, with zeros for those that have moved, or stand there a second time: that is left
// by a process that died in the midst of this, and is gone once the node is open.
GroupSplitter::KeptEntries GroupSplitter::kept_of_opened(uint64_t group) const {
  const uint32_t depth = walk_.depth_of(group);
  KeptEntries all;
  BucketChain buckets;
  for (uint32_t bucket = 0; bucket < kBucketsPerGroup; ++bucket) {
    if (!walk_.chain(group, bucket, &buckets)) continue;
    ChainEntries& kept = all[bucket];
    kept = walk_.entries(buckets);
    std::unordered_set<uint64_t> first;
    for (size_t i = 0; i < kept.size(); ++i) {
      walk_.prefetch_slot_ahead(kept, i);
      if (!belongs(group, depth, kept[i]) || !first.insert(kept[i]).second) kept[i] = 0;
    }
  }
  return all;
}

// Entries that stay are never overwritten before they stand elsewhere: first those from behind
// fill holes in front, then their old places are cleared, then empty buckets are cut off. Until
// then an entry may be there twice; it is never missing.
void GroupSplitter::clean_chain(uint64_t group, uint32_t bucket, OwnerWriter& writer,
                                const ChainEntries& kept, std::vector<uint64_t>* cut) const {
  CHECK(cut != nullptr);
  BucketChain buckets;
  if (!walk_.chain(group, bucket, &buckets)) return;
  const ChainEntries old = walk_.entries(buckets);
  // Whatever peers have done to buckets since: a chain of another length is left as it is.
  if (kept.size() != old.size()) return;
  const auto stay = static_cast<size_t>(
      std::count_if(kept.begin(), kept.end(), [](uint64_t entry) { return entry != 0; }));
  const size_t buckets_left =
      std::max<size_t>(1, (stay + kEntriesPerBucket - 1) / kEntriesPerBucket);
  ChainEntries packed = kept;
  size_t behind = buckets_left * kEntriesPerBucket;
  std::fill(packed.begin() + static_cast<ptrdiff_t>(behind), packed.end(), 0);
  for (size_t i = 0; i < buckets_left * kEntriesPerBucket; ++i) {
    if (kept[i] != 0) continue;
    while (behind < kept.size() && kept[behind] == 0) ++behind;
    if (behind < kept.size()) packed[i] = kept[behind++];
  }
  for (size_t i = 0; i < buckets.size(); ++i) {
    const size_t first = i * kEntriesPerBucket;
    if (std::equal(&old[first], &old[first] + kEntriesPerBucket, &packed[first])) continue;
    writer.store_words(buckets[i], &packed[first], kEntriesPerBucket);
  }
  if (buckets_left == buckets.size()) return;
  writer.store(buckets[buckets_left - 1] + offsetof(Bucket, next), 0);
  cut->insert(cut->end(), buckets.begin() + static_cast<ptrdiff_t>(buckets_left), buckets.end());
}

void GroupSplitter::break_own_lock(uint64_t header) {
  const uint64_t sundial = region_.load(header + offsetof(Header, sundial));
  if (sundial_locked(sundial) && own_worker(sundial & kSundialDeltaMax)) {
    region_.store(header + offsetof(Header, sundial),
                  sundial_unlocked_word(lease_end(sundial) + 1, 0));
  }
  if (own_lock(region_.lock_of(header))) region_.store(header + kOffsetOfLock, 0);
}

Status GroupSplitter::repair(TableId id) {
  CHECK(directory_.live(id) != nullptr);
  const IndexRoot root{directory_.live(id)->root};
  if (!walk_.root_valid(root)) {
    return Status(Code::kCorrupt, "index root of table " + std::to_string(id));
  }
  struct Locked {
    uint32_t depth;
    uint64_t group;
  };
  std::vector<Locked> locked;
  for (uint64_t i = 0; i < 1ull << root.depth(); ++i) {
    const uint64_t group = walk_.group_first_at(root, i);
    if (group == 0 || !own_lock(region_.lock_of(group))) continue;
    locked.push_back({static_cast<uint32_t>(region_.load(group + kOffsetOfLength)), group});
  }
  // A group before its sibling, which is deeper as long as the group's depth is the old one.
  std::sort(locked.begin(), locked.end(),
            [](const Locked& a, const Locked& b) { return a.depth < b.depth; });
  OwnerWriter stores(region_);
  for (const Locked& each : locked) {
    uint64_t sibling = 0;
    for (uint64_t i = region_.load(each.group); i < 1ull << root.depth(); i += 1ull << each.depth) {
      const uint64_t named = walk_.group_at(root, i);
      if (named != each.group) sibling = named;
    }
    if (sibling != 0 && own_lock(region_.lock_of(sibling))) {
      RDMACC_RETURN_IF_ERROR(finish(halves_of(id, each.group, sibling), stores, nullptr));
    } else if (own_lock(region_.lock_of(each.group))) {
      std::vector<uint64_t> cut;  // unmarked, so the arena will find them
      clean(each.group, stores, kept_of_opened(each.group), &cut);
      break_own_lock(each.group);
    }
  }
  return Status();
}

}  // namespace rdmacc
