#pragma once
#include <functional>
#include <vector>

#include "engine/storage/layout/hash_index.h"
#include "engine/storage/owner/arena.h"

namespace rdmacc {

// The owner's reading of its part of an index. Entries and, through faulty peers, anything else
// may be nonsense: every offset is checked against the arena before it is followed, every walk
// has a bound. Reads by the CPU; no method yields.
class IndexWalk {
 public:
  IndexWalk(const OwnedRegion& region, const Arena& arena) : region_(region), arena_(arena) {}

  bool root_valid(IndexRoot root) const;
  // Offset of the group in root slot `i`; 0 if there is none that makes sense.
  uint64_t group_at(IndexRoot root, uint64_t i) const;
  uint64_t root_slot(IndexRoot root, uint64_t i) const { return root.offset() + 8 * i; }
  // The group in root slot `i` if `i` is the lowest slot that names it, else 0: so a loop over
  // all slots meets every group once.
  uint64_t group_first_at(IndexRoot root, uint64_t i) const;
  uint32_t depth_of(uint64_t group) const {
    return static_cast<uint32_t>(region_.load(group + kOffsetOfLength));
  }

  // Offsets of a home bucket and what is chained behind it; false if the chain is broken.
  bool chain(uint64_t group, uint32_t bucket, std::vector<uint64_t>* buckets) const;
  // The entries of these buckets in order, empty ones included.
  std::vector<uint64_t> entries(const std::vector<uint64_t>& buckets) const;
  // Calls back for every entry of a group that is not empty; false if a chain is broken.
  bool for_each_entry(uint64_t group, const std::function<void(uint64_t entry)>& visit) const;
  bool linked(IndexRoot root, uint64_t slot) const;

 private:
  const OwnedRegion& region_;
  const Arena& arena_;
};

}  // namespace rdmacc
