#pragma once
#include "engine/bench/measure/effective_time.h"
#include "engine/bench/measure/node_spread.h"
#include "rdma/base/histogram.h"

namespace rdmacc {

// What a coordinator measures of its transactions beyond counts, latencies and seconds; merge()
// adds that of another.
struct Measures {
  void merge(const Measures& other);

  EffectiveTime effective;
  NodeSpread spread;
  Histogram lag_ns;             // between a scheduled start and the real one
  uint64_t skipped = 0;         // transactions that were too late already when they could begin
  uint64_t late = 0;            // committed ones that took longer than the latency limit
  uint64_t processor_ns = 0;    // of the coordinators' threads
  uint64_t coordinator_ns = 0;  // how long the coordinators were there
};

}  // namespace rdmacc
