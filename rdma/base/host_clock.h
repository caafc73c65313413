#pragma once
#include <algorithm>

#include "rdma/base/base.h"

#ifdef __x86_64__
#include <x86intrin.h>
#endif

namespace rdmacc {

// CLOCK_MONOTONIC for one thread that asks for it all the time. Where the kernel itself trusts the
// processor's time stamp counter (its clock source is "tsc"), a reading is that counter, and what
// it counts since the latest system call; there is one in every millisecond, so that clocks of
// different threads and processes stay together. Elsewhere each reading is a system call. It never
// steps back.
class HostClock {
 public:
  HostClock();
  uint64_t now_ns() {
    const uint64_t counted = counts_ ? count() - anchor_count_ : UINT64_MAX;
    // Also when the counter went back: the difference is huge then.
    if (counted >= counts_max_) [[unlikely]]
      return look_anew();
    last_ns_ = std::max(last_ns_, anchor_ns_ + (counted * ns_per_count_ >> 32));
    return last_ns_;
  }
  // What now_ns() gave last.
  uint64_t last_ns() const { return last_ns_; }

  // The plain system call.
  static uint64_t monotonic_ns();

 private:
  static uint64_t count() {
#ifdef __x86_64__
    return __rdtsc();
#else
    return 0;
#endif
  }
  uint64_t look_anew();

  const bool counts_;                          // the counter may be used
  uint64_t anchor_count_ = 0, anchor_ns_ = 0;  // at the latest system call
  uint64_t first_count_ = 0, first_ns_ = 0;    // at the first: what the rate is measured from
  uint64_t ns_per_count_ = 0;                  // fixed point, 32 bits; 0: not known yet
  uint64_t counts_max_ = 0;                    // from the anchor on; then it is time to look anew
  uint64_t last_ns_ = 0;
};

}  // namespace rdmacc
