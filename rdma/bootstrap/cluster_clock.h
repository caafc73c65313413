#pragma once
#include <atomic>

#include "rdma/bootstrap/claim_table.h"

namespace rdmacc {

// Nanoseconds since the cluster's epoch as node 0 counts them. A host counts with its own
// CLOCK_MONOTONIC and an offset: on node 0's host a known one, elsewhere the middle of the fastest
// question and answer so far, which is off by half of what that took, and by what the two clocks
// have drifted apart since. set() under the member's mutex, the rest from any thread.
class ClusterClock {
 public:
  void set_epoch(uint64_t monotonic_ns) {
    exact_ = true;
    epoch_ns_.store(static_cast<int64_t>(monotonic_ns));
    error_ns_.store(0);
  }

  // An answer that came when our clock showed `received_ns`, to a question of `asked_ns`.
  void set(const ClockReading& reading, const RandomToken& own_boot_id, uint64_t asked_ns,
           uint64_t received_ns) {
    if (reading.boot_id == own_boot_id) return set_epoch(reading.epoch_ns);
    const uint64_t error_ns = (received_ns - asked_ns) / 2 + 1;
    if (!exact_ && estimated_at_ns_ != 0 && error_ns >= error_now(received_ns)) return;
    exact_ = false;
    estimated_at_ns_.store(received_ns);
    error_ns_.store(error_ns);
    epoch_ns_.store(static_cast<int64_t>(asked_ns + error_ns) -
                    static_cast<int64_t>(reading.now_ns));
  }

  uint64_t now_ns() {
    const int64_t since = static_cast<int64_t>(monotonic_now_ns()) - epoch_ns_.load();
    const uint64_t now = since > 0 ? static_cast<uint64_t>(since) : 0;
    if (exact_.load(std::memory_order_relaxed)) return now;
    // A better estimate may lie behind what was told before.
    uint64_t last = last_ns_.load();
    while (last < now && !last_ns_.compare_exchange_weak(last, now)) {
    }
    return std::max(last, now);
  }

  bool exact() const { return exact_.load(); }
  uint64_t error_ns() const { return exact_ ? 0 : error_now(monotonic_now_ns()); }

 private:
  static constexpr uint64_t kDriftPerMillion = 200;  // of two clocks within their tolerance

  uint64_t error_now(uint64_t monotonic_ns) const {
    const uint64_t age_ns = monotonic_ns - estimated_at_ns_.load();
    return error_ns_.load() + age_ns / 1'000'000 * kDriftPerMillion;
  }

  std::atomic<bool> exact_ = true;
  std::atomic<int64_t> epoch_ns_ = 0;  // of our CLOCK_MONOTONIC
  std::atomic<uint64_t> error_ns_ = 0, estimated_at_ns_ = 0;
  std::atomic<uint64_t> last_ns_ = 0;
};

}  // namespace rdmacc
