// What deletes and updates leave behind, taken out under the row's lock: a tombstone out of its
// group, under both locks, as any transaction would that unlinks a row (tombstones.h says when it
// may), and the block of old versions that no transaction reads any more.
#include <algorithm>

#include "engine/storage/layout/lease_word.h"
#include "engine/storage/layout/sundial_word.h"
#include "engine/storage/owner/hash_index_owner.h"
#include "engine/storage/owner/slot_blocks.h"

namespace rdmacc {

// The place of the slot's entry in the group; 0 if there is none.
uint64_t HashIndexOwner::entry_place(uint64_t group, uint64_t slot) const {
  const uint64_t hash = region_.load(slot);
  BucketChain buckets;
  if (!walk_.chain(group, home_bucket_of(hash), &buckets)) return 0;
  const ChainEntries entries = walk_.entries(buckets);
  const auto found = std::find(entries.begin(), entries.end(), make_entry(hash, slot));
  if (found == entries.end()) return 0;
  const auto at = static_cast<size_t>(found - entries.begin());
  return buckets[at / kEntriesPerBucket] + 8 * (at % kEntriesPerBucket);
}

bool HashIndexOwner::unlink_tombstone(uint64_t slot, uint64_t wts, uint64_t rts) {
  if (!idle()) return false;
  busy_ = true;
  const bool done = unlink_locked(slot, wts, rts);
  busy_ = false;
  return done;
}

bool HashIndexOwner::unlink_locked(uint64_t slot, uint64_t wts, uint64_t rts) {
  CHECK(busy_);
  const DirectoryEntry* table = directory_.live(region_.table_of(slot));
  if (table == nullptr) return true;
  const IndexRoot root{table->root};
  const uint64_t group = walk_.group_at(root, group_bits_of(region_.load(slot), root.depth()));
  if (group == 0) return true;
  OwnerWriter& verbs = splitter_.verbs();
  if (region_.lock_of(group) != 0 || region_.lock_of(slot) != 0 || !verbs.prepare().ok()) {
    return false;
  }
  const uint64_t oldest = cleaning_lock(worker_.id());
  if (!splitter_.lock(group, oldest)) return false;
  StructureSpan span(observer(), StructureChange::kUnlink, table->id);
  const bool both = splitter_.lock(slot, oldest);
  const Header gap = region_.header(group), tuple = region_.header(slot);
  const uint64_t place = entry_place(group, slot);
  const bool read_since = both && tuple.rts != rts;
  const bool unlink =
      both && !read_since && place != 0 && tuple.wts == wts && (tuple.flags & kFlagDeleted) != 0;
  // No reader of the tombstone may be passed by an older insert, in any protocol's time.
  uint64_t lease = splitter_.lease_end(gap.sundial);
  if (unlink) {
    lease = std::max(lease, splitter_.lease_end(tuple.sundial)) + 1;
    // As a lease it is one that many may share: those of either header.
    const uint64_t last_read = shared_lease(std::max(gap.rts, tuple.rts));
    // Its wts stays: nothing that a transaction may have read has changed. The locked word keeps
    // the lease's end for the process that opens the node again.
    verbs.store(group + kOffsetOfRts, last_read);
    verbs.store(group + kOffsetOfSundial, sundial_locked_word(lease, worker_.id()));
    verbs.store(place, 0);
    if (!verbs.flush().ok()) return false;  // the node itself is at its end
    retire_slot(slot);
    span.happened();
  }
  if (both) splitter_.unlock(slot, unlink ? lease : splitter_.lease_end(tuple.sundial), verbs);
  splitter_.unlock(group, lease, verbs);
  return verbs.flush().ok() && both && !read_since;
}

bool HashIndexOwner::drop_versions(uint64_t slot, uint64_t block, uint64_t wts) {
  if (!idle()) return false;
  busy_ = true;
  const bool done = drop_versions_locked(slot, block, wts);
  busy_ = false;
  return done;
}

bool HashIndexOwner::drop_versions_locked(uint64_t slot, uint64_t block, uint64_t wts) {
  CHECK(busy_);
  OwnerWriter& verbs = splitter_.verbs();
  if (locked(slot) || !verbs.prepare().ok()) return false;
  if (!splitter_.lock(slot, cleaning_lock(worker_.id()))) return false;
  const Header header = region_.header(slot);
  StructureSpan span(observer(), StructureChange::kForget, header.table);
  const DirectoryEntry* table =
      arena_.in_use(PageKind::kSlot, slot) ? directory_.live(header.table) : nullptr;
  std::vector<uint64_t> blocks;
  if (table != nullptr && table->history > 0 && header.wts == wts) {
    const uint64_t reference = slot + versions_reference_place(table->record_size);
    if (region_.load(reference) == block) {
      for_each_block_of_versions(region_, block, table->record_size, table->history,
                                 [&](uint64_t each) { blocks.push_back(each); });
      std::erase_if(blocks,
                    [&](uint64_t each) { return !arena_.in_use(PageKind::kOverflow, each); });
      // A block without owner that no row names is free when the node is opened again, should it
      // die before the next step.
      for (const uint64_t each : blocks) region_.store(each, 0);
      verbs.store(reference, kOlderVersionsLost);
    }
  }
  splitter_.unlock(slot, splitter_.lease_end(header.sundial), verbs);
  if (!verbs.flush().ok()) return false;  // the node itself is at its end
  for (const uint64_t each : blocks) arena_.retire(each);
  if (blocks.empty()) return false;
  span.happened();
  return true;
}

}  // namespace rdmacc
