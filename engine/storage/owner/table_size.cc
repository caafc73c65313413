// What a table occupies at its owner, counted unit by unit, and when it was last used: such counts
// are not kept while rows come and go, since few ever ask.
#include <algorithm>

#include "engine/storage/owner/hash_index_owner.h"
#include "engine/storage/owner/slot_blocks.h"

namespace rdmacc {

namespace {
constexpr uint64_t kGroupsPerYield = 16;

// What was done with a record, or with what is absent from a group.
void add_use(const Header& header, WorkerId asker, TableSize& size) {
  size.latest_stamp = std::max({size.latest_stamp, header.wts, header.rts});
  const bool by_other = worker_of_lock(header.lock) != asker;
  if (locked_exclusively(header.lock) && by_other) ++size.locked;
}
}  // namespace

Result<TableSize> HashIndexOwner::size_of(TableId id, WorkerId asker) {
  wait_until_idle();
  const DirectoryEntry* table = directory_.live(id);
  if (table == nullptr) return Status(Code::kNotFound, "table does not exist");
  const IndexRoot root{table->root};
  if (!walk_.root_valid(root)) {
    return Status(Code::kCorrupt, "index of table " + std::to_string(id));
  }
  CHECK(idle());
  busy_ = true;
  TableSize size;
  size.bytes = arena_.unit_bytes(root.offset());
  for (uint64_t i = 0; i < 1ull << root.depth(); ++i) {
    const uint64_t group = walk_.group_first_at(root, i);
    if (group != 0) add_group(*table, group, asker, size);
    if (i % kGroupsPerYield == kGroupsPerYield - 1) worker_.scheduler().yield();
  }
  busy_ = false;
  return size;
}

void HashIndexOwner::add_group(const DirectoryEntry& table, uint64_t group, WorkerId asker,
                               TableSize& size) const {
  size.bytes += sizeof(Group);
  add_use(region_.header(group), asker, size);
  BucketChain buckets;
  for (uint32_t bucket = 0; bucket < kBucketsPerGroup; ++bucket) {
    walk_.chain(group, bucket, &buckets);
    if (!buckets.empty()) size.bytes += (buckets.size() - 1) * sizeof(Bucket);
  }
  walk_.for_each_entry(group, [&](uint64_t entry) {
    const uint64_t slot = entry_offset(entry);
    if (!arena_.in_use(PageKind::kSlot, slot) || region_.table_of(slot) != table.id) return;
    ++size.rows;
    add_use(region_.header(slot), asker, size);
    size.bytes += arena_.unit_bytes(slot);
    for_each_block_of(region_, slot, table.record_size, table.history, [&](uint64_t block) {
      if (arena_.in_use(PageKind::kOverflow, block)) size.bytes += arena_.unit_bytes(block);
    });
  });
}

}  // namespace rdmacc
