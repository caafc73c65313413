#pragma once
#include <deque>
#include <unordered_set>

#include "engine/txn/transaction/scan_ranges.h"
#include "engine/txn/transaction/transaction.h"

namespace rdmacc {

struct ScannedRow {
  std::string_view key;
  std::string_view row;
  uint64_t version;  // 0: an own write
  NodeId node;
};

// A scan over all rows of a table within a transaction: every group of every node by the protocol,
// own writes laid over what the engine has, own inserts at the end. Rows of a batch live until
// the next one.
class TableScan {
 public:
  TableScan(Transaction& txn, TableId table, uint32_t visible_before, ScanMode mode,
            uint32_t row_bytes_max);

  // An empty batch is the end. After a lock of another transaction (is_held_by_another()) it may be
  // asked for once more, and then does not wait for it.
  Status next(std::vector<ScannedRow>& batch);

 private:
  static constexpr size_t kGroupsPerBatch = 16;
  static constexpr size_t kBatchBytesWanted = 1 << 20;  // rows may be long

  // What it sees is part of the read set, and of the history.
  bool reads() const { return mode_ != ScanMode::kSkipLocked && mode_ != ScanMode::kAsStored; }
  Status add_work();
  Status read_batch(std::vector<ScannedRow>& batch);
  void emit(const GroupWork& group, std::vector<ScannedRow>& batch);
  void put_back(std::span<const GroupWork> groups);
  void note(const GroupWork& group);
  void own_inserts(std::vector<ScannedRow>& batch);

  Transaction& txn_;
  const TableId table_;
  const uint32_t visible_before_;
  ScanMode mode_;
  const uint32_t row_bytes_max_;
  bool first_;  // of its transaction's scans of the table, and no part of it is read again
  VerbArena arena_;
  const std::shared_ptr<ScannedBatch> scanned_ = std::make_shared<ScannedBatch>();
  NodeId node_ = 0;  // whose ranges these are
  RangeWalk walk_;
  std::deque<HashRange> work_;  // taken from it, and halves of groups that were split meanwhile
  size_t groups_wanted_ = 4;    // of the next batch, by what the last had
  bool own_done_ = false;
};

}  // namespace rdmacc
