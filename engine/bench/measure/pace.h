#pragma once
#include <optional>

#include "rdma/base/histogram.h"
#include "rdma/base/random.h"
#include "rdma/coroutine/scheduler.h"

namespace rdmacc {

// When the transactions of one coordinator start: each at once, or at the moments of a Poisson
// process that its coroutines take one after the other. A transaction that starts late, because all
// coroutines were busy, keeps its moment: its latency counts from there, so that what waits in
// front of a system that is too slow is seen. One thread.
class Pace {
 public:
  // `per_second`: starts of this coordinator, 0 for as fast as it goes. `latency_limit_ns`: one
  // that is late by more than that already is skipped; 0: none is.
  Pace(double per_second, uint64_t latency_limit_ns, uint64_t seed)
      : mean_ns_(per_second > 0 ? 1e9 / per_second : 0),
        latency_limit_ns_(latency_limit_ns),
        random_(seed) {}

  // The moment from which starts are scheduled.
  void begin(uint64_t now_ns) { next_ns_ = static_cast<double>(now_ns); }
  bool scheduled() const { return mean_ns_ > 0; }

  struct Start {
    uint64_t at_ns = 0;  // its moment, which may lie behind by now
    bool skipped = false;
  };
  // From a coroutine, at `now_ns`: waits for the next start. Nothing: it would be at `deadline_ns`
  // or later.
  std::optional<Start> wait(Scheduler& scheduler, uint64_t now_ns, uint64_t deadline_ns);

  // How much later than at their moments transactions began; not of those that were skipped.
  const Histogram& lag_ns() const { return lag_ns_; }
  void forget_lags() { lag_ns_.clear(); }

 private:
  uint64_t draw_next();

  const double mean_ns_;
  const uint64_t latency_limit_ns_;
  Random random_;
  double next_ns_ = 0;
  Histogram lag_ns_;
};

}  // namespace rdmacc
