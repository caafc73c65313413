#include "engine/txn/transaction/scan_cursor.h"

#include <algorithm>

#include "rdma/base/check.h"

namespace rdmacc {
namespace {

constexpr size_t kKeysAhead = 8;  // of own writes, that are on their way to the cache

// An owner that is asked by messages scans by its protocol's rules.
ScanMode mode_of(Transaction& txn, ScanMode wanted) {
  const bool posted = txn.coordinator().engine.worker.scheduler().port() == Endpoint::Port::kPosted;
  return wanted == ScanMode::kQuiet && posted ? ScanMode::kSerializable : wanted;
}

}  // namespace

TableScan::TableScan(Transaction& txn, TableId table, uint32_t visible_before, ScanMode mode,
                     ScanWants wants, uint64_t* shared_walk)
    : txn_(txn),
      table_(table),
      visible_before_(visible_before),
      mode_(mode_of(txn, mode)),
      wants_(wants),
      to_write_(wants.to_write || mode == ScanMode::kNoWait),
      first_(reads() && txn.begin_scan(table)),
      arena_(txn.coordinator().engine.worker.pool()),
      shared_walk_(shared_walk) {}

Status TableScan::next(std::vector<RowView>& batch) {
  batch.clear();
  batch_ = &batch;
  return next_rows();
}

Status TableScan::count(uint64_t& rows) {
  batch_ = nullptr;
  RDMACC_RETURN_IF_ERROR(next_rows());
  rows = rows_;
  return Status();
}

Status TableScan::next_rows() {
  rows_ = 0;
  scanned_->clear();  // it refers to the arena
  arena_.reset();
  while (rows_ == 0) {
    RDMACC_RETURN_IF_ERROR(add_work());
    if (!has_work()) break;
    scanned_->clear();
    arena_.reset();  // nothing of an empty batch refers to it
    RDMACC_RETURN_IF_ERROR(read_batch());
  }
  if (rows_ == 0 && !own_done_) own_inserts();
  return Status();
}

// Keys of a table mostly are of about the same length.
uint32_t TableScan::record_head_bytes() const {
  if (key_bytes_max_ == 0 || wants_.row_bytes_max >= kRowBytesMax) return kWholeRow;
  const uint64_t wanted = record_bytes(key_bytes_max_, wants_.row_bytes_max);
  return static_cast<uint32_t>(round_up(std::max<uint64_t>(wanted, kRecordSizeMin), 8));
}

Status TableScan::read_batch() {
  begin_groups();
  CHECK(!groups_.empty());
  const Status status = txn_.scan(groups_, arena_, {mode_, first_, to_write_});
  if (!status.ok()) {
    if (is_held_by_another(reason_of(status))) put_back_groups();
    return status;
  }
  for (const ScanWork& group : groups_) {
    if (group.result == ScanWork::Result::kSplit) {
      halve(group.range);
      continue;
    }
    CHECK(group.result == ScanWork::Result::kDone);
    note(group);
    emit(group);
  }
  rows_of_node_ += rows_;
  if (way_ == Way::kBySlots && slots_.ended()) note_groups_of_slots();
  if (conflicts_) return txn_.abort_on_conflict();
  if (reads() && wants_.to_write && wants_.row_bytes_max == kWholeRow) {
    scanned_->keep(groups_);
    txn_.scanned(scanned_);
  }
  const bool long_rows = arena_.allocated_bytes() > kBatchBytesWanted;
  groups_wanted_ = long_rows ? std::max<size_t>(groups_wanted_ / 2, 1)
                             : std::min(groups_wanted_ * 2, kGroupsPerBatch);
  return Status();
}

void TableScan::note(const ScanWork& group) {
  if (txn_.coordinator().history == nullptr || !reads()) return;
  if (group.part == ScanWork::Part::kSlots) return;
  const ScannedGroup scanned{group.node, group.gap.key_hash, group.gap.depth, group.gap.read_wts};
  const bool rows_follow = way_ == Way::kGapHeaders && shared_walk_ == nullptr;
  if (rows_follow) {
    groups_to_note_.push_back(scanned);
  } else {
    txn_.note_scanned(table_, scanned);
  }
}

// The groups whose gap headers it has read, once it has come through the slots: of a scan that is
// given up before, their other rows were not looked at.
void TableScan::note_groups_of_slots() {
  for (const ScannedGroup& scanned : groups_to_note_) txn_.note_scanned(table_, scanned);
  groups_to_note_.clear();
}

void TableScan::emit(const ScanWork& group) {
  const bool looks_for_own = !txn_.keys().all().empty();
  for (size_t i = 0; i < group.rows.size(); i++) {
    const ScannedRow& row = group.rows[i];
    if (looks_for_own && i + kKeysAhead < group.rows.size()) {
      txn_.keys().prefetch(group.rows[i + kKeysAhead].read.key_hash);
    }
    if (group.headers_only) {
      if ((row.flags & kFlagDeleted) == 0) rows_++;
    } else {
      emit(row, row.read.key_hash, row.read.read_wts, group.node);
    }
  }
  for (const ScannedTuple& tuple : group.tuples) {
    emit(tuple, tuple.access.key_hash, tuple.access.read_wts, group.node);
  }
}

template <typename Record>
void TableScan::emit(const Record& record, uint64_t hash, uint64_t version, NodeId node) {
  std::string_view key, row;
  if (!split_record(record.record, key, row)) return;
  key_bytes_max_ = std::max(key_bytes_max_, key.size());
  const bool deleted = (record.flags & kFlagDeleted) != 0;
  if (reads()) txn_.note_scanned_row(table_, key, version, deleted);
  KeyState* state = txn_.keys().all().empty() ? nullptr : txn_.keys().find(table_, key, hash);
  if (deleted) return;
  // A key that was read as absent has got a row since: no read of this scan would show that.
  if (mode_ == ScanMode::kQuiet && state != nullptr && state->base == KeyState::Base::kAbsent) {
    conflicts_ = true;
  }
  const OwnVersion* own = state == nullptr ? nullptr : state->own_before(visible_before_);
  if (own == nullptr) {
    give(key, row, version, node);
  } else if (!own->deleted) {
    give(state->key, own->row(), 0, node);
  }
}

// Own inserts that the engine does not have. A key that it has was emitted with its group.
void TableScan::own_inserts() {
  own_done_ = true;
  for (const KeyState& state : txn_.keys().all()) {
    if (state.table != table_ || state.base == KeyState::Base::kExists) continue;
    const OwnVersion* own = state.own_before(visible_before_);
    if (own == nullptr || own->deleted) continue;
    give(state.key, own->row(), 0, txn_.coordinator().engine.map.primary_of(state.hash));
  }
}

}  // namespace rdmacc
