#pragma once
#include <vector>

#include "engine/storage/layout/region_layout.h"
#include "engine/storage/owner/owned_region.h"

namespace rdmacc {

// Memory behind the parts of a region that lie in front of its pages. The superblock, control area,
// directory, order area and page table have it from the beginning. Of a log ring only the head has:
// most of the workers that there may be never come, so a ring is backed when its coordinator asks,
// before it logs here for the first time.
//
// The node's thread 0 alone.
class FixedParts {
 public:
  FixedParts(Endpoint& endpoint, const RegionLayout& layout, WorkerId workers_max,
             const OwnedRegion& region)
      : endpoint_(endpoint), layout_(layout), region_(region), rings_(workers_max) {}

  // Of a region that was used before, also the rings that workers have used.
  Status back();
  // May be repeated.
  Status back_log_ring(WorkerId worker);
  uint64_t backed_bytes() const { return backed_bytes_; }

 private:
  Status back_part(uint64_t begin, uint64_t end);

  Endpoint& endpoint_;
  const RegionLayout layout_;
  const OwnedRegion& region_;
  std::vector<bool> rings_;  // by worker: backed
  uint64_t backed_bytes_ = 0;
};

}  // namespace rdmacc
