// Old versions that no transaction reads any more: the row's block goes, under the row's lock.
#include "engine/storage/owner/hash_index_owner.h"
#include "engine/storage/owner/slot_blocks.h"

namespace rdmacc {

bool HashIndexOwner::drop_versions(uint64_t slot, uint64_t block, uint64_t wts) {
  if (index_busy_) return false;
  index_busy_ = true;
  const bool done = drop_versions_locked(slot, block, wts);
  index_busy_ = false;
  return done;
}

bool HashIndexOwner::drop_versions_locked(uint64_t slot, uint64_t block, uint64_t wts) {
  CHECK(index_busy_);
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
