#include "engine/storage/owner/hash_index_owner.h"

#include <algorithm>

#include "engine/storage/layout/sundial_word.h"
#include "engine/storage/owner/slot_blocks.h"

namespace rdmacc {

namespace {
constexpr uint64_t kGroupsPerYield = 64;
constexpr uint64_t kBusyRetryUs = 20;
}  // namespace

HashIndexOwner::HashIndexOwner(Worker& worker, const Topology& topology, const OwnedRegion& region,
                               Arena& arena, Directory& directory)
    : worker_(worker),
      region_(region),
      arena_(arena),
      directory_(directory),
      walk_(region, arena),
      splitter_(worker, topology, region, arena, directory) {}

Result<IndexRoot> HashIndexOwner::build(TableId id) {
  constexpr uint64_t kGroups = 1ull << kInitialDepth;
  const Result<uint64_t> array = arena_.allocate(PageKind::kArray, kGroups * 8);
  if (!array.ok()) return array.status();
  for (uint64_t bits = 0; bits < kGroups; ++bits) {
    const Result<uint64_t> group = arena_.allocate(PageKind::kGroup, sizeof(Group));
    if (!group.ok()) {
      for (uint64_t i = 0; i < bits; ++i) CHECK(arena_.retire(region_.load(array.value() + 8 * i)));
      CHECK(arena_.retire(array.value()));
      return group.status();
    }
    // Stamps and lock stay as the last owner left them; a stale locker unlocks by itself.
    region_.bump_incarnation(group.value(), id);
    region_.store(group.value(), bits);
    region_.store(group.value() + kOffsetOfLength, pack_words(kInitialDepth, kFlagGap));
    region_.store(array.value() + 8 * bits, group.value());
  }
  return IndexRoot::make(kInitialDepth, array.value());
}

Status HashIndexOwner::extend(uint64_t group, uint32_t bucket, uint32_t entries, uint64_t ctts) {
  if (!arena_.is_unit(PageKind::kGroup, group) || bucket >= kBucketsPerGroup) {
    return Status(Code::kInvalidArgument, "extend: no such bucket");
  }
  // A group that a look-up has led to goes with its table alone.
  if (!arena_.in_use(PageKind::kGroup, group)) return Status(Code::kNotFound, "table was dropped");
  if (entries > kExtendEntriesMax) {
    return Status(Code::kNoSpace, "one transaction inserts too many keys into one bucket");
  }
  if (ctts == 0 || region_.lock_of(group) != ctts) {
    return Status(Code::kInvalidArgument, "extend: the group is not locked by the caller");
  }
  const TableId id = region_.table_of(group);
  if (directory_.live(id) == nullptr) return Status(Code::kNotFound, "table was dropped");
  BucketChain buckets;
  if (!walk_.chain(group, bucket, &buckets)) return Status(Code::kCorrupt, "broken chain");
  uint32_t empty = 0;
  for (const uint64_t entry : walk_.entries(buckets)) empty += entry == 0 ? 1 : 0;
  if (empty >= entries) return Status();
  const uint32_t missing = (entries - empty + kEntriesPerBucket - 1) / kEntriesPerBucket;
  const Status chained = chain_behind(buckets.back(), missing);
  note_change(observer(), chained.ok() ? StructureChange::kChain : StructureChange::kFull, id);
  RDMACC_RETURN_IF_ERROR(chained);
  queue_.push_back(group);
  return Status();
}

void HashIndexOwner::split_soon(uint64_t group) {
  if (!arena_.is_unit(PageKind::kGroup, group) || !arena_.in_use(PageKind::kGroup, group)) return;
  const TableId id = region_.table_of(group);
  if (directory_.live(id) == nullptr) return;
  queue_.push_back(group);
  // A split under way would cut off what it has not seen of the chain.
  const bool splits = own_lock(region_.lock_of(group));
  if (queue_.size() > kQueuedWithoutSpares && !splits) chain_spares(id, group);
}

void HashIndexOwner::find_place(TableId id, uint64_t hash, Place& place) const {
  const DirectoryEntry* table = directory_.live(id);
  CHECK(table != nullptr);
  place = Place{};
  const IndexRoot root{table->root};
  place.group = walk_.group_at(root, group_bits_of(hash, root.depth()));
  if (place.group == 0) return;
  place.locked = locked(place.group);
  if (place.locked) return;
  uint64_t bucket = bucket_offset(place.group, home_bucket_of(hash));
  for (uint32_t i = 0; i < kChainMax && bucket != 0; ++i) {
    for (uint32_t k = 0; k < kEntriesPerBucket; ++k) {
      const uint64_t entry = region_.load(bucket + 8 * k);
      if (entry == 0 && place.empty++ == 0) place.entry = bucket + 8 * k;
      if (entry != 0 && entry_tag(entry) == tag_of(hash)) {
        place.same_tag.push_back(entry_offset(entry));
      }
    }
    bucket = region_.load(bucket + offsetof(Bucket, next));
    if (bucket != 0 && !arena_.in_use(PageKind::kBucket, bucket)) place.group = bucket = 0;
  }
}

Status HashIndexOwner::extend(TableId id, uint64_t hash, Place& place) {
  CHECK(place.group != 0 && !place.locked && place.empty == 0);
  BucketChain buckets;
  if (!walk_.chain(place.group, home_bucket_of(hash), &buckets)) {
    return Status(Code::kCorrupt, "broken chain");
  }
  const Status chained = chain_behind(buckets.back(), 1);
  note_change(observer(), chained.ok() ? StructureChange::kChain : StructureChange::kFull, id);
  RDMACC_RETURN_IF_ERROR(chained);
  place.entry = region_.load(buckets.back() + offsetof(Bucket, next));
  place.empty = kEntriesPerBucket;
  queue_.push_back(place.group);
  return Status();
}

void HashIndexOwner::expect_rows(TableId id, uint64_t rows) {
  const DirectoryEntry* table = directory_.live(id);
  if (table == nullptr) return;
  const uint64_t groups_max = region_.bytes() / kExpectedShare / sizeof(Group);
  uint32_t depth = kInitialDepth;
  while (depth < kDepthMax && rows >> depth > kEntriesExpected && 2ull << depth <= groups_max) {
    ++depth;
  }
  if (depth <= depth_wanted(id)) return;
  depths_wanted_[id] = depth;
  const IndexRoot root{table->root};
  for (uint64_t i = 0; i < 1ull << root.depth(); ++i) {
    const uint64_t group = walk_.group_first_at(root, i);
    if (group != 0 && walk_.depth_of(group) < depth) queue_.push_back(group);
  }
}

uint32_t HashIndexOwner::depth_wanted(TableId id) const {
  const auto found = depths_wanted_.find(id);
  return found == depths_wanted_.end() ? kInitialDepth : found->second;
}

// The new buckets are linked among themselves first, so that one store makes all reachable.
Status HashIndexOwner::chain_behind(uint64_t tail, uint32_t buckets) {
  std::vector<uint64_t> fresh;
  for (uint32_t i = 0; i < buckets; ++i) {
    const Result<uint64_t> bucket = arena_.allocate(PageKind::kBucket, sizeof(Bucket));
    if (!bucket.ok()) {
      for (const uint64_t each : fresh) CHECK(arena_.retire(each));
      return bucket.status();
    }
    if (!fresh.empty()) region_.store(fresh.back() + offsetof(Bucket, next), bucket.value());
    fresh.push_back(bucket.value());
  }
  if (!fresh.empty()) region_.store(tail + offsetof(Bucket, next), fresh.front());
  return Status();
}

// Behind each chain that is full, in a group that is not split for it: so the next insert need not
// ask for a bucket with its locks held. An empty bucket changes nothing for those that read or lock
// the group, and neither this nor an extension yields; a split of the group is not under way.
void HashIndexOwner::chain_spares(TableId id, uint64_t group) {
  if (directory_.live(id) == nullptr || !arena_.in_use(PageKind::kGroup, group)) return;
  if (region_.table_of(group) != id) return;
  CHECK(!own_lock(region_.lock_of(group)));
  BucketChain buckets;
  for (uint32_t bucket = 0; bucket < kBucketsPerGroup; ++bucket) {
    if (!walk_.chain(group, bucket, &buckets)) return;
    const ChainEntries entries = walk_.entries(buckets);
    if (std::find(entries.begin(), entries.end(), 0u) != entries.end()) continue;
    if (!chain_behind(buckets.back(), 1).ok()) return;  // an insert asks, and is told
    note_change(observer(), StructureChange::kChain, id);
  }
}

bool HashIndexOwner::linked(uint64_t slot) const {
  const DirectoryEntry* table = directory_.live(region_.table_of(slot));
  return table != nullptr && walk_.linked(IndexRoot{table->root}, slot);
}

void HashIndexOwner::prefetch_linked(uint64_t slot) const {
  const DirectoryEntry* table = directory_.live(region_.table_of(slot));
  if (table != nullptr) walk_.prefetch_bucket_of(IndexRoot{table->root}, slot);
}

bool HashIndexOwner::locked(uint64_t header) const {
  return region_.lock_of(header) != 0 ||
         sundial_locked(region_.load(header + offsetof(Header, sundial)));
}

bool HashIndexOwner::retire_slot(uint64_t slot) {
  if (!arena_.in_use(PageKind::kSlot, slot)) return false;
  const DirectoryEntry* table = directory_.present(region_.table_of(slot));
  if (table != nullptr) retire_blocks_of(slot, *table);
  directory_.add_rows(region_.table_of(slot), -1);
  region_.store(slot + kOffsetOfLength, 0);
  region_.bump_incarnation(slot, kNoTable);
  return arena_.retire(slot);
}

void HashIndexOwner::begin_drop() {
  while (busy_) worker_.scheduler().sleep_for(kBusyRetryUs);
  ++drops_;
}

void HashIndexOwner::retire_all(TableId id) {
  CHECK(drops_ > 0 && !busy_);
  while (retiring_) worker_.scheduler().sleep_for(kBusyRetryUs);
  retiring_ = true;
  StructureSpan span(observer(), StructureChange::kDrop, id);
  depths_wanted_.erase(id);
  const DirectoryEntry* table = directory_.present(id);
  CHECK(table != nullptr && table->state == TableState::kDropped);
  const IndexRoot root{table->root};
  if (walk_.root_valid(root)) {
    for (uint64_t i = 0; i < 1ull << root.depth(); ++i) {
      const uint64_t group = walk_.group_first_at(root, i);
      if (group != 0) retire_group(id, group);
      if (i % kGroupsPerYield == kGroupsPerYield - 1) worker_.scheduler().yield();
    }
    arena_.retire(root.offset());
  }
  span.happened();
  retiring_ = false;
  --drops_;
}

void HashIndexOwner::retire_group(TableId id, uint64_t group) {
  if (region_.table_of(group) != id) return;
  walk_.for_each_entry(group, [&](uint64_t entry) {
    const uint64_t slot = entry_offset(entry);
    if (!arena_.in_use(PageKind::kSlot, slot) || region_.table_of(slot) != id) return;
    // What a transaction under way has locked it may still give a block: DroppedTables takes it.
    if (!locked(slot)) retire_slot(slot);
  });
  BucketChain buckets;
  for (uint32_t bucket = 0; bucket < kBucketsPerGroup; ++bucket) {
    walk_.chain(group, bucket, &buckets);
    for (size_t i = 1; i < buckets.size(); ++i) arena_.retire(buckets[i]);
  }
  region_.bump_incarnation(group, kNoTable);
  arena_.retire(group);
}

void HashIndexOwner::retire_blocks_of(uint64_t slot, const DirectoryEntry& table) {
  for_each_block_of(region_, slot, table.record_size, table.history, [&](uint64_t block) {
    if (arena_.in_use(PageKind::kOverflow, block)) arena_.retire(block);
  });
}

// Memory comes back without a request that names the group.
void HashIndexOwner::try_later(uint64_t group) {
  if (failed_.empty()) retry_at_us_ = worker_.endpoint().now_us() + retry_after_us_;
  failed_.insert(group);
}

void HashIndexOwner::enqueue_failed() {
  if (!retry_due()) return;
  for (const uint64_t group : failed_) queue_.push_back(group);
  failed_.clear();
  retry_after_us_ = std::min(2 * retry_after_us_, kRetryUsMax);
}

bool HashIndexOwner::wait_until_idle(uint64_t deadline_us) {
  while (!idle() && worker_.endpoint().now_us() < deadline_us) {
    worker_.scheduler().sleep_for(kBusyRetryUs);
  }
  return idle();
}

void HashIndexOwner::split_queued() {
  if (!idle()) return;
  busy_ = true;
  enqueue_failed();
  const size_t tries = std::min<size_t>(queue_.size() * 3, kTriesPerRound);
  for (size_t i = 0; i < tries && !queue_.empty(); ++i) {
    try_split(queue_.pop_front());
    // Where stores to the own memory are made in place a split never yields, and requests may wait.
    worker_.scheduler().yield();
  }
  busy_ = false;
}

// A group that was queued may have gone, and be another table's by now.
void HashIndexOwner::try_split(uint64_t group) {
  if (!arena_.in_use(PageKind::kGroup, group)) return;
  const TableId id = region_.table_of(group);
  uint64_t sibling = 0;
  switch (splitter_.split(id, group, depth_wanted(id), &sibling)) {
    case GroupSplitter::Outcome::kSplit:
      ++splits_;
      retry_after_us_ = kRetryUsMin;
      // Halves come next, so that few groups are queued at a time.
      queue_.push_front(group);
      queue_.push_front(sibling);
      break;
    case GroupSplitter::Outcome::kBusy:
      queue_.push_back(group);
      break;
    case GroupSplitter::Outcome::kFailed:
      depths_wanted_.erase(id);
      try_later(group);
      break;
    case GroupSplitter::Outcome::kNotNeeded:
      chain_spares(id, group);
      break;
  }
}

Status HashIndexOwner::mark(TableId id, uint64_t* slots) {
  const DirectoryEntry* table = directory_.live(id);
  CHECK(table != nullptr);
  const IndexRoot root{table->root};
  *slots = 0;
  const Status corrupt(Code::kCorrupt, "index of table " + std::to_string(id));
  if (!walk_.root_valid(root)) return corrupt;
  for (const PageKind kind : {PageKind::kArray, PageKind::kRun}) {
    if (arena_.is_unit(kind, root.offset()) && !arena_.mark_used(kind, root.offset())) {
      return corrupt;
    }
  }
  for (uint64_t i = 0; i < 1ull << root.depth(); ++i) {
    if (walk_.group_at(root, i) == 0) return corrupt;
    const uint64_t group = walk_.group_first_at(root, i);
    if (group != 0) RDMACC_RETURN_IF_ERROR(mark_group(*table, group, slots));
  }
  return Status();
}

Status HashIndexOwner::mark_group(const DirectoryEntry& table, uint64_t group, uint64_t* slots) {
  const Status corrupt(Code::kCorrupt, "index of table " + std::to_string(table.id) +
                                           ", group at " + std::to_string(group));
  if (region_.table_of(group) != table.id) return corrupt;
  if (!arena_.mark_used(PageKind::kGroup, group)) return corrupt;
  bool sound = true;
  sound &= walk_.for_each_entry(group, [&](uint64_t entry) {
    const uint64_t slot = entry_offset(entry);
    if (!arena_.mark_used(PageKind::kSlot, slot)) {
      sound = false;
      return;
    }
    mark_blocks_of(slot, table);
    ++*slots;
  });
  BucketChain buckets;
  for (uint32_t bucket = 0; sound && bucket < kBucketsPerGroup; ++bucket) {
    sound = walk_.chain(group, bucket, &buckets);
    for (size_t i = 1; sound && i < buckets.size(); ++i) {
      sound = arena_.mark_used(PageKind::kBucket, buckets[i]);
    }
    // The process before this one may have ended before it could split the group.
    if (buckets.size() > 1) queue_.push_back(group);
  }
  return sound ? Status() : corrupt;
}

void HashIndexOwner::mark_blocks_of(uint64_t slot, const DirectoryEntry& table) {
  for_each_block_of(region_, slot, table.record_size, table.history,
                    [&](uint64_t block) { arena_.mark_used(PageKind::kOverflow, block); });
}

}  // namespace rdmacc
