// Which parts of a table a scan reads next: groups, or gap headers and then slots, alone or with
// others that share its walk.
#include <atomic>

#include "engine/txn/transaction/scan_cursor.h"
#include "rdma/base/check.h"

namespace rdmacc {
namespace {

// Of a node's rows, so much is read by groups in any case.
constexpr uint64_t kShareByGroups = 16;

}  // namespace

// As many ranges as the next batch wants, as far as the walk's node has them.
Status TableScan::take_ranges(TableWalk& walk) {
  EngineContext& engine = txn_.coordinator().engine;
  auto table = table_here();
  if (!table.ok()) return table.status();
  VerbCounters& counters = engine.worker.counters();
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
    RDMACC_RETURN_IF_ERROR(find_slots());
    way_ = slots_.ended() ? Way::kByGroups : Way::kBySlots;  // a node may have no row
    if (slots_.ended()) note_groups_of_slots();
    return Status();
  }
  const bool within = walk_.node == node_ && way_ == Way::kByGroups && !considered_;
  return within ? consider_slots() : Status();
}

bool TableScan::may_go_by_slots() const {
  // What is written later is looked up, and has to be found in the read set then.
  const bool looked_up_later = to_write_ && !wants_.writes_at_once;
  return !looked_up_later && keeps_rows() && txn_.may_scan_slots();
}

Result<CachedTable*> TableScan::table_here() const {
  EngineContext& engine = txn_.coordinator().engine;
  return engine.tables.get(table_, engine.worker.counters());
}

// About how many rows the node has.
Status TableScan::count_rows(uint64_t& rows) {
  return SlotWalk::count_rows(txn_.coordinator().engine, table_, node_, arena_, rows);
}

bool TableScan::are_slots_worth_it(uint64_t rows, uint64_t slots) const {
  return rows * txn_.coordinator().engine.slot_scans.slots_per_row_max >= slots;
}

// Gap headers of all groups that are left are read before any slot: a scan that soon ends, as one
// with a LIMIT may, has to have come some way before that is likely to pay.
Status TableScan::consider_slots() {
  if (rows_of_node_ < txn_.coordinator().engine.slot_scans.rows_min || !may_go_by_slots()) {
    return Status();
  }
  if (!rows_there_) RDMACC_RETURN_IF_ERROR(count_rows(rows_there_.emplace()));
  if (rows_of_node_ < *rows_there_ / kShareByGroups) return Status();
  considered_ = true;
  RDMACC_RETURN_IF_ERROR(find_slots());
  if (!are_slots_worth_it(*rows_there_, slots_.slots())) return Status();
  way_ = Way::kGapHeaders;
  from_bits_ = walk_.ranges.position().bits;
  return Status();
}

// A row that is linked in its group by now is in a page that is there by now.
Status TableScan::find_slots() {
  auto table = table_here();
  if (!table.ok()) return table.status();
  return slots_.begin(txn_.coordinator().engine, **table, node_, arena_);
}

// All nodes: a walk is one by slots, or it is not.
Status TableScan::share() {
  CHECK(shared_walk_ != nullptr && way_ == Way::kByGroups && work_.empty());
  if (!may_go_by_slots()) return Status();
  const EngineContext& engine = txn_.coordinator().engine;
  const NodeId nodes = engine.topology.nodes;
  uint64_t rows = 0, slots = 0;
  for (node_ = 0; node_ < nodes; node_++) {
    uint64_t here = 0;
    RDMACC_RETURN_IF_ERROR(count_rows(here));
    rows += here;
  }
  if (rows < engine.slot_scans.rows_min) return Status();
  for (node_ = 0; node_ < nodes; node_++) {
    RDMACC_RETURN_IF_ERROR(find_slots());
    slots += slots_.slots();
  }
  if (!are_slots_worth_it(rows, slots)) return Status();
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
      node_ = walk.node;
      RDMACC_RETURN_IF_ERROR(find_slots());
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
    ScanWork& group = groups_[i];
    if (by_slots && slots_.ended()) {
      groups_.resize(i);
      break;
    }
    group.begin(table_, node_, by_slots ? HashRange() : work_.front());
    if (way_ == Way::kGapHeaders) group.part = ScanWork::Part::kGapHeader;
    if (by_slots) {
      group.part = ScanWork::Part::kSlots;
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

}  // namespace rdmacc
