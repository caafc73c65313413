#pragma once
#include <algorithm>

#include "rdma/fabric/fabric.h"

namespace rdmacc {

// ctts: 48 bits of microseconds since the cluster's epoch, 16 bits of worker id. Unique in the
// cluster and strictly increasing per worker. One clock per worker, its thread alone.
constexpr WorkerId worker_of_ctts(uint64_t ctts) { return static_cast<WorkerId>(ctts & 0xFFFF); }

class TimestampClock {
 public:
  explicit TimestampClock(Endpoint& endpoint) : endpoint_(endpoint) {}

  uint64_t next() {
    last_us_ = std::max(last_us_ + 1, endpoint_.now_us());
    return (last_us_ << 16) | endpoint_.worker();
  }
  // Larger than whatever was given or seen before, as next() is, but the clock is not read: for a
  // stamp that is to be behind others, and need not be of now.
  uint64_t next_in_order() { return (++last_us_ << 16) | endpoint_.worker(); }
  // Whatever next() gives from now on is larger than `seen` (a wts, rts or floor).
  void observe(uint64_t seen) { last_us_ = std::max(last_us_, seen >> 16); }
  uint64_t last() const { return (last_us_ << 16) | endpoint_.worker(); }

 private:
  Endpoint& endpoint_;
  uint64_t last_us_ = 0;
};

}  // namespace rdmacc
