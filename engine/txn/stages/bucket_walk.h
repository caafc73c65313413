#pragma once
#include <boost/container/small_vector.hpp>
#include <span>

#include "engine/txn/driver/engine_context.h"

namespace rdmacc {

// One walk along a home bucket's chain between two looks at its gap header.
struct BucketWalk {
  // In:
  GlobalAddress group;
  uint32_t bucket = 0;
  uint16_t tag = 0;
  bool header_only = false;  // one look at the gap header will do
  // Out:
  Header pre_read{}, post_read{};  // of the gap header, before and after all buckets
  boost::container::small_vector<uint64_t, 2> candidates;  // tuple offsets of entries with the tag
  // Every entry with its place: filled when `all_entries`.
  bool all_entries = false;
  struct Place {
    uint64_t offset;  // of the entry
    uint64_t value;
  };
  boost::container::small_vector<Place, kEntriesPerBucket> places;
};

// Walks all chains together; the last round of each walk has its post-read. kCorrupt when a chain
// leaves the region or does not end.
Status walk_buckets(StageContext& context, std::span<BucketWalk> walks);

}  // namespace rdmacc
