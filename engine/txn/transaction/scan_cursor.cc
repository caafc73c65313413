#include "engine/txn/transaction/scan_cursor.h"

#include <algorithm>

#include "rdma/base/check.h"

namespace rdmacc {

TableScan::TableScan(Transaction& txn, TableId table, uint32_t visible_before, ScanMode mode,
                     uint32_t row_bytes_max)
    : txn_(txn),
      table_(table),
      visible_before_(visible_before),
      mode_(mode),
      row_bytes_max_(row_bytes_max),
      first_(reads() && txn.begin_scan(table)),
      arena_(txn.coordinator().engine.worker.pool()) {}

// As many ranges as the next batch wants, as far as the node has them.
Status TableScan::add_work() {
  EngineContext& engine = txn_.coordinator().engine;
  VerbCounters counters;
  auto table = engine.tables.get(table_, counters);
  if (!table.ok()) return table.status();
  RDMACC_RETURN_IF_ERROR(engine.tables.load_root(**table, node_, false, counters));
  while (work_.size() < groups_wanted_ && !walk_.ended()) {
    work_.push_back(walk_.next((*table)->roots[node_]));
  }
  return Status();
}

Status TableScan::next(std::vector<ScannedRow>& batch) {
  batch.clear();
  scanned_->clear();  // it refers to the arena
  arena_.reset();
  const NodeId nodes = txn_.coordinator().engine.topology.nodes;
  while (batch.empty() && node_ < nodes) {
    if (work_.size() < groups_wanted_ && !walk_.ended()) RDMACC_RETURN_IF_ERROR(add_work());
    if (work_.empty()) {
      node_++;
      walk_ = RangeWalk();
      continue;
    }
    scanned_->clear();
    arena_.reset();  // nothing of an empty batch refers to it
    RDMACC_RETURN_IF_ERROR(read_batch(batch));
  }
  if (batch.empty() && !own_done_) own_inserts(batch);
  return Status();
}

Status TableScan::read_batch(std::vector<ScannedRow>& batch) {
  std::vector<GroupWork> groups;
  while (!work_.empty() && groups.size() < groups_wanted_) {
    GroupWork group;
    group.table = table_;
    group.node = node_;
    group.range = work_.front();
    group.row_bytes_max = row_bytes_max_;
    work_.pop_front();
    groups.push_back(std::move(group));
  }
  CHECK(!groups.empty());
  const Status status = txn_.scan(groups, arena_, mode_, first_);
  if (!status.ok()) {
    if (is_held_by_another(reason_of(status))) put_back(groups);
    return status;
  }
  for (const GroupWork& group : groups) {
    if (group.result == GroupWork::Result::kSplit) {
      const uint32_t depth = group.range.depth;
      CHECK(depth < kDepthMax);
      work_.push_front(HashRange{group.range.bits | (1ull << depth), depth + 1});
      work_.push_front(HashRange{group.range.bits, depth + 1});
      continue;
    }
    CHECK(group.result == GroupWork::Result::kDone);
    note(group);
    emit(group, batch);
  }
  if (reads() && row_bytes_max_ == kWholeRow) {
    scanned_->keep(std::move(groups));
    txn_.scanned(scanned_);
  }
  const bool long_rows = arena_.allocated_bytes() > kBatchBytesWanted;
  groups_wanted_ = long_rows ? std::max<size_t>(groups_wanted_ / 2, 1)
                             : std::min(groups_wanted_ * 2, kGroupsPerBatch);
  return Status();
}

// The caller may wait for the holder and ask once more: at the owner nothing would be found out
// about it, and what was met already is met again.
void TableScan::put_back(std::span<const GroupWork> groups) {
  CHECK(!groups.empty());
  for (size_t i = groups.size(); i > 0; i--) work_.push_front(groups[i - 1].range);
  if (mode_ == ScanMode::kSerializable) mode_ = ScanMode::kNoWait;
  first_ = false;
}

void TableScan::note(const GroupWork& group) {
  if (txn_.coordinator().history == nullptr || !reads()) return;
  txn_.note_scanned(
      table_, ScannedGroup{group.node, group.gap.key_hash, group.gap.depth, group.gap.read_wts});
}

void TableScan::emit(const GroupWork& group, std::vector<ScannedRow>& batch) {
  for (const ScannedTuple& tuple : group.tuples) {
    std::string_view key, row;
    if (!split_record(tuple.record, key, row)) continue;
    const bool deleted = (tuple.flags & kFlagDeleted) != 0;
    if (reads()) txn_.note_scanned_row(table_, key, tuple.access.read_wts, deleted);
    KeyState* state = txn_.keys().find(table_, key);
    if (deleted) continue;
    const OwnVersion* own = state == nullptr ? nullptr : state->own_before(visible_before_);
    if (own == nullptr) {
      batch.push_back({key, row, tuple.access.read_wts, group.node});
    } else if (!own->deleted) {
      batch.push_back({state->key, own->row, 0, group.node});
    }
  }
}

// Own inserts that the engine does not have. A key that it has was emitted with its group.
void TableScan::own_inserts(std::vector<ScannedRow>& batch) {
  own_done_ = true;
  for (const KeyState& state : txn_.keys().all()) {
    if (state.table != table_ || state.base == KeyState::Base::kExists) continue;
    const OwnVersion* own = state.own_before(visible_before_);
    if (own == nullptr || own->deleted) continue;
    batch.push_back({state.key, own->row, 0, txn_.coordinator().engine.map.primary_of(state.hash)});
  }
}

}  // namespace rdmacc
