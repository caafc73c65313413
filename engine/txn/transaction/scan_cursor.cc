#include "engine/txn/transaction/scan_cursor.h"

#include <algorithm>
#include <atomic>

#include "rdma/base/check.h"

namespace rdmacc {
namespace {

// Reading a slot costs less than finding a row by its group.
constexpr uint64_t kSlotsPerRowMax = 2;
// Of a node's rows, so much is read by groups in any case.
constexpr uint64_t kShareByGroups = 16;

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
  auto table = table_here();
  if (!table.ok()) return table.status();
  VerbCounters counters;
  const bool anew = begun_ != walk.node && (*table)->roots[walk.node].patched;
  RDMACC_RETURN_IF_ERROR(engine.tables.load_root(**table, walk.node, anew, counters));
  begun_ = walk.node;
  CachedRoot& root = (*table)->roots[walk.node];
  if (keeps_rows()) txn_.watch_others(root.groups.size());
  while (work_.size() < works_wanted() && !walk.ranges.ended()) {
    work_.push_back(walk.ranges.next(root));
  }
  return Status();
}

// What is next of a node, once all that was taken of it has been read.
Status TableScan::choose_way() {
  if (way_ == Way::kBySlots && !slots_.ended()) return Status();
  if (shared_walk_ != nullptr) {
    const uint64_t word = std::atomic_ref<uint64_t>(*shared_walk_).load();
    return PageWalk::is_one(word) ? take_page() : Status();
  }
  if (way_ == Way::kBySlots) way_ = Way::kByGroups;
  if (!work_.empty()) return Status();
  if (way_ == Way::kGapHeaders && walk_.node != node_) {
    uint64_t slots = 0;
    RDMACC_RETURN_IF_ERROR(find_slots(slots));
    way_ = slots > 0 ? Way::kBySlots : Way::kByGroups;  // a node may have no row
    if (slots == 0) note_slots_read();
    return Status();
  }
  const bool within = walk_.node == node_ && way_ == Way::kByGroups && !considered_;
  return within ? consider_slots() : Status();
}

bool TableScan::may_go_by_slots() const {
  return !to_write_ && keeps_rows() && txn_.may_scan_slots();
}

Result<CachedTable*> TableScan::table_here() const {
  VerbCounters counters;
  return txn_.coordinator().engine.tables.get(table_, counters);
}

// About how many rows the node has.
Status TableScan::count_rows(uint64_t& rows) {
  auto table = table_here();
  if (!table.ok()) return table.status();
  return SlotWalk::count_rows(txn_.coordinator().engine, **table, node_, arena_, rows);
}

// Gap headers of all groups that are left are read before any slot: a scan that soon ends, as one
// with a LIMIT may, has to have come some way before that is likely to pay.
Status TableScan::consider_slots() {
  const uint32_t rows_min = txn_.coordinator().engine.slot_scan_rows_min;
  if (rows_of_node_ < rows_min || !may_go_by_slots()) return Status();
  if (!rows_there_) RDMACC_RETURN_IF_ERROR(count_rows(rows_there_.emplace()));
  if (rows_of_node_ < *rows_there_ / kShareByGroups && rows_min > 1) return Status();
  considered_ = true;
  uint64_t slots = 0;
  RDMACC_RETURN_IF_ERROR(find_slots(slots));
  if (*rows_there_ * kSlotsPerRowMax < slots && rows_min > 1) return Status();
  way_ = Way::kGapHeaders;
  from_bits_ = walk_.ranges.position().bits;
  return Status();
}

// A row that is linked in its group by now is in a page that is there by now.
Status TableScan::find_slots(uint64_t& slots) {
  auto table = table_here();
  if (!table.ok()) return table.status();
  RDMACC_RETURN_IF_ERROR(slots_.begin(txn_.coordinator().engine, **table, node_, arena_));
  slots = slots_.slots();
  return Status();
}

// All nodes: a walk is one by slots, or it is not.
Status TableScan::share() {
  CHECK(shared_walk_ != nullptr && way_ == Way::kByGroups && work_.empty());
  if (!may_go_by_slots()) return Status();
  const EngineContext& engine = txn_.coordinator().engine;
  const NodeId nodes = engine.topology.nodes;
  uint64_t rows = 0, slots = 0, more = 0;
  for (node_ = 0; node_ < nodes; node_++) {
    RDMACC_RETURN_IF_ERROR(count_rows(more));
    rows += more;
  }
  if (rows < engine.slot_scan_rows_min) return Status();
  for (node_ = 0; node_ < nodes; node_++) {
    RDMACC_RETURN_IF_ERROR(find_slots(more));
    slots += more;
  }
  if (rows * kSlotsPerRowMax < slots && engine.slot_scan_rows_min > 1) return Status();
  way_ = Way::kGapHeaders;
  for (node_ = 0; node_ < nodes; node_++) {
    TableWalk walk{node_, RangeWalk()};
    while (!walk.ranges.ended() || !work_.empty()) {
      RDMACC_RETURN_IF_ERROR(take_ranges(walk));
      arena_.reset();
      RDMACC_RETURN_IF_ERROR(read_batch());
    }
  }
  std::atomic_ref<uint64_t>(*shared_walk_).store(PageWalk().pack());
  return Status();
}

// Of a walk by slots that is shared: a page that no other scan takes.
Status TableScan::take_page() {
  EngineContext& engine = txn_.coordinator().engine;
  const std::atomic_ref<uint64_t> shared(*shared_walk_);
  uint64_t word = shared.load();
  for (;;) {
    const PageWalk walk = PageWalk::unpack(word);
    if (walk.node >= engine.topology.nodes) {
      slots_ = SlotWalk();  // whatever was looked at and not taken
      way_ = Way::kBySlots;
      return Status();
    }
    if (way_ != Way::kBySlots || walk.node != node_) {
      uint64_t slots = 0;
      node_ = walk.node;
      RDMACC_RETURN_IF_ERROR(find_slots(slots));
      way_ = Way::kBySlots;
    }
    const std::optional<uint64_t> page = slots_.page_from(walk.page);
    const PageWalk next =
        page ? PageWalk{node_, *page + 1} : PageWalk{static_cast<NodeId>(node_ + 1), 0};
    if (!shared.compare_exchange_strong(word, next.pack())) continue;
    if (page) {
      slots_.go_to_page(*page);
      return Status();
    }
    word = next.pack();
  }
}

// Ranges of one node: what is left of those that were taken before goes first.
Status TableScan::add_work() {
  RDMACC_RETURN_IF_ERROR(choose_way());
  if (way_ == Way::kBySlots || work_.size() >= works_wanted()) return Status();
  const NodeId nodes = txn_.coordinator().engine.topology.nodes;
  if (shared_walk_ == nullptr) {
    const bool other_node = walk_.node != node_;
    if (walk_.node == nodes || (other_node && (!work_.empty() || way_ == Way::kGapHeaders))) {
      return Status();
    }
    if (other_node) {
      rows_of_node_ = 0;
      rows_there_.reset();
      considered_ = false;
    }
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

// The next groups, as many as the batch is to have.
void TableScan::begin_groups() {
  const bool rows = mode_ == ScanMode::kQuiet || keeps_rows();
  // Own writes are found by their keys, and so are rows in a history.
  const bool headers_only =
      wants_.count_only && txn_.keys().all().empty() && txn_.coordinator().history == nullptr;
  const uint32_t head_bytes = record_head_bytes();
  const bool by_slots = way_ == Way::kBySlots;
  batch_at_ = slots_.position();
  groups_.resize(by_slots ? groups_wanted_ : std::min(work_.size(), works_wanted()));
  for (size_t i = 0; i < groups_.size(); i++) {
    GroupWork& group = groups_[i];
    if (by_slots && slots_.ended()) {
      groups_.resize(i);
      break;
    }
    group.begin(table_, node_, by_slots ? HashRange() : work_.front());
    if (way_ == Way::kGapHeaders) group.part = GroupWork::Part::kGapHeader;
    if (by_slots) {
      group.part = GroupWork::Part::kSlots;
      group.slots = slots_.next();
      group.slots.from_bits = from_bits_;
    }
    group.row_bytes_max = wants_.count_only ? 0 : wants_.row_bytes_max;
    group.record_head_bytes = head_bytes;
    group.takes_rows = rows;
    group.headers_only = headers_only;
    if (!by_slots) work_.pop_front();
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
  rows_of_node_ += rows_;
  if (way_ == Way::kBySlots && slots_.ended()) note_slots_read();
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
  if (way_ == Way::kBySlots) {
    slots_.go_back_to(batch_at_);
  } else {
    for (size_t i = groups_.size(); i > 0; i--) work_.push_front(groups_[i - 1].range);
  }
  if (mode_ == ScanMode::kSerializable) mode_ = ScanMode::kNoWait;
  first_ = false;
}

void TableScan::note(const GroupWork& group) {
  if (txn_.coordinator().history == nullptr || !reads()) return;
  if (group.part == GroupWork::Part::kSlots) return;
  const ScannedGroup scanned{group.node, group.gap.key_hash, group.gap.depth, group.gap.read_wts};
  const bool rows_follow = way_ == Way::kGapHeaders && shared_walk_ == nullptr;
  if (rows_follow) {
    rows_follow_of_.push_back(scanned);
  } else {
    txn_.note_scanned(table_, scanned);
  }
}

// The groups whose gap headers it has read, once it has come through the slots: of a scan that is
// given up before, their other rows were not looked at.
void TableScan::note_slots_read() {
  for (const ScannedGroup& scanned : rows_follow_of_) txn_.note_scanned(table_, scanned);
  rows_follow_of_.clear();
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
