#include "engine/txn/transaction/scan_cursor.h"

#include <algorithm>
#include <bit>

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

// The hash ranges of a node's groups, as the cached root array has them: a group that fills n of
// its slots has log2(n) bits less than the array.
Status TableScan::plan_node() {
  EngineContext& engine = txn_.coordinator().engine;
  VerbCounters counters;
  auto table = engine.tables.get(table_, counters);
  if (!table.ok()) return table.status();
  RDMACC_RETURN_IF_ERROR(engine.tables.load_root(**table, node_, false, counters));
  if (!plan_ranges((*table)->roots[node_].groups, work_)) {
    work_.assign(1, HashRange{0, 0});
  }
  planned_ = true;
  return Status();
}

// Where this fails, the whole space as one range is always right: a group that covers only a
// part of a range has it halved, at the price of one READ of a gap header each time.
bool plan_ranges(std::span<const uint64_t> groups, std::deque<HashRange>& ranges) {
  if (!std::has_single_bit(groups.size())) return false;
  // A group of depth n is at every place that has its n bits, so at the one that differs in the
  // next bit alone.
  const auto depth_at = [&](uint64_t place) {
    auto depth = static_cast<uint32_t>(std::countr_zero(groups.size()));
    while (depth > 0 && groups[place ^ (1ull << (depth - 1))] == groups[place]) depth--;
    return depth;
  };
  ranges.clear();
  uint64_t covered = 0;
  for (uint64_t place = 0; place < groups.size(); place++) {
    const uint32_t depth = depth_at(place);
    const uint64_t first = group_bits_of(place, depth);
    if (first == place) {
      ranges.push_back(HashRange{place, depth});
      covered += groups.size() >> depth;
    } else if (groups[first] != groups[place] || depth_at(first) != depth) {
      return false;
    }
  }
  // Every place is in its own group's range, so that what is covered twice makes too many. A group
  // with two ranges is no group's whole range.
  std::vector<uint64_t> owners;
  for (const HashRange& range : ranges) owners.push_back(groups[range.bits]);
  std::sort(owners.begin(), owners.end());
  return covered == groups.size() &&
         std::adjacent_find(owners.begin(), owners.end()) == owners.end();
}

Status TableScan::next(std::vector<ScannedRow>& batch) {
  batch.clear();
  scanned_->clear();  // it refers to the arena
  arena_.reset();
  const NodeId nodes = txn_.coordinator().engine.topology.nodes;
  while (batch.empty() && node_ < nodes) {
    if (!planned_) RDMACC_RETURN_IF_ERROR(plan_node());
    if (work_.empty()) {
      node_++;
      planned_ = false;
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
  RDMACC_RETURN_IF_ERROR(txn_.scan(groups, arena_, mode_, first_));
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
