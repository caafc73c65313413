#pragma once
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "engine/txn/transaction/history.h"

// What happened to each key: its versions in the order of their stamps, which transactions read
// each, and which found it absent as of when (by a miss or by a scan of its group). Built from the
// transactions that count; views point into the history, which must outlive it. One thread.
//
// A scan costs O(groups · log keys + keys of these groups): it finds its groups' keys by binary
// search, and every one that the same transaction did not look at itself is one miss.

namespace rdmacc {

// What one transaction made of a key; several operations of one transaction are one event.
struct KeyEvent {
  uint64_t stamp = 0;
  uint32_t txn = 0;
  bool needs_live = false;  // else: needs the key to be absent
  bool live_after = false;
};

// A read of the version `stamp`, or a miss as of the gap stamp `stamp`.
struct KeyLook {
  uint64_t stamp = 0;
  uint32_t txn = 0;
  bool by_scan = false;  // a miss that a scan of the key's group implies
};

constexpr bool makes_a_version(HistoryOp op) {
  return op == HistoryOp::kWrite || op == HistoryOp::kInsert || op == HistoryOp::kDelete;
}

struct KeyHistory {
  TableId table = kNoTable;
  std::string_view key;
  std::vector<KeyEvent> events;  // by stamp
  std::vector<KeyLook> reads, misses;
};

class KeyHistories {
 public:
  // `counts[t]`: transaction t is taken as committed.
  KeyHistories(std::span<const HistoryTransaction> history, const std::vector<bool>& counts);

  std::span<const KeyHistory> keys() const { return keys_; }
  const KeyHistory* find(TableId table, std::string_view key) const;

 private:
  struct TableKey {
    TableId table;
    std::string_view key;
    friend bool operator==(const TableKey&, const TableKey&) = default;
  };
  struct TableKeyHash {
    size_t operator()(const TableKey& k) const {
      return std::hash<std::string_view>()(k.key) * 31 + k.table;
    }
  };

  // A key in the order of groups: keys of one node's group are neighbours.
  struct Placed {
    NodeId node;
    uint64_t reversed_hash;  // bits in the opposite order: a group's low bits come first
    uint32_t key;
    friend bool operator<(const Placed& a, const Placed& b) {
      return a.node != b.node ? a.node < b.node : a.reversed_hash < b.reversed_hash;
    }
  };

  uint32_t number_of(TableId table, std::string_view key);
  void number_keys(std::span<const HistoryTransaction> history, const std::vector<bool>& counts);
  void add_transaction(uint32_t number, const HistoryTransaction& transaction);
  void add_write(uint32_t number, uint32_t key, const HistoryEvent& event);
  void place_keys();
  void add_scan(uint32_t number, const HistoryEvent& scan);

  std::vector<KeyHistory> keys_;
  std::unordered_map<TableKey, uint32_t, TableKeyHash> numbers_;
  std::unordered_map<TableId, std::vector<Placed>> keys_of_table_;
  NodeId nodes_ = 0;  // of the cluster: every node has groups of every table that is scanned
  std::vector<uint32_t>
      touched_by_;  // last transaction + 1 that read, missed or wrote the key itself
};

// "t1/k7"
std::string describe_key(const KeyHistory& key);

}  // namespace rdmacc
