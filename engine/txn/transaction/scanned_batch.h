#pragma once
#include <vector>

#include "engine/txn/stages/scan_work.h"
#include "rdma/base/check.h"

namespace rdmacc {

// The rows that a scan has returned last, found by key: what is written as it is scanned need not
// be looked up again. They are written mostly in the order in which they were returned, so that a
// search goes on where the one before has ended; else it costs no more than some tens of groups,
// and the rows of one.
class ScannedBatch {
 public:
  // The tuples' records outlive what is kept here. In its place come groups whose memory may be
  // used again.
  void keep(std::vector<ScanWork>& groups) {
    groups_.swap(groups);
    kept_ = !groups_.empty();
    group_ = 0;
  }
  void clear() { kept_ = false; }

  struct Found {
    std::string_view row;
    const ScannedTuple* tuple = nullptr;  // either a tuple
    const ScannedRow* read = nullptr;     // or what was only read
    Access* gap = nullptr;                // of its group; nullptr: not kept
    bool found() const { return tuple != nullptr || read != nullptr; }
  };
  Found find(TableId table, std::string_view key, uint64_t hash) {
    if (!kept_ || groups_.front().table != table) return {};
    for (size_t looked = 0; looked < groups_.size(); looked++) {
      const ScanWork& group = groups_[group_];
      if (group_bits_of(hash, group.range.depth) == group.range.bits) {
        const Found found = find_in(group, key, hash);
        if (found.found()) return found;  // and the next one is likely to be here, too
      }
      group_ = group_ + 1 < groups_.size() ? group_ + 1 : 0;
    }
    return {};
  }

 private:
  Found find_in(const ScanWork& group, std::string_view key, uint64_t hash) {
    Found found;
    found.gap = group.kept_gap;
    const auto is_it = [&](uint64_t its_hash, uint32_t flags, std::string_view record) {
      std::string_view its_key;
      return its_hash == hash && (flags & kFlagDeleted) == 0 &&
             split_record(record, its_key, found.row) && its_key == key;
    };
    for (const ScannedRow& row : group.rows) {
      if (!is_it(row.read.key_hash, row.flags, row.record)) continue;
      found.read = &row;
      return found;
    }
    for (const ScannedTuple& tuple : group.tuples) {
      if (tuple.kept == nullptr) continue;
      if (!is_it(tuple.access.key_hash, tuple.flags, tuple.record)) continue;
      found.tuple = &tuple;
      return found;
    }
    return {};
  }

  bool kept_ = false;
  std::vector<ScanWork> groups_;
  size_t group_ = 0;  // where the next search begins
};

}  // namespace rdmacc
