#pragma once
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <unordered_map>
#include <unordered_set>

#include "engine/durable/data_folder.h"

namespace rdmacc {

// What a node's folder holds when the node starts: of each key the newest write of the log, the
// tables, and the rows of the checkpoint, which are read when they are wanted. Where others have
// writes of the same transactions that this node's log lacks, they are added.
class StoredLog {
 public:
  // Reads the log. A block that was being written is cut off: `told` says so. kCorrupt: something
  // is damaged or missing; kInvalidArgument: the files are another node's.
  Status read(const DataFolder& folder, const SegmentIdentity& own,
              const std::function<void(const std::string&)>& told);

  bool empty() const { return generation_ == 0; }
  bool has_checkpoint() const { return checkpoint_ != 0; }
  // Tables, or writes, of tables that have been dropped too.
  bool has_content() const {
    return !tables_.empty() || checkpoint_rows_ + log_writes_ > 0 || !transactions_.empty() ||
           !prepared_.empty();
  }
  uint64_t generation() const { return generation_; }      // 0: there was nothing
  uint64_t last_segment() const { return last_segment_; }  // 0: none
  const std::map<TableId, ListedTable>& tables() const { return tables_; }
  void keep_tables(const std::map<TableId, ListedTable>& those_of_node_0);

  // A write of this node, by another node's log.
  void take(const RedoWrite& write, uint64_t stamp);
  // Visits each transaction of its log once for each other node that wrote in it and has not said
  // to have its own part: that node may lack it. The views end with the call.
  Status for_each_undelivered(
      const std::function<Status(NodeId to, const RedoWrites& whole)>& visit) const;
  // Is it one of the log's transactions?
  bool has(uint64_t lock_ctts) const {
    return transactions_.contains(lock_ctts) || prepared_.contains(lock_ctts);
  }
  // Those that wrote on other nodes as well.
  std::vector<std::pair<NodeId, uint64_t>> shared_transactions() const;

  // Transactions that another system decides and whose end this log does not know: none of their
  // writes have been taken. In the order of lock_ctts; at most `most` behind `after`.
  std::vector<InDoubt> prepared(uint64_t after, size_t most) const;
  // How one has ended, as far as this log knows.
  std::optional<bool> committed(uint64_t lock_ctts) const;
  // Takes the writes of one that is prepared, or forgets them.
  void decide(uint64_t lock_ctts, bool committed);

  // Every row that the node has, once, in no order; tables that are gone are left out.
  Status for_each_row(const std::function<Status(const RedoRow&)>& visit);
  uint64_t checkpoint_rows() const { return checkpoint_rows_; }
  uint64_t log_writes() const { return log_writes_; }

 private:
  struct Newest {
    uint64_t stamp = 0;
    bool deleted = false;
    std::string row;
  };
  using Keys = std::unordered_map<std::string, Newest>;

  Status read_checkpoint_tables();
  Status read_log_segment(uint64_t number, bool last,
                          const std::function<void(const std::string&)>& told);
  void take(const RedoWrites& writes);
  void settle_prepared();
  Status take_prepared(std::span<const std::byte> body);
  Status take_record(uint8_t kind, std::span<const std::byte> body);
  Status check_identity(const std::string& path, const SegmentIdentity& found,
                        SegmentKind kind) const;

  const DataFolder* folder_ = nullptr;
  SegmentIdentity own_;
  uint64_t generation_ = 0;
  uint64_t checkpoint_ = 0;  // its number; 0: there is none
  uint64_t last_segment_ = 0;
  std::map<TableId, ListedTable> tables_;
  std::unordered_map<TableId, Keys> newest_;
  std::vector<std::vector<std::byte>> shared_;           // records of the log
  std::unordered_set<uint64_t> transactions_;            // that have committed
  std::map<uint64_t, std::vector<std::byte>> prepared_;  // lock_ctts: the record
  std::unordered_map<uint64_t, bool> decided_;
  std::set<std::pair<NodeId, uint64_t>> covered_;
  uint64_t checkpoint_rows_ = 0, log_writes_ = 0;
};

}  // namespace rdmacc
