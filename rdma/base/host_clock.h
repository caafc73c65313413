#pragma once
#include "rdma/base/base.h"

namespace rdmacc {

// CLOCK_MONOTONIC for one thread that asks for it all the time. Where the kernel itself trusts the
// processor's time stamp counter (its clock source is "tsc"), a reading is that counter, and what
// it counts since the latest system call; there is one in every millisecond, so that clocks of
// different threads and processes stay together. Elsewhere each reading is a system call. It never
// steps back.
class HostClock {
 public:
  HostClock();
  uint64_t now_ns();

  // The plain system call.
  static uint64_t monotonic_ns();

 private:
  uint64_t look_anew();

  const bool counts_;                          // the counter may be used
  uint64_t anchor_count_ = 0, anchor_ns_ = 0;  // at the latest system call
  uint64_t first_count_ = 0, first_ns_ = 0;    // at the first: what the rate is measured from
  uint64_t ns_per_count_ = 0;                  // fixed point, 32 bits; 0: not known yet
  uint64_t counts_max_ = 0;                    // from the anchor on; then it is time to look anew
  uint64_t last_ns_ = 0;
};

}  // namespace rdmacc
