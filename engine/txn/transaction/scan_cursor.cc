#include "engine/txn/transaction/scan_cursor.h"

#include <algorithm>
#include <atomic>

#include "rdma/base/check.h"

namespace rdmacc {
namespace {

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

// As many ranges as the next batch wants, as far as the walk's node has them.
Status TableScan::take_ranges(TableWalk& walk) {
  EngineContext& engine = txn_.coordinator().engine;
  VerbCounters counters;
  auto table = engine.tables.get(table_, counters);
  if (!table.ok()) return table.status();
  const bool anew = begun_ != walk.node && (*table)->roots[walk.node].patched;
  RDMACC_RETURN_IF_ERROR(engine.tables.load_root(**table, walk.node, anew, counters));
  begun_ = walk.node;
  CachedRoot& root = (*table)->roots[walk.node];
  if (keeps_rows()) txn_.watch_others(root.groups.size());
  while (work_.size() < groups_wanted_ && !walk.ranges.ended()) {
    work_.push_back(walk.ranges.next(root));
  }
  return Status();
}

// Ranges of one node: what is left of those that were taken before goes first.
Status TableScan::add_work() {
  if (work_.size() >= groups_wanted_) return Status();
  const NodeId nodes = txn_.coordinator().engine.topology.nodes;
  if (shared_walk_ == nullptr) {
    if (walk_.node == nodes || (!work_.empty() && walk_.node != node_)) return Status();
    node_ = walk_.node;
    RDMACC_RETURN_IF_ERROR(take_ranges(walk_));
    walk_.go_on();
    return Status();
  }
  if (!work_.empty()) return Status();
  const std::atomic_ref<uint64_t> shared(*shared_walk_);
  uint64_t word = shared.load();
  for (;;) {
    TableWalk walk = TableWalk::unpack(word);
    if (walk.node >= nodes) return Status();
    RDMACC_RETURN_IF_ERROR(take_ranges(walk));
    node_ = walk.node;
    walk.go_on();
    if (shared.compare_exchange_strong(word, walk.pack())) return Status();
    work_.clear();
  }
}

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
    if (work_.empty()) break;
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

// The next groups, as many as the batch is to have.
void TableScan::begin_groups() {
  const bool rows = mode_ == ScanMode::kQuiet || keeps_rows();
  // Own writes are found by their keys, and so are rows in a history.
  const bool headers_only =
      wants_.count_only && txn_.keys().all().empty() && txn_.coordinator().history == nullptr;
  const uint32_t head_bytes = record_head_bytes();
  groups_.resize(std::min(work_.size(), groups_wanted_));
  for (GroupWork& group : groups_) {
    group.begin(table_, node_, work_.front());
    group.row_bytes_max = wants_.count_only ? 0 : wants_.row_bytes_max;
    group.record_head_bytes = head_bytes;
    group.takes_rows = rows;
    group.headers_only = headers_only;
    work_.pop_front();
  }
}

// What a group that was split since covers only a part of.
void TableScan::halve(HashRange range) {
  CHECK(range.depth < kDepthMax);
  work_.push_front(HashRange{range.bits | (1ull << range.depth), range.depth + 1});
  work_.push_front(HashRange{range.bits, range.depth + 1});
}

Status TableScan::read_batch() {
  begin_groups();
  CHECK(!groups_.empty());
  const Status status = txn_.scan(groups_, arena_, {mode_, first_, to_write_});
  if (!status.ok()) {
    if (is_held_by_another(reason_of(status))) put_back_groups();
    return status;
  }
  for (const GroupWork& group : groups_) {
    if (group.result == GroupWork::Result::kSplit) {
      halve(group.range);
      continue;
    }
    CHECK(group.result == GroupWork::Result::kDone);
    note(group);
    emit(group);
  }
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

// The caller may wait for the holder and ask once more: at the owner nothing would be found out
// about it, and what was met already is met again.
void TableScan::put_back_groups() {
  CHECK(!groups_.empty());
  for (size_t i = groups_.size(); i > 0; i--) work_.push_front(groups_[i - 1].range);
  if (mode_ == ScanMode::kSerializable) mode_ = ScanMode::kNoWait;
  first_ = false;
}

void TableScan::note(const GroupWork& group) {
  if (txn_.coordinator().history == nullptr || !reads()) return;
  txn_.note_scanned(
      table_, ScannedGroup{group.node, group.gap.key_hash, group.gap.depth, group.gap.read_wts});
}

void TableScan::emit(const GroupWork& group) {
  for (const ScannedRow& row : group.rows) {
    if (group.headers_only) {
      if ((row.flags & kFlagDeleted) == 0) rows_++;
    } else {
      emit(row, row.read.read_wts, group.node);
    }
  }
  for (const ScannedTuple& tuple : group.tuples) emit(tuple, tuple.access.read_wts, group.node);
}

template <typename Record>
void TableScan::emit(const Record& record, uint64_t version, NodeId node) {
  std::string_view key, row;
  if (!split_record(record.record, key, row)) return;
  key_bytes_max_ = std::max(key_bytes_max_, key.size());
  const bool deleted = (record.flags & kFlagDeleted) != 0;
  if (reads()) txn_.note_scanned_row(table_, key, version, deleted);
  KeyState* state = txn_.keys().all().empty() ? nullptr : txn_.keys().find(table_, key);
  if (deleted) return;
  // A key that was read as absent has got a row since: no read of this scan would show that.
  if (mode_ == ScanMode::kQuiet && state != nullptr && state->base == KeyState::Base::kAbsent) {
    conflicts_ = true;
  }
  const OwnVersion* own = state == nullptr ? nullptr : state->own_before(visible_before_);
  if (own == nullptr) {
    give(key, row, version, node);
  } else if (!own->deleted) {
    give(state->key, own->row, 0, node);
  }
}

// Own inserts that the engine does not have. A key that it has was emitted with its group.
void TableScan::own_inserts() {
  own_done_ = true;
  for (const KeyState& state : txn_.keys().all()) {
    if (state.table != table_ || state.base == KeyState::Base::kExists) continue;
    const OwnVersion* own = state.own_before(visible_before_);
    if (own == nullptr || own->deleted) continue;
    give(state.key, own->row, 0, txn_.coordinator().engine.map.primary_of(state.hash));
  }
}

}  // namespace rdmacc
