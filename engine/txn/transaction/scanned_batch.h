#pragma once
#include <bit>
#include <vector>

#include "engine/txn/stages/scan_groups.h"
#include "rdma/base/check.h"

namespace rdmacc {

// The rows that a scan has returned last, found by key: what is written as it is scanned need not
// be looked up again. The index is made when the first key is asked for, which scans that only read
// never do.
class ScannedBatch {
 public:
  // The tuples' records outlive what is kept here.
  void keep(std::vector<GroupWork>&& groups) {
    groups_ = std::move(groups);
    places_.clear();
  }
  void clear() { keep({}); }

  struct Place {
    std::string_view key;
    const ScannedTuple* tuple = nullptr;
    Access* gap = nullptr;  // of its group; nullptr: not kept
  };
  // nullptr: it is not among them.
  const Place* find(TableId table, std::string_view key, uint64_t hash) {
    if (groups_.empty() || groups_.front().table != table) return nullptr;
    if (places_.empty()) index();
    for (size_t at = place_of(hash);; at = (at + 1) & mask()) {
      const Place& place = places_[at];
      if (place.tuple == nullptr) return nullptr;
      if (place.tuple->access.key_hash == hash && place.key == key) return &place;
    }
  }

 private:
  size_t mask() const { return places_.size() - 1; }
  // Not the low bits: they name the group, of which a batch has neighbours.
  size_t place_of(uint64_t hash) const { return (hash >> 32) & mask(); }

  void index() {
    size_t rows = 0;
    for (const GroupWork& group : groups_) rows += group.tuples.size();
    places_.resize(std::bit_ceil(2 * rows + 1));
    for (const GroupWork& group : groups_) {
      for (const ScannedTuple& tuple : group.tuples) {
        std::string_view key, row;
        const bool there = tuple.kept != nullptr && (tuple.flags & kFlagDeleted) == 0;
        if (!there || !split_record(tuple.record, key, row)) continue;
        size_t at = place_of(tuple.access.key_hash);
        while (places_[at].tuple != nullptr) at = (at + 1) & mask();
        places_[at] = {key, &tuple, group.kept_gap};
      }
    }
    CHECK(places_.size() > rows);  // or a search would have no end
  }

  std::vector<GroupWork> groups_;
  std::vector<Place> places_;
};

}  // namespace rdmacc
