#pragma once
#include <algorithm>
#include <atomic>

#include "rdma/bootstrap/claim_table.h"
#include "rdma/fabric/fabric.h"

namespace rdmacc {

// Nanoseconds since the cluster's epoch as node 0 counts them. A host counts with its own
// CLOCK_MONOTONIC and an offset: on node 0's host a known one, elsewhere the middle of the fastest
// question and answer so far, which is off by half of what that took, and by what the two clocks
// have drifted apart since. It counts for one memory of node 0: that of the first reading. Time
// begins anew with the next one, and a deadline that was set before would be as far away as the
// cluster was old. set(), counts() and forget() under the member's mutex, the rest from any thread.
class ClusterClock {
 public:
  void set_epoch(uint64_t monotonic_ns) { store({static_cast<int64_t>(monotonic_ns), 0, 0, true}); }

  // Of the memory of earlier readings? Nothing of another one may be set.
  bool counts(const ClockReading& reading) const {
    return memory_id_ == 0 || memory_id_ == reading.memory_id;
  }
  // What was set, before anything counts by it.
  void forget() {
    memory_id_ = 0;
    store({});
    last_ns_ = 0;
  }

  // An answer that came when our clock showed `received_ns`, to a question of `asked_ns`.
  void set(const ClockReading& reading, const RandomToken& own_boot_id, uint64_t asked_ns,
           uint64_t received_ns) {
    CHECK(counts(reading));
    memory_id_ = reading.memory_id;
    if (reading.boot_id == own_boot_id) return set_epoch(reading.epoch_ns);
    const uint64_t error_ns = (received_ns - asked_ns) / 2 + 1;
    const Estimate known = load();
    const bool estimated = !known.exact && known.at_ns != 0;
    if (estimated && error_ns >= known.error_at(received_ns)) return;
    store({static_cast<int64_t>(asked_ns + error_ns) - static_cast<int64_t>(reading.now_ns),
           error_ns, received_ns, false});
  }

  // Never steps back: a better estimate may lie behind what was told before.
  uint64_t now_ns() {
    const Estimate known = load();
    const uint64_t now = known.time_at(monotonic_now_ns());
    if (known.exact) return now;
    uint64_t last = last_ns_.load();
    while (last < now && !last_ns_.compare_exchange_weak(last, now)) {
    }
    return std::max(last, now);
  }

  // Between which times it is, of the latest estimate alone.
  ClockBounds bounds() const {
    const Estimate known = load();
    const uint64_t monotonic_ns = monotonic_now_ns();
    const uint64_t now = known.time_at(monotonic_ns), error = known.error_at(monotonic_ns);
    return {(now - std::min(now, error)) / 1000, (now + error) / 1000 + 1};
  }

  bool exact() const { return load().exact; }

 private:
  static constexpr uint64_t kDriftPerMillion = 200;  // of two clocks within their tolerance

  struct Estimate {
    int64_t epoch_ns = 0;  // of our CLOCK_MONOTONIC
    uint64_t error_ns = 0, at_ns = 0;
    bool exact = true;

    uint64_t time_at(uint64_t monotonic_ns) const {
      const int64_t since = static_cast<int64_t>(monotonic_ns) - epoch_ns;
      return since > 0 ? static_cast<uint64_t>(since) : 0;
    }
    uint64_t error_at(uint64_t monotonic_ns) const {
      if (exact) return 0;
      return error_ns + ((monotonic_ns - at_ns) / 1'000'000 + 1) * kDriftPerMillion;
    }
  };

  void store(const Estimate& estimate) {
    changes_.fetch_add(1);
    epoch_ns_.store(estimate.epoch_ns);
    error_ns_.store(estimate.error_ns);
    at_ns_.store(estimate.at_ns);
    exact_.store(estimate.exact);
    changes_.fetch_add(1);
  }
  // All of one estimate.
  Estimate load() const {
    for (;;) {
      const uint64_t before = changes_.load();
      const Estimate estimate{epoch_ns_.load(), error_ns_.load(), at_ns_.load(), exact_.load()};
      if (before % 2 == 0 && changes_.load() == before) return estimate;
    }
  }

  uint64_t memory_id_ = 0;             // of the memory that it counts for
  std::atomic<uint64_t> changes_ = 0;  // odd while there is one
  std::atomic<int64_t> epoch_ns_ = 0;
  std::atomic<uint64_t> error_ns_ = 0, at_ns_ = 0;
  std::atomic<bool> exact_ = true;
  std::atomic<uint64_t> last_ns_ = 0;
};

}  // namespace rdmacc
