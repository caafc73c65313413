// The owner takes a tombstone out of its group, under both locks, as any transaction would that
// unlinks a row: engine/storage/owner/tombstones.h says when it may.
#include <algorithm>

#include "engine/storage/layout/sundial_word.h"
#include "engine/storage/owner/hash_index_owner.h"

namespace rdmacc {

// The place of the slot's entry in the group; 0 if there is none.
uint64_t HashIndexOwner::entry_place(uint64_t group, uint64_t slot) const {
  const uint64_t hash = region_.load(slot);
  std::vector<uint64_t> buckets;
  if (!walk_.chain(group, home_bucket_of(hash), &buckets)) return 0;
  const std::vector<uint64_t> entries = walk_.entries(buckets);
  const auto found = std::find(entries.begin(), entries.end(), make_entry(hash, slot));
  if (found == entries.end()) return 0;
  const auto at = static_cast<size_t>(found - entries.begin());
  return buckets[at / kEntriesPerBucket] + 8 * (at % kEntriesPerBucket);
}

bool HashIndexOwner::unlink_tombstone(uint64_t slot, uint64_t wts, uint64_t rts) {
  if (index_busy_) return false;
  index_busy_ = true;
  const bool done = unlink_locked(slot, wts, rts);
  index_busy_ = false;
  return done;
}

bool HashIndexOwner::unlink_locked(uint64_t slot, uint64_t wts, uint64_t rts) {
  CHECK(index_busy_);
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
    const uint64_t last_read = std::max(gap.rts, tuple.rts);
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

}  // namespace rdmacc
