#include "engine/storage/owner/orphaned_allocations.h"

#include <algorithm>

#include "engine/storage/owner/slot_blocks.h"

namespace rdmacc {

void OrphanedAllocations::add(OrphanedAllocation orphan) {
  CHECK(orphan.ctts != 0);  // what no transaction has is free
  CHECK(orphan.kind == PageKind::kSlot || orphan.kind == PageKind::kOverflow);
  if (orphan.incarnation == 0) orphan.incarnation = incarnation_of_holder(orphan.ctts);
  orphaned_allocations_.push_back(orphan);
}

// What the deterministic order left has no allocator from the start: its own restart takes what it
// still needs before the first sweep.
uint32_t OrphanedAllocations::incarnation_of_holder(uint64_t ctts) const {
  const auto worker = static_cast<WorkerId>(ctts);
  return worker == kOrderWorker ? 0 : worker_.endpoint().incarnation_of(worker);
}

uint64_t OrphanedAllocations::holder_of(const OwnedRegion& region, uint64_t slot) {
  const Header header = region.header(slot);
  if (locked_exclusively(header.lock)) return header.lock;
  return (header.flags & kFlagLive) != 0 ? header.wts : 0;
}

bool OrphanedAllocations::pending() const {
  return !orphaned_allocations_.empty() && worker_.endpoint().now_us() >= next_look_us_;
}

bool OrphanedAllocations::lists(uint64_t offset) const {
  return std::any_of(orphaned_allocations_.begin(), orphaned_allocations_.end(),
                     [offset](const OrphanedAllocation& each) { return each.offset == offset; });
}

bool OrphanedAllocations::as_found(const OrphanedAllocation& orphan) const {
  if (!arena_.in_use(orphan.kind, orphan.offset)) return false;
  if (orphan.kind == PageKind::kOverflow) return region_.load(orphan.offset) == orphan.ctts;
  if (left_by_table(orphan)) return true;
  return holder_of(region_, orphan.offset) == orphan.ctts && !index_.linked(orphan.offset);
}

// A row of a table that is dropped: its transaction, or resolution, has unlocked it since.
bool OrphanedAllocations::left_by_table(const OrphanedAllocation& orphan) const {
  return orphan.kind == PageKind::kSlot && !index_.locked(orphan.offset) &&
         directory_.live(region_.table_of(orphan.offset)) == nullptr;
}

void OrphanedAllocations::sweep() {
  next_look_us_ = worker_.endpoint().now_us() + kLookEveryUs;
  reclaimer_.advance();
  if (reclaimer_.epoch() == 0) return;
  std::vector<uint64_t> blocks;
  std::erase_if(orphaned_allocations_, [&](OrphanedAllocation& each) {
    if (!as_found(each)) return true;
    if (!each.ownerless.begun()) {
      const uint32_t now = incarnation_of_holder(each.ctts);
      const bool gone = now == 0 || now != each.incarnation;
      if (gone || left_by_table(each)) each.ownerless.begin(reclaimer_);
      return false;
    }
    if (!each.ownerless.over(reclaimer_)) return false;
    if (each.kind == PageKind::kOverflow) {
      blocks.push_back(each.offset);
    } else {
      index_.retire_slot(each.offset);
      if (region_.lock_of(each.offset) == each.ctts) region_.store(each.offset + kOffsetOfLock, 0);
    }
    return true;
  });
  if (blocks.empty()) return;
  // Resolution may have made a block part of a row since.
  forget_referenced(blocks);
  for (const uint64_t block : blocks) arena_.retire(block);
}

void OrphanedAllocations::forget_referenced(std::vector<uint64_t>& blocks) {
  std::sort(blocks.begin(), blocks.end());
  std::vector<uint64_t> referenced;
  for (uint64_t page = 0; page < arena_.page_count(); ++page) {
    arena_.for_each_unit(page, PageKind::kSlot, [&](uint64_t slot, bool used) {
      const DirectoryEntry* table = used ? directory_.live(region_.table_of(slot)) : nullptr;
      if (table == nullptr) return;
      for_each_block_of(region_, slot, table->record_size, table->history, [&](uint64_t block) {
        if (std::binary_search(blocks.begin(), blocks.end(), block)) referenced.push_back(block);
      });
    });
    worker_.scheduler().yield();
  }
  std::erase_if(blocks, [&](uint64_t block) {
    return std::find(referenced.begin(), referenced.end(), block) != referenced.end();
  });
}

}  // namespace rdmacc
