#pragma once
#include <atomic>
#include <string>

#include "engine/bench/options.h"
#include "engine/txn/worker_stats.h"
#include "rdma/base/histogram.h"

namespace rdmacc {

// What a run measured; report.h prints it.
struct RunResult {
  double seconds = 0;      // of the fabric's clock, from the start to the last commit
  uint64_t committed = 0;  // transactions, each perhaps after several attempts
  WorkerStats stats;       // per attempt
  Histogram latency_ns;    // of committed transactions, retries included
  std::string violation;   // of the workload's invariant; empty: it holds
};

// Starts a cluster, loads, runs and checks. kCancelled: `interrupted` became true.
Result<RunResult> run_benchmark(const BenchOptions& options, const std::atomic<bool>& interrupted);

}  // namespace rdmacc
