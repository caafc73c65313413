#include "engine/storage/owner/storage_node.h"

#include <algorithm>
#include <unordered_map>

#include "engine/storage/layout/sundial_word.h"

namespace rdmacc {
namespace {

// How many pages one answer about locked headers looks through.
constexpr uint64_t kLockedPagesMax = 1024;

}  // namespace

StorageNode::StorageNode(Worker& worker, const Topology& topology)
    : worker_(worker),
      topology_(topology),
      layout_(topology),
      region_(worker.endpoint().local_region(), topology.region_bytes,
              static_cast<NodeId>(worker.id() / topology.threads_per_node)),
      fixed_parts_(worker.endpoint(), layout_, topology.workers_max, region_),
      arena_(worker.endpoint(), layout_, region_),
      directory_(layout_, region_, worker.endpoint()),
      index_(worker, topology, region_, arena_, directory_),
      reclaimer_(worker, topology, arena_),
      orphaned_allocations_(worker, region_, arena_, directory_, index_, reclaimer_),
      tombstones_(worker, region_, arena_, index_, reclaimer_),
      versions_(worker, region_, arena_, directory_, index_, reclaimer_),
      dropped_tables_(worker, region_, arena_, directory_, index_, reclaimer_),
      recycler_(worker, region_, arena_, reclaimer_),
      reserved_slots_(worker, region_, arena_, directory_, index_, orphaned_allocations_),
      started_us_(worker.endpoint().now_us()) {}

Result<std::unique_ptr<StorageService>> StorageService::open(Worker& worker,
                                                             const Topology& topology) {
  CHECK(topology.is_node_worker(worker.id()));
  if (topology.region_bytes < region_bytes_min(topology)) {
    return Status(Code::kInvalidArgument, "node memory of " +
                                              std::to_string(topology.region_bytes) +
                                              " bytes is too small; the minimum is " +
                                              std::to_string(region_bytes_min(topology)));
  }
  auto node = std::make_unique<StorageNode>(worker, topology);
  RDMACC_RETURN_IF_ERROR(node->back_fixed_parts());
  const Status status = node->formatted() ? node->reopen() : node->format();
  if (!status.ok()) return status;
  return std::unique_ptr<StorageService>(std::move(node));
}

bool StorageNode::formatted() const { return region_.load(0) == kRegionMagic; }

Status StorageNode::format() {
  region_.zero(0, layout_.control);
  format_control_area(region_.base(), layout_);
  region_.zero(layout_.directory, kDirectoryEntries * sizeof(DirectoryEntry));
  format_order_area();
  region_.zero(layout_.page_table, layout_.page_count * sizeof(uint64_t));
  Superblock superblock{};
  superblock.version = kRegionVersion;
  superblock.node = region_.node();
  superblock.region_bytes = layout_.region_bytes;
  superblock.generation = worker_.endpoint().random().next() | 1;
  uint64_t words[sizeof(Superblock) / 8];
  std::memcpy(words, &superblock, sizeof(Superblock));
  region_.store_words(0, words, sizeof(Superblock) / 8);
  region_.store(0, kRegionMagic);
  RDMACC_RETURN_IF_ERROR(arena_.open());
  arena_.settle();
  return directory_.open();
}

// A block counts by its first word.
void StorageNode::format_order_area() {
  region_.zero(layout_.order, layout_.order_redo() - layout_.order);
  region_.store(layout_.order_redo(), 0);
  for (NodeId from = 0; from < topology_.nodes; ++from) {
    region_.store(layout_.order_batch(from, 0), 0);
    region_.store(layout_.order_batch(from, 1), 0);
    for (uint64_t i = 0; i < layout_.orders_per_epoch(); ++i) {
      region_.store(layout_.order_forward(from, i), 0);
    }
  }
}

Status StorageNode::reopen() {
  const auto* superblock = reinterpret_cast<const Superblock*>(region_.base());
  if (superblock->version != kRegionVersion || superblock->node != region_.node() ||
      superblock->region_bytes != layout_.region_bytes) {
    return Status(Code::kInvalidArgument, "the region was formatted with another layout");
  }
  reopened_ = true;
  RDMACC_RETURN_IF_ERROR(arena_.open());
  RDMACC_RETURN_IF_ERROR(directory_.open());
  for (const TableId id : directory_.tables(TableState::kLive)) {
    RDMACC_RETURN_IF_ERROR(index_.repair(id));
  }
  return mark_tables();
}

// Coordinators may be at work meanwhile. What is locked is noted before the indexes are walked; a
// slot that is live and linked nowhere is of an insert that has unlocked it and is about to link
// it.
Status StorageNode::mark_tables() {
  CHECK(reopened_ && orphaned_allocations_.count() == 0);
  std::vector<OrphanedAllocation> found;
  note_locked(found);
  std::unordered_map<TableId, uint64_t> rows;
  for (const TableId id : directory_.tables(TableState::kLive)) {
    RDMACC_RETURN_IF_ERROR(index_.mark(id, &rows[id]));
  }
  note_live_unlinked(found);
  for (const OrphanedAllocation& each : found) {
    if (!arena_.mark_used(each.kind, each.offset)) continue;  // some index's
    if (each.kind == PageKind::kSlot) ++rows[region_.table_of(each.offset)];
    if (each.kind != PageKind::kSlot || !reserved_slots_.adopt(each.offset, each.ctts)) {
      orphaned_allocations_.add(each);
    }
  }
  // The sibling of a split that was undone, and groups of a drop that was cut short.
  for (uint64_t page = 0; page < arena_.page_count(); ++page) {
    arena_.for_each_unit(page, PageKind::kGroup, [&](uint64_t group, bool used) {
      if (!used) index_.break_own_lock(group);
    });
  }
  arena_.settle();
  note_rows();
  for (const auto& [id, count] : rows) directory_.set_rows(id, count);
  // All that is reachable from a dropped table alone has just been retired.
  for (const TableId id : directory_.tables(TableState::kDropped)) directory_.set_free(id);
  return Status();
}

// Noted, but for what a thread of this node had locked itself.
void StorageNode::note_locked(std::vector<OrphanedAllocation>& found) {
  for (uint64_t page = 0; page < arena_.page_count(); ++page) {
    arena_.for_each_unit(page, PageKind::kSlot, [&](uint64_t slot, bool) {
      const uint64_t lock = region_.lock_of(slot);
      if (index_.own_lock(lock)) {
        index_.break_own_lock(slot);  // a tombstone that was being unlinked
      } else if (locked_exclusively(lock)) {
        found.push_back({PageKind::kSlot, slot, lock});
      }
    });
    arena_.for_each_unit(page, PageKind::kOverflow, [&](uint64_t block, bool) {
      const uint64_t owner = region_.load(block);
      // What this node's threads had kept in advance has no user any more.
      if (owner == 0 || index_.own_worker(static_cast<WorkerId>(owner))) return;
      found.push_back({PageKind::kOverflow, block, owner});
    });
  }
}

// What maintenance is to look at later.
void StorageNode::note_rows() {
  for (uint64_t page = 0; page < arena_.page_count(); ++page) {
    arena_.for_each_unit(page, PageKind::kSlot, [&](uint64_t slot, bool used) {
      if (!used) return;
      if ((region_.header(slot).flags & kFlagDeleted) != 0) tombstones_.add(slot);
      versions_.note_slot(slot);
    });
  }
}

void StorageNode::note_live_unlinked(std::vector<OrphanedAllocation>& found) const {
  for (uint64_t page = 0; page < arena_.page_count(); ++page) {
    arena_.for_each_unit(page, PageKind::kSlot, [&](uint64_t slot, bool used) {
      if (used || directory_.live(region_.table_of(slot)) == nullptr) return;
      // A tombstone was linked before: the process before this one had just unlinked it.
      const bool deleted = (region_.header(slot).flags & kFlagDeleted) != 0;
      if (deleted && !index_.linked(slot)) return;
      const uint64_t holder = OrphanedAllocations::holder_of(region_, slot);
      if (holder != 0) found.push_back({PageKind::kSlot, slot, holder});
    });
  }
}

bool StorageNode::maintenance_pending() const {
  return index_.split_pending() || index_.retry_due() || reclaimer_.pending() ||
         orphaned_allocations_.pending() || tombstones_.pending() || dropped_tables_.pending() ||
         recycler_.pending() || versions_.pending() || reserved_slots_.pending();
}

StorageNode::Progress StorageNode::progress() const {
  return Progress{.splits = index_.splits(),
                  .epoch = reclaimer_.epoch(),
                  .groups_queued = index_.groups_queued(),
                  .orphaned_allocations = orphaned_allocations_.count(),
                  .tombstones = tombstones_.count(),
                  .dropped_tables = dropped_tables_.count(),
                  .deferred_frees = deferred_frees_.size(),
                  .withdrawn_pages = arena_.withdrawn_pages(),
                  .version_blocks = versions_.count(),
                  .reserved_slots = reserved_slots_.count()};
}

bool StorageNode::maintain() {
  CHECK(worker_.scheduler().in_coroutine());
  const Progress before = progress();
  index_.split_queued();
  if (reclaimer_.pending()) reclaimer_.advance();
  if (orphaned_allocations_.pending()) orphaned_allocations_.sweep();
  if (tombstones_.pending()) tombstones_.collect();
  if (reserved_slots_.pending()) reserved_slots_.sweep();
  if (dropped_tables_.pending()) dropped_tables_.sweep();
  if (versions_.pending()) versions_.sweep();
  free_deferred();
  if (recycler_.pending()) recycler_.advance();
  return progress() != before;
}

NodeStatistics StorageNode::statistics() {
  NodeStatistics statistics{};
  statistics.region_bytes = layout_.region_bytes;
  statistics.backed_bytes = fixed_parts_.backed_bytes() + arena_.backed_bytes();
  // What workers keep in advance is no row's yet. To count it yields, so that it may have changed.
  const uint64_t in_advance = versions_.reserved_bytes();
  statistics.used_bytes = arena_.used_bytes() - std::min(arena_.used_bytes(), in_advance);
  statistics.tables = directory_.live_count();
  const uint64_t unused = reserved_slots_.unused();
  statistics.rows = directory_.rows() - std::min(directory_.rows(), unused);
  statistics.splits = index_.splits();
  statistics.requests = requests_;
  statistics.started_us = started_us_;
  return statistics;
}

std::vector<GlobalAddress> StorageNode::locks_of(WorkerId worker) {
  std::vector<GlobalAddress> locked;
  const auto look = [&](uint64_t at, bool) {
    const Header header = region_.header(at);
    const auto is_of = [&](uint64_t ctts) { return static_cast<WorkerId>(ctts) == worker; };
    if ((locked_exclusively(header.lock) && is_of(header.lock)) ||
        (header.waiter != 0 && is_of(header.waiter)) ||
        (sundial_locked(header.sundial) && is_of(header.sundial))) {
      locked.push_back(region_.address(at));
    }
  };
  for_each_header(look);
  return locked;
}

std::vector<GlobalAddress> StorageNode::shared_headers() {
  std::vector<GlobalAddress> shared;
  for_each_header([&](uint64_t at, bool) {
    if (locked_shared(region_.lock_of(at))) shared.push_back(region_.address(at));
  });
  return shared;
}

void StorageNode::for_each_header(const std::function<void(uint64_t offset, bool used)>& look) {
  for (uint64_t page = 0; page < arena_.page_count(); ++page) {
    arena_.for_each_unit(page, PageKind::kSlot, look);
    arena_.for_each_unit(page, PageKind::kGroup, look);
    worker_.scheduler().yield();
  }
}

// Of as many pages as fit one answer; yields between them.
LockedHeaders StorageNode::locked_headers(uint64_t from_page) {
  LockedHeaders locked;
  const auto look = [&](uint64_t at, bool) {
    const Header header = region_.header(at);
    if (header.lock == 0 && header.waiter == 0 && !sundial_locked(header.sundial)) return;
    if (reserved_slots_.lists(at)) return;  // by no transaction
    LockedHeader& seen = locked.headers.emplace_back();
    seen.address = region_.address(at);
    seen.table = header.table;
    if (const DirectoryEntry* table = directory_.live(header.table)) {
      seen.database = table->database;
      seen.relfilenode = table->relfilenode;
    }
    seen.gap = (header.flags & kFlagGap) != 0;
    seen.live = (header.flags & kFlagLive) != 0;
    seen.key_hash = header.key_hash;
    seen.lock = header.lock;
    seen.waiter = header.waiter;
    seen.sundial = header.sundial;
  };
  const uint64_t last = from_page > arena_.page_count() ? 0 : from_page + kLockedPagesMax;
  for (uint64_t page = from_page; page < last; ++page) {
    if (page >= arena_.page_count()) return locked;
    if (locked.headers.size() >= kLockedHeadersMax / 2) {
      locked.next = page;
      return locked;
    }
    arena_.for_each_unit(page, PageKind::kSlot, look);
    arena_.for_each_unit(page, PageKind::kGroup, look);
    worker_.scheduler().yield();
  }
  locked.next = last;
  return locked;
}

// A slot that an index names holds a row, and one that is free was locked by a stale address:
// these are only unlocked.
void StorageNode::discard_slot(uint64_t offset, uint64_t ctts) {
  CHECK(locked_exclusively(ctts));
  if (!arena_.is_unit(PageKind::kSlot, offset) || region_.lock_of(offset) != ctts) return;
  if (arena_.in_use(PageKind::kSlot, offset) && !index_.linked(offset)) index_.retire_slot(offset);
  unlock_slots(ctts, {offset});
}

}  // namespace rdmacc
