#include <algorithm>

#include "engine/storage/owner/index_audit.h"
#include "engine/storage/owner/storage_node.h"
#include "engine/storage/owner/unit_audit.h"

// What peers ask of a node. Nothing in a request is trusted: ids, offsets and sizes are checked
// against the directory and the arena, and a wrong one is answered with kInvalidArgument.

namespace rdmacc {

namespace {

// How long one request waits for splits; a transaction that chained many buckets asks again.
constexpr uint64_t kPendingSplitsUsMax = 200'000;
// Of its pages, so that a dropped table's memory is not waited for; reclamation rounds, else.
constexpr uint64_t kPlenty = 2;
constexpr int kEpochsOfLimbo = 3;
// Of an index whose groups are taken apart at once.
constexpr uint32_t kSmallDepth = 6;
// Slots that a request frees are fetched so many items ahead: most are in no cache.
constexpr size_t kItemsAhead = 16;

ListedTable listed(const DirectoryEntry& table) {
  return {table.id,
          table.system_id,
          table.database,
          table.relfilenode,
          table.record_size,
          table.history,
          (table.id & kDistributedTable) != 0};
}

Status malformed(const char* request) {
  return Status(Code::kInvalidArgument, std::string(request) + ": malformed request");
}

TableMeta meta_of(const DirectoryEntry& table) {
  return {table.id, table.record_size, table.history, table.created_us};
}
}  // namespace

void StorageNode::handle(MethodId method, HandlerMethod handler) {
  Rpc::Handler served = [this, handler](WorkerId from, Bytes request, Reply& reply) {
    ++requests_;
    return (this->*handler)(from, request, reply);
  };
  worker_.rpc().handle(method, guard_(std::move(served)));
}

void StorageNode::serve(const Guard& guard) {
  guard_ = guard;
  handle(kMethodAllocate, &StorageNode::handle_allocate);
  handle(kMethodReserveSlots, &StorageNode::handle_reserve_slots);
  handle(kMethodFree, &StorageNode::handle_free);
  handle(kMethodExtendBucket, &StorageNode::handle_extend_bucket);
  handle(kMethodSplitSoon, &StorageNode::handle_split_soon);
  handle(kMethodExpectRows, &StorageNode::handle_expect_rows);
  handle(kMethodLoadRows, &StorageNode::handle_load_rows);
  handle(kMethodCreateTable, &StorageNode::handle_create_table);
  handle(kMethodDropTable, &StorageNode::handle_drop_table);
  handle(kMethodFindTable, &StorageNode::handle_find_table);
  handle(kMethodReserveTableId, &StorageNode::handle_reserve_table_id);
  handle(kMethodNodeStatistics, &StorageNode::handle_node_statistics);
  handle(kMethodWaitForPendingSplits, &StorageNode::handle_wait_for_pending_splits);
  handle(kMethodLockedHeaders, &StorageNode::handle_locked_headers);
  handle(kMethodListTables, &StorageNode::handle_list_tables);
  handle(kMethodTableSize, &StorageNode::handle_table_size);
  handle(kMethodAudit, &StorageNode::handle_audit);
  handle(kMethodBackLogRing, &StorageNode::handle_back_log_ring);
  handle(kMethodReserveBlocks, &StorageNode::handle_reserve_blocks);
}

Status StorageNode::handle_back_log_ring(WorkerId from, Bytes bytes, Reply& reply) {
  if (!bytes.empty()) return malformed("back log ring");
  MessageWriter(reply).u8(change_log_.created ? 1 : 0);
  return fixed_parts_.back_log_ring(from);
}

Status StorageNode::handle_free(WorkerId, Bytes bytes, Reply&) {
  FreeMessage request;
  if (!request.parse(bytes)) return malformed("free");
  RDMACC_RETURN_IF_ERROR(check_free(request));
  std::vector<uint64_t> locked;
  for (const FreeItem& item : request.items) {
    if (item.kind == FreeKind::kOverflow) {
      arena_.retire(item.offset);
      continue;
    }
    if (item.kind == FreeKind::kTombstone) {
      tombstones_.add(item.offset);
      continue;
    }
    const uint64_t lock = region_.lock_of(item.offset);
    // Of a table that has gone it was taken back, and may be another worker's by now.
    const bool taken_back = lock != request.ctts || !arena_.in_use(PageKind::kSlot, item.offset);
    if (item.kind == FreeKind::kReserved && taken_back) continue;
    if (lock != 0 && lock != request.ctts && arena_.in_use(PageKind::kSlot, item.offset)) {
      defer_free(item.offset);
      continue;
    }
    if (lock == request.ctts) locked.push_back(item.offset);
    index_.retire_slot(item.offset);
  }
  unlock_slots(request.ctts, locked);
  return Status();
}

// A transaction with a stale address may hold an unlinked slot's lock for a moment. The slot is
// read again by maintenance, and freed if it still is what it was: then it was the sender's to
// free.
void StorageNode::defer_free(uint64_t slot) {
  if (deferred_frees_.size() >= kDeferredFreesMax) return;  // found at the next start
  deferred_frees_.push_back({slot, region_.load(slot + kOffsetOfIdentity)});
}

void StorageNode::free_deferred() {
  CHECK(deferred_frees_.size() <= kDeferredFreesMax);
  std::vector<DeferredFree> again;
  for (const DeferredFree& each : deferred_frees_) {
    // Before the rest: a row that is being installed is not unlocked before it is live.
    const uint64_t lock = region_.lock_of(each.slot);
    const bool same = arena_.in_use(PageKind::kSlot, each.slot) &&
                      region_.load(each.slot + kOffsetOfIdentity) == each.identity &&
                      region_.header(each.slot).flags == 0 && !index_.linked(each.slot);
    if (!same) continue;
    if (lock != 0) {
      again.push_back(each);
    } else {
      index_.retire_slot(each.slot);
    }
  }
  deferred_frees_ = std::move(again);
}

// All or nothing. What is not in use was freed already (a repeated request): no error.
Status StorageNode::check_free(const FreeMessage& request) const {
  for (size_t i = 0; i < request.items.size(); ++i) {
    if (i + kItemsAhead < request.items.size()) {
      region_.prefetch_slot(request.items[i + kItemsAhead].offset);
    }
    if (i + kItemsAhead / 2 < request.items.size()) {
      const FreeItem& next = request.items[i + kItemsAhead / 2];
      const bool slot =
          next.kind == FreeKind::kSlot && arena_.is_unit(PageKind::kSlot, next.offset);
      if (slot) index_.prefetch_linked(next.offset);
    }
    const FreeItem& item = request.items[i];
    const bool block = item.kind == FreeKind::kOverflow;
    const PageKind kind = block ? PageKind::kOverflow : PageKind::kSlot;
    if (!arena_.is_unit(kind, item.offset)) {
      return Status(Code::kInvalidArgument, "free: no such unit");
    }
    if (item.kind != FreeKind::kSlot || !arena_.in_use(kind, item.offset)) continue;
    if (index_.linked(item.offset)) {
      return Status(Code::kInvalidArgument, "free: the slot is linked");
    }
  }
  return Status();
}

Status StorageNode::handle_extend_bucket(WorkerId, Bytes bytes, Reply&) {
  ExtendRequest request;
  if (!request.parse(bytes)) return malformed("extend");
  return index_.extend(request.group, request.bucket, request.entries, request.ctts);
}

Status StorageNode::handle_split_soon(WorkerId, Bytes bytes, Reply&) {
  FullGroupsMessage full;
  if (!full.parse(bytes)) return malformed("split soon");
  for (const uint64_t group : full.groups) index_.split_soon(group);
  return Status();
}

Status StorageNode::handle_expect_rows(WorkerId, Bytes bytes, Reply&) {
  MessageReader reader(bytes);
  const TableId id = reader.u32();
  const uint64_t rows = reader.u64();
  if (!reader.at_end()) return malformed("expect rows");
  index_.expect_rows(id, rows);
  return Status();
}

Status StorageNode::handle_reserve_table_id(WorkerId from, Bytes bytes, Reply& reply) {
  TableRequest request;
  if (!request.parse(bytes)) return malformed("reserve table id");
  if (region_.node() != 0) return Status(Code::kInvalidArgument, "node 0 allots table ids");
  Result<TableId> id = directory_.reserve(request.spec, from, request.id);
  if (!id.ok()) return id.status();
  MessageWriter(reply).u32(*id);
  return Status();
}

Status StorageNode::handle_create_table(WorkerId from, Bytes bytes, Reply& reply) {
  TableRequest request;
  if (!request.parse(bytes)) return malformed("create table");
  TableSpec& spec = request.spec;
  if (spec.record_size < kRecordSizeMin || spec.record_size > kRecordInlineMax ||
      spec.history > kHistoryMax || request.id == kNoTable) {
    return Status(Code::kInvalidArgument, "create table: record size or history out of range");
  }
  spec.record_size = static_cast<uint32_t>(round_up(spec.record_size, 8));
  if (region_.node() == 0) {
    // A table exists from here on: only for the one that was promised the identity.
    if (!directory_.reserved(request.id, spec, from)) {
      return Status(Code::kInvalidArgument, "create table: the id was not reserved");
    }
  } else {
    // Node 0 would not have allotted a larger id if the older table had come to exist.
    const TableId unfinished = directory_.find(spec);
    if (unfinished != kNoTable && number_of_table(unfinished) < number_of_table(request.id)) {
      if (change_log_.dropped) RDMACC_RETURN_IF_ERROR(change_log_.dropped(unfinished));
      drop(unfinished);
    }
  }
  RDMACC_RETURN_IF_ERROR(directory_.may_create(request.id, spec));
  Result<IndexRoot> root = index_.build(request.id);
  if (!root.ok()) return root.status();
  directory_.publish(request.id, spec, root->bits);
  // Told before anything yields: no row of it is logged before.
  if (change_log_.created) {
    RDMACC_RETURN_IF_ERROR(change_log_.created(listed(*directory_.live(request.id))));
  }
  write_table_meta(meta_of(*directory_.live(request.id)), reply);
  return Status();
}

Status StorageNode::handle_drop_table(WorkerId, Bytes bytes, Reply&) {
  MessageReader reader(bytes);
  const TableId id = reader.u32();
  if (!reader.at_end()) return malformed("drop table");
  directory_.cancel_reservation(id);
  if (directory_.live(id) == nullptr) return Status(Code::kNotFound, "table does not exist");
  if (change_log_.dropped) RDMACC_RETURN_IF_ERROR(change_log_.dropped(id));
  drop(id);
  return Status();
}

// The table is gone at once. Its memory follows in a coroutine of its own: that of many rows takes
// its time, and is nothing to wait for. That of none does not: then what has read that there are
// none finds it gone, too, before another table can show rows under its name. Where memory is
// scarce the caller may want it next, in a transaction that would begin too soon for it.
void StorageNode::drop(TableId id) {
  // A split that is under way counts on its table; none of this one begins after this.
  index_.begin_drop();
  const DirectoryEntry* table = directory_.live(id);
  if (table == nullptr) return index_.cancel_drop();  // by another request meanwhile
  const bool empty =
      table->rows == 0 && IndexRoot{table->root}.depth() <= kSmallDepth && drops_under_way_ == 0;
  directory_.set_dropped(id);
  ++drops_under_way_;
  const auto retire = [this, id] {
    index_.retire_all(id);
    reserved_slots_.take_back(ReservedSlots::OfTables::kGone);
    dropped_tables_.add(id);
    --drops_under_way_;
  };
  const bool scarce = arena_.pages_left() < arena_.page_count() / kPlenty;
  if (!scarce && !empty && worker_.scheduler().spawn(retire)) return;
  retire();
  if (!scarce) return;
  for (int i = 0; i < kEpochsOfLimbo; ++i) reclaim_some();
}

Status StorageNode::handle_find_table(WorkerId, Bytes bytes, Reply& reply) {
  TableRequest request;
  if (!request.parse(bytes)) return malformed("find table");
  const DirectoryEntry* table = directory_.live(directory_.find(request.spec));
  if (table == nullptr) return Status(Code::kNotFound, "table does not exist");
  write_table_meta(meta_of(*table), reply);
  return Status();
}

std::vector<ListedTable> StorageNode::tables() const {
  std::vector<ListedTable> tables;
  for (const TableId id : directory_.tables(TableState::kLive)) {
    tables.push_back(listed(*directory_.live(id)));
  }
  return tables;
}

Status StorageNode::handle_list_tables(WorkerId, Bytes bytes, Reply& reply) {
  MessageReader reader(bytes);
  const TableId after = reader.u32();
  if (!reader.at_end()) return malformed("list tables");
  std::vector<TableId> ids = directory_.tables(TableState::kLive);
  std::sort(ids.begin(), ids.end());
  std::vector<ListedTable> tables;
  for (const TableId id : ids) {
    const DirectoryEntry* table = id > after ? directory_.live(id) : nullptr;
    if (table == nullptr) continue;
    if (tables.size() == kListedTablesMax) break;
    tables.push_back(listed(*table));
  }
  write_tables(tables, reply);
  return Status();
}

Status StorageNode::handle_table_size(WorkerId from, Bytes bytes, Reply& reply) {
  MessageReader reader(bytes);
  const TableId id = reader.u32();
  if (!reader.at_end()) return malformed("table size");
  Result<TableSize> size = index_.size_of(id, from);
  if (!size.ok()) return size.status();
  write_table_size(*size, reply);
  return Status();
}

// Units that are about to be free have an owner: this node.
bool StorageNode::will_be_freed(uint64_t offset) const {
  return orphaned_allocations_.lists(offset) || versions_.lists(offset) ||
         dropped_tables_.awaits(offset) || reserved_slots_.held_by_worker(offset) ||
         std::any_of(deferred_frees_.begin(), deferred_frees_.end(),
                     [offset](const DeferredFree& each) { return each.slot == offset; });
}

Status StorageNode::handle_audit(WorkerId, Bytes bytes, Reply& reply) {
  MessageReader reader(bytes);
  const TableId id = reader.u32();
  if (!reader.at_end()) return malformed("audit");
  AuditReport report;
  const auto awaited = [this](uint64_t slot) { return will_be_freed(slot); };
  if (id == kNoTable) {
    UnitAudit(worker_.scheduler(), region_, arena_, directory_, index_, awaited).run(report);
  } else {
    // As PartitionMap (engine/cluster) has it.
    const auto home = [this](uint64_t hash) {
      return partition_of(hash) % topology_.nodes == region_.node();
    };
    IndexAudit audit(worker_.scheduler(), region_, arena_, directory_, home, awaited);
    RDMACC_RETURN_IF_ERROR(audit.audit_table(id, report));
  }
  // A caller that asks again and again sees by the epoch which transactions have ended meanwhile.
  reclaimer_.advance();
  report.epoch = reclaimer_.epoch();
  report.write(reply);
  return Status();
}

Status StorageNode::handle_node_statistics(WorkerId, Bytes bytes, Reply& reply) {
  if (!bytes.empty()) return malformed("statistics");
  write_statistics(statistics(), reply);
  return Status();
}

Status StorageNode::handle_locked_headers(WorkerId, Bytes bytes, Reply& reply) {
  MessageReader reader(bytes);
  const uint64_t from_page = reader.u64();
  if (!reader.at_end()) return malformed("locked headers");
  write_locked_headers(locked_headers(from_page), reply);
  return Status();
}

// One round; whether it got anything done. None of it: transactions hold all groups that wait for a
// split, a drop or an audit keeps the index as it is, or the order of a deterministic protocol does
// not stand still; maintenance goes on. The order is not held back while the index is busy.
bool StorageNode::split_some(uint64_t deadline_us) {
  CHECK(worker_.scheduler().in_coroutine());
  if (!index_.wait_until_idle(deadline_us)) return false;
  if (!order_hold_.begin(deadline_us)) return false;
  const uint64_t splits = index_.splits();
  const size_t queued = index_.groups_queued();
  index_.split_queued();
  order_hold_.end();
  return index_.splits() != splits || index_.groups_queued() < queued;
}

Status StorageNode::handle_wait_for_pending_splits(WorkerId, Bytes bytes, Reply& reply) {
  if (!bytes.empty()) return malformed("wait for pending splits");
  const uint64_t deadline_us = worker_.endpoint().now_us() + kPendingSplitsUsMax;
  bool more = index_.split_pending();
  while (more && worker_.endpoint().now_us() < deadline_us) {
    more = split_some(deadline_us) && index_.split_pending();
  }
  MessageWriter(reply).u8(more ? 1 : 0);
  return Status();
}

}  // namespace rdmacc
