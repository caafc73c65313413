#pragma once
#include <algorithm>

#include "engine/storage/layout/lease_word.h"
#include "rdma/fabric/fabric.h"

namespace rdmacc {

// Draws the leases of a worker's transactions (DRTM), each of which ends at another time, so that
// its word is no other transaction's. One per worker, its thread alone.
class LeaseClock {
 public:
  explicit LeaseClock(Endpoint& endpoint) : endpoint_(endpoint) {}

  // 0: the clock is not exact enough.
  uint64_t next() {
    const ClockBounds now = endpoint_.clock_bounds();
    const uint64_t end_us = std::max(last_us_ + 1, now.latest_us + kLeaseUs);
    if (!may_draw_lease(end_us, now.earliest_us)) return 0;
    last_us_ = end_us;
    return lease_word(end_us, endpoint_.worker());
  }

 private:
  Endpoint& endpoint_;
  uint64_t last_us_ = 0;
};

}  // namespace rdmacc
