#include "engine/txn/transaction/write_plan.h"

#include "engine/txn/transaction/small_index.h"
#include "rdma/base/check.h"

namespace rdmacc {
namespace {

// Several messages to each node, which waits for none of them; and what they take is used again for
// the next ones.
constexpr size_t kRequestsAtOnce = 64 * 1024;
constexpr size_t kRelinkedPerGroup = 4;  // or more: that many rows of a group come or go at once

// The row's own lock, unless it is held, or nothing but the write knows of the row.
void add_lock_of_row(const PlannedWrite& write, LargeVector<LockWork>& locks) {
  CHECK(write.tuple != nullptr);
  if (write.kind == WriteKind::kInsert || write.tuple->locked_to_commit()) return;
  locks.emplace_back().access = write.tuple;
}

}  // namespace

std::string_view WritePlan::make_record(const KeyWrite& write) {
  std::string& record = made_records_.emplace_front();
  record.resize(record_bytes(write.key.size(), write.row.size()));
  put_record(record.data(), write.key, write.row);
  return record;
}

std::vector<KeyWork> WritePlan::missing_gaps(size_t& from, size_t at_most,
                                             std::vector<PlannedWrite*>& of) {
  CHECK(of.empty() && at_most > 0);
  std::vector<KeyWork> works;
  for (; from < writes_.size() && works.size() < at_most; from++) {
    PlannedWrite& write = writes_[from];
    if (!write.relinks() || write.gap != nullptr) continue;
    works.push_back(KeyWork::of(write.table, write.hash, write.key(), KeyWork::Mode::kGapOnly));
    of.push_back(&write);
  }
  return works;
}

void WritePlan::forget_moved_gaps() {
  for (PlannedWrite& write : writes_) {
    if (write.relinks() && write.gap != nullptr && !claims(*write.gap, write.hash)) {
      write.gap = nullptr;
    }
  }
}

Status WritePlan::allocate_room(StageContext& stage, Accesses& accesses) {
  CHECK(allocated_.empty() && pooled_.empty() && kept_blocks_.empty());
  size_t wanting = 0;
  RDMACC_RETURN_IF_ERROR(note_tables(stage, wanting));
  if (wanting == 0) return Status();
  Status status;
  for (size_t from = 0; from < writes_.size() && status.ok();) {
    status = allocate_some(stage, accesses, from);
  }
  if (status.code() == Code::kNoSpace) stage.engine.blocks.give_back(stage.allocation_counters);
  return status;
}

// `wanting`: how many of the writes want a slot or a block.
[[gnu::always_inline]] inline Status WritePlan::note_tables(StageContext& stage, size_t& wanting) {
  for (PlannedWrite& write : writes_) {
    auto table = stage.table(write.table);
    if (!table.ok()) return table.status();
    write.record_size = static_cast<uint16_t>((*table)->record_size);
    write.history = static_cast<uint16_t>((*table)->history);
    // A block of what it replaces may have to be freed.
    const bool replaces = !write.old_overflow.null() || stage.rules.keeps_versions();
    if (replaces && write.tuple != nullptr && stage.engine.frees != nullptr) {
      write.node_incarnation = stage.engine.frees->incarnation_of(write.tuple->header.node());
    }
    wanting += write.kind == WriteKind::kInsert || write.overflows() ? 1 : 0;
  }
  return Status();
}

// For some of the writes, from `from` on, which moves on.
Status WritePlan::allocate_some(StageContext& stage, Accesses& accesses, size_t& from) {
  SlotRequests requests;
  boost::container::small_vector<PlannedWrite*, 16> owners;
  for (; from < writes_.size() && requests.size() < kRequestsAtOnce; from++) {
    PlannedWrite& write = writes_[from];
    if (write.kind != WriteKind::kInsert && !write.overflows()) continue;
    SlotRequest request{};
    request.table = write.table;
    request.key_hash = write.hash;
    request.node = stage.engine.map.primary_of(write.hash);
    request.want_slot = write.kind == WriteKind::kInsert;
    if (write.overflows())
      request.overflow_bytes = static_cast<uint32_t>(round_up(write.record.size(), 8));
    requests.push_back(request);
    owners.push_back(&write);
  }
  if (requests.empty()) return Status();
  RDMACC_RETURN_IF_ERROR(allocate(stage, requests));
  for (size_t i = 0; i < requests.size(); i++) {
    take_room(requests[i], *owners[i], accesses);
  }
  return Status();
}

// What the worker has kept, if it keeps some; the nodes are asked for the rest.
Status WritePlan::allocate(StageContext& stage, SlotRequests& requests) {
  const std::span<SlotRequest> all(requests.data(), requests.size());
  if (stage.engine.slots == nullptr) return ask_nodes(stage, all);
  take_blocks(stage, all);
  RDMACC_RETURN_IF_ERROR(stage.engine.slots->take(all, stage.stamps.ctts, pooled_, stage.arena,
                                                  stage.allocation_counters));
  SlotRequests lacking;
  for (const SlotRequest& request : all) {
    SlotRequest rest = request;
    rest.want_slot = request.want_slot && request.slot.null();
    rest.overflow_bytes = request.overflow.null() ? request.overflow_bytes : 0;
    if (rest.want_slot || rest.overflow_bytes != 0) lacking.push_back(rest);
  }
  if (lacking.empty()) return Status();
  const std::span<SlotRequest> asked(lacking.data(), lacking.size());
  RDMACC_RETURN_IF_ERROR(ask_nodes(stage, asked));  // the caller's abort gives back what is pooled
  size_t next = 0;
  for (SlotRequest& request : all) {
    const bool block = request.overflow_bytes != 0 && request.overflow.null();
    const bool slot = request.want_slot && request.slot.null();
    if (!slot && !block) continue;
    const SlotRequest& got = lacking[next++];
    if (block) request.overflow = got.overflow;
    if (!slot) continue;
    request.slot = got.slot;
    request.incarnation = got.incarnation;
    request.wts = got.wts;
    request.lease = got.lease;
  }
  return Status();
}

Status WritePlan::ask_nodes(StageContext& stage, std::span<SlotRequest> requests) {
  RDMACC_RETURN_IF_ERROR(
      stage.engine.storage.allocate(requests, stage.stamps.ctts, stage.allocation_counters));
  note_allocated(requests);
  return Status();
}

void WritePlan::take_blocks(StageContext& stage, std::span<SlotRequest> requests) {
  for (SlotRequest& request : requests) {
    if (request.overflow_bytes == 0) continue;
    const BlockPool::Taken taken =
        stage.engine.blocks.take(request.node, request.overflow_bytes, stage.allocation_counters);
    if (taken.block.null()) continue;
    request.overflow = taken.block;
    kept_blocks_.push_back(taken);
  }
}

void WritePlan::note_allocated(std::span<const SlotRequest> got) {
  for (const SlotRequest& each : got) {
    if (!each.overflow.null()) allocated_.push_back({each.overflow, FreeKind::kOverflow});
    if (each.want_slot) allocated_.push_back({each.slot, FreeKind::kSlot});
  }
}

void WritePlan::take_room(const SlotRequest& got, PlannedWrite& write, Accesses& accesses) {
  CHECK(!got.want_slot || (write.tuple == nullptr && !got.slot.null()));
  write.new_overflow = got.overflow;
  if (!got.want_slot) return;
  Access& access = accesses.emplace_back();
  access.header = got.slot;
  access.write = true;
  access.locked = false;  // held, but given back by free(), not by Release
  access.table = write.table;
  access.key_hash = write.hash;
  access.incarnation = got.incarnation;
  access.locked_wts = got.wts;
  access.lease = got.lease;
  write.tuple = &access;
}

LargeVector<LockWork>& WritePlan::plan_locks() {
  locks_.clear();
  entries_.clear();
  if (!relinks_) {
    locks_.reserve(writes_.size());
    for (const PlannedWrite& write : writes_) add_lock_of_row(write, locks_);
    return locks_;
  }
  size_t tuples = 0, relinked = 0;
  for (const PlannedWrite& write : writes_) {
    tuples += write.kind != WriteKind::kInsert ? 1 : 0;
    relinked += write.relinks() ? 1 : 0;
  }
  locks_.reserve(tuples + relinked / kRelinkedPerGroup);
  entries_.reserve(relinked / kRelinkedPerGroup);
  std::pmr::monotonic_buffer_resource memory;  // takes none while the index is small
  SmallIndex<PlannedWrite> first_of_gap(&memory);
  for (PlannedWrite& write : writes_) {
    add_lock_of_row(write, locks_);
    if (!write.relinks()) continue;
    CHECK(write.gap != nullptr && write.gap->gap);
    write.gap->write = true;
    PlannedWrite*& first = first_of_gap.at(write.gap->header.bits);
    if (first == nullptr) {
      first = &write;
      write.entries = static_cast<uint32_t>(entries_.size());
      entries_.emplace_back();
      locks_.emplace_back().access = write.gap;
    }
    entries_[first->entries].changes.push_back(IndexEntryChange{
        write.hash, write.tuple->header.offset(), write.kind == WriteKind::kInsert});
  }
  EntryWork* next = entries_.data();
  for (LockWork& lock : locks_) {
    if (lock.access->gap) lock.entries = next++;
  }
  CHECK(next == entries_.data() + entries_.size());
  return locks_;
}

void WritePlan::list_writes(LogRecord& record) {
  const auto add = [&record](const Access& access, WriteKind kind) -> Write& {
    Write& write = record.writes.emplace_back();
    write.header = access.header;
    write.kind = kind;
    write.table = access.table;
    write.key_hash = access.key_hash;
    write.incarnation = access.incarnation;
    return write;
  };
  record.writes.reserve(writes_.size() + locks_.size());
  for (const PlannedWrite& planned : writes_) {
    Write& write = add(*planned.tuple, planned.kind);
    write.key_hash = planned.hash;  // a record that a scan has met may not know its key
    write.overflow = planned.new_overflow;
    write.record = planned.record;
    write.record_size = planned.record_size;
    write.history = planned.history;
  }
  for (const LockWork& lock : locks_) {
    if (lock.entries == nullptr) continue;
    for (const IndexEntryChange& entry_change : lock.entries->changes) {
      CHECK(claims(*lock.access, entry_change.hash));
    }
    CHECK(lock.entries->writes.size() == lock.entries->changes.size());
    add(*lock.access, WriteKind::kGap).entries = std::move(lock.entries->writes);
  }
}

void WritePlan::list_logged(std::vector<LoggedWrite>& writes) const {
  writes.reserve(writes.size() + writes_.size());
  for (const PlannedWrite& planned : writes_) {
    LoggedWrite& write = writes.emplace_back();
    write.table = planned.table;
    write.key = planned.key();
    write.deleted = planned.kind == WriteKind::kUnlink || planned.kind == WriteKind::kTombstone;
    if (write.deleted) continue;
    std::string_view key;
    CHECK(split_record(planned.record, key, write.row) && key == write.key);
  }
}

Status WritePlan::give_back_room(StageContext& stage) {
  Status status;
  for (const BlockPool::Taken& taken : kept_blocks_) stage.engine.blocks.put_back(taken);
  kept_blocks_.clear();
  if (!pooled_.empty()) {
    status = stage.engine.slots->put_back(pooled_, stage.stamps.ctts, stage.arena,
                                          stage.allocation_counters);
  }
  if (allocated_.empty()) return status;
  const Status freed =
      stage.engine.storage.free(allocated_, stage.stamps.ctts, stage.allocation_counters);
  allocated_.clear();
  return status.ok() ? freed : status;
}

// Slots go back before the transaction leaves the gate: an unlinked one is its own no longer than
// that. Blocks may go later (background_free.h).
bool WritePlan::free_replaced(StageContext& stage, std::span<const GlobalAddress> evicted) {
  CHECK(allocated_.empty());
  const bool any = !evicted.empty() || relinks_ ||
                   std::any_of(writes_.begin(), writes_.end(), [](const PlannedWrite& write) {
                     return !write.old_overflow.null() || write.kind == WriteKind::kTombstone;
                   });
  if (!any) return false;
  LargeVector<StorageClient::FreeRequest> freed;
  bool frees_blocks = false;
  const auto free_block = [&](GlobalAddress block, const PlannedWrite& by) {
    CHECK(by.tuple->header.node() == block.node());
    if (stage.engine.frees == nullptr) {
      freed.push_back({block, FreeKind::kOverflow});
    } else {
      stage.engine.frees->add(block, by.node_incarnation);
      frees_blocks = true;
    }
  };
  for (const PlannedWrite& write : writes_) {
    const bool kept = stage.rules.keeps_versions();  // by the version before
    if (!write.old_overflow.null() && !kept) free_block(write.old_overflow, write);
    if (write.kind == WriteKind::kUnlink) {
      freed.push_back({write.tuple->header, FreeKind::kSlot});
    } else if (write.kind == WriteKind::kTombstone) {
      freed.push_back({write.tuple->header, FreeKind::kTombstone});
    }
  }
  for (const GlobalAddress block : evicted) {
    const auto by = std::find_if(writes_.begin(), writes_.end(), [&](const PlannedWrite& write) {
      return write.tuple->header.node() == block.node() && write.kind != WriteKind::kInsert;
    });
    if (by != writes_.end()) free_block(block, *by);
  }
  if (frees_blocks) stage.engine.frees->start();
  if (freed.empty()) return true;
  const Status status =
      stage.engine.storage.free(freed, stage.stamps.ctts, stage.allocation_counters);
  static_cast<void>(status);  // leaks until the node's next start
  return true;
}

}  // namespace rdmacc
