#pragma once
#include <deque>
#include <optional>

#include "engine/api/row_view.h"
#include "engine/txn/transaction/scan_ranges.h"
#include "engine/txn/transaction/slot_walk.h"
#include "engine/txn/transaction/transaction.h"

namespace rdmacc {

// A scan over all rows of a table within a transaction: every group of every node by the protocol,
// own writes laid over what the engine has, own inserts at the end. Rows of a batch live until
// the next one. Where a table has much of the slots of its size, a scan looks, from
// some thousand rows on, at the gap headers of the groups that are left, and then at the slots as
// they lie in memory (scan_slots.h): a group's rows may be anywhere, and each costs a cache miss.
class TableScan {
 public:
  // `shared_walk`: a word, 0 at first, of which scans that share it take their ranges; nullptr: the
  // scan goes through the whole table.
  TableScan(Transaction& txn, TableId table, uint32_t visible_before, ScanMode mode,
            ScanWants wants, uint64_t* shared_walk);

  // In place of a scan, by the transaction that has guests and before they begin: is the walk that
  // is shared to be one by slots, for which gap headers are read once for all?
  Status share();

  // An empty batch is the end. After a lock of another transaction (is_held_by_another()) it may be
  // asked for once more, and then does not wait for it.
  Status next(std::vector<RowView>& batch);
  // In its place: how many rows the batch has. 0 is the end.
  Status count(uint64_t& rows);

 private:
  static constexpr size_t kGroupsPerBatch = 32;
  static constexpr size_t kGapHeadersPerBatch = 512;
  static constexpr size_t kBatchBytesWanted = 1 << 20;  // rows may be long

  // What it sees is part of the read set, and of the history.
  bool reads() const { return mode_ == ScanMode::kSerializable || mode_ == ScanMode::kNoWait; }
  bool keeps_rows() const {
    return mode_ == ScanMode::kSerializable && txn_.scan_takes_rows(table_, first_, to_write_);
  }
  enum class Way : uint8_t {
    kByGroups,
    kGapHeaders,  // of the groups of the node that are left; then its slots
    kBySlots,
  };
  size_t works_wanted() const {
    return way_ == Way::kGapHeaders ? kGapHeadersPerBatch : groups_wanted_;
  }
  Status next_rows();
  Status choose_way();
  bool may_go_by_slots() const;
  Result<CachedTable*> table_here() const;
  Status count_rows(uint64_t& rows);
  Status consider_slots();
  bool are_slots_worth_it(uint64_t rows, uint64_t slots) const;
  Status find_slots();
  Status take_page();
  bool has_work() const { return way_ == Way::kBySlots ? !slots_.ended() : !work_.empty(); }
  Status add_work();
  Status take_ranges(TableWalk& walk);
  Status read_batch();
  uint32_t record_head_bytes() const;
  void begin_groups();
  void put_back_groups();
  void halve(HashRange range);
  void emit(const ScanWork& group);
  template <typename Record>
  void emit(const Record& record, uint64_t hash, uint64_t version, NodeId node);
  void give(std::string_view key, std::string_view row, uint64_t version, NodeId node) {
    rows_++;
    if (batch_ != nullptr) batch_->push_back({true, key, row, version, node});
  }
  void note(const ScanWork& group);
  void note_groups_of_slots();
  void own_inserts();

  Transaction& txn_;
  const TableId table_;
  const uint32_t visible_before_;
  ScanMode mode_;
  bool conflicts_ = false;  // a quiet scan has met a row that an own insert took for absent
  const ScanWants wants_;
  const bool to_write_;  // or it fails at locks
  bool first_;           // of its transaction's scans of the table, and no part of it is read again
  VerbArena arena_;
  const std::shared_ptr<ScannedBatch> scanned_ = std::make_shared<ScannedBatch>();
  std::vector<ScanWork> groups_;           // of the batch
  std::vector<RowView>* batch_ = nullptr;  // nullptr: rows are only counted
  uint64_t rows_ = 0;                      // of the batch
  TableWalk walk_;
  uint64_t* const shared_walk_;
  NodeId node_ = 0;              // whose ranges these are:
  std::deque<HashRange> work_;   // taken from the walk, and halves of groups that were split since
  std::optional<NodeId> begun_;  // the node whose root array was looked at last
  Way way_ = Way::kByGroups;
  bool considered_ = false;                   // whether the node's rest is to be read by slots
  std::optional<uint64_t> rows_there_;        // of the node, about
  uint64_t rows_of_node_ = 0;                 // until then
  uint64_t from_bits_ = 0;                    // where its rest begins
  std::vector<ScannedGroup> groups_to_note_;  // whose rows are among the slots
  SlotWalk slots_;                            // of the node, while it is read by them
  SlotWalk::Position batch_at_;               // where the batch has begun
  size_t groups_wanted_ = 4;                  // of the next batch, by what the last had
  size_t key_bytes_max_ = 0;                  // of the rows so far
  bool own_done_ = false;
};

}  // namespace rdmacc
