#pragma once
#include <unordered_map>
#include <vector>

#include "engine/txn/stages/scan_work.h"
#include "rdma/base/check.h"

namespace rdmacc {

// The rows that a scan has returned last, found by key: what is written as it is scanned need not
// be looked up again. They are written mostly in the order in which they were returned, so that a
// search begins where the one before has ended: all together pass over each row once. A key that is
// not found so may be in no batch at all, and others like it may follow: from then on the rows of
// the batch are found by their hashes.
class ScannedBatch {
 public:
  // The tuples' records outlive what is kept here. In its place come groups whose memory may be
  // used again.
  void keep(std::vector<ScanWork>& groups) {
    groups_.swap(groups);
    kept_ = !groups_.empty();
    next_ = Place{};
    by_hash_.clear();
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
    if (by_hash_.empty()) {
      for (Place place = next_; settle(place); place.entry++) {
        const Found found = look_at(place, key, hash);
        if (!found.found()) continue;
        next_ = {place.group, place.entry + 1};
        return found;
      }
      for (Place place; settle(place); place.entry++) by_hash_.emplace(hash_at(place), place);
    }
    const auto [first, last] = by_hash_.equal_range(hash);
    for (auto each = first; each != last; ++each) {
      const Found found = look_at(each->second, key, hash);
      if (found.found()) return found;
    }
    return {};
  }

 private:
  // An entry of a group: its rows come before its tuples.
  struct Place {
    uint32_t group = 0, entry = 0;
  };
  static size_t entries_of(const ScanWork& group) {
    return group.rows.size() + group.tuples.size();
  }
  // Behind a group's last entry is the next group's first. False: there is none.
  bool settle(Place& place) const {
    while (place.group < groups_.size() && place.entry >= entries_of(groups_[place.group])) {
      place = {place.group + 1, 0};
    }
    return place.group < groups_.size();
  }

  Found look_at(Place place, std::string_view key, uint64_t hash) const {
    const ScanWork& group = groups_[place.group];
    Found found;
    found.gap = group.kept_gap;
    const auto is_it = [&](uint64_t its_hash, uint32_t flags, std::string_view record) {
      std::string_view its_key;
      return its_hash == hash && (flags & kFlagDeleted) == 0 &&
             split_record(record, its_key, found.row) && its_key == key;
    };
    if (place.entry < group.rows.size()) {
      const ScannedRow& row = group.rows[place.entry];
      if (is_it(row.read.key_hash, row.flags, row.record)) found.read = &row;
      return found;
    }
    const ScannedTuple& tuple = group.tuples[place.entry - group.rows.size()];
    if (tuple.kept != nullptr && is_it(tuple.access.key_hash, tuple.flags, tuple.record)) {
      found.tuple = &tuple;
    }
    return found;
  }

  uint64_t hash_at(Place place) const {
    const ScanWork& group = groups_[place.group];
    return place.entry < group.rows.size()
               ? group.rows[place.entry].read.key_hash
               : group.tuples[place.entry - group.rows.size()].access.key_hash;
  }

  bool kept_ = false;
  std::vector<ScanWork> groups_;
  Place next_;                                        // where the next search begins
  std::unordered_multimap<uint64_t, Place> by_hash_;  // empty: nothing was missing yet
};

}  // namespace rdmacc
