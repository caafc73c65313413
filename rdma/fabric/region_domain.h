#pragma once
#include "rdma/base/base.h"

namespace rdmacc {

// A part of a node's region that a fabric may register apart, with no more rights for peers than
// they need. All workers may READ every part. The parts of a region follow each other without a
// gap.
struct RegionDomain {
  uint64_t offset = 0;
  uint64_t bytes = 0;
  bool remote_write = true;
  bool remote_atomic = true;
};

}  // namespace rdmacc
