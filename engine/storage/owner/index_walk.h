#pragma once
#include <algorithm>
#include <boost/container/small_vector.hpp>
#include <functional>

#include "engine/storage/layout/hash_index.h"
#include "engine/storage/owner/arena.h"

namespace rdmacc {

// Offsets of a home bucket and of what is chained behind it, and the entries of all of them in
// their order, empty ones included: nearly always of one bucket or two, so that a walk allocates
// nothing.
using BucketChain = boost::container::small_vector<uint64_t, 4>;
using ChainEntries = boost::container::small_vector<uint64_t, 2 * kEntriesPerBucket>;

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

  // False if the chain is broken.
  bool chain(uint64_t group, uint32_t bucket, BucketChain* buckets) const;
  ChainEntries entries(const BucketChain& buckets) const;
  // For a loop over the entries that comes to their headers, which are in no cache: those of some
  // entries are fetched at a time.
  void prefetch_slot_ahead(const ChainEntries& entries, size_t at) const {
    constexpr size_t kAhead = 16;
    if (at == 0) {
      for (size_t i = 0; i < std::min(kAhead, entries.size()); ++i) prefetch_slot_of(entries[i]);
    }
    if (at + kAhead < entries.size()) prefetch_slot_of(entries[at + kAhead]);
  }
  // The bucket where linked() begins to look for a slot, of which the header is there.
  void prefetch_bucket_of(IndexRoot root, uint64_t slot) const;
  // Calls back for every entry of a group that is not empty; false if a chain is broken.
  bool for_each_entry(uint64_t group, const std::function<void(uint64_t entry)>& visit) const;
  bool linked(IndexRoot root, uint64_t slot) const;

 private:
  void prefetch_slot_of(uint64_t entry) const { region_.prefetch_header(entry_offset(entry)); }

  const OwnedRegion& region_;
  const Arena& arena_;
};

}  // namespace rdmacc
