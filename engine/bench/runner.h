#pragma once
#include <atomic>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "engine/bench/measure/measures.h"
#include "engine/bench/options.h"
#include "engine/bench/run_timeline.h"
#include "engine/txn/transaction/worker_stats.h"
#include "rdma/base/histogram.h"

namespace rdmacc {

// What a run measured; report.h prints it.
struct RunResult {
  double seconds = 0;        // of the fabric's clock, from the start to the last commit
  uint64_t committed = 0;    // transactions, each perhaps after several attempts
  uint64_t rolled_back = 0;  // transactions that their user rolled back: neither committed nor
                             // tried again
  uint64_t declared = 0;     // of both: those that ran as procedures on keys declared beforehand
  WorkerStats stats;         // per attempt
  Histogram latency_ns;      // of committed transactions, retries included
  std::vector<RunSecond> timeline;  // second by second, the last perhaps a part of one
  Measures measures;
  std::string started;    // "2024-02-29T12:00:00Z"; empty in virtual time
  std::string violation;  // of the workload's invariant; empty: it holds
  StagePlan plan;         // with auto_plan: what the first coordinator takes for the cheapest
};

// A run and what it was run with.
struct BenchRun {
  BenchOptions options;
  RunResult result;
};

// Starts a cluster, loads, runs and checks. kCancelled: `interrupted` became true.
Result<RunResult> run_benchmark(const BenchOptions& options, const std::atomic<bool>& interrupted);

// Runs one after the other, each on a cluster of its own; `report` is told of each when it has
// ended. Not ok: `runs` are those before the one that failed.
Status run_in_turn(std::span<const BenchOptions> points, const std::atomic<bool>& interrupted,
                   const std::function<void(const BenchRun&)>& report, std::vector<BenchRun>& runs);

// Every hybrid code that is distinct for the protocol: all subsets of its stages.
std::vector<StagePlan> distinct_plans(Protocol protocol);

// Runs all distinct plans of the options' protocol, the fastest first. They share one loaded
// cluster, unless the workload grows: then each has a fresh one. `report` is told of each run
// when it has ended.
Result<std::vector<BenchRun>> run_all_plans(const BenchOptions& options,
                                            const std::atomic<bool>& interrupted,
                                            const std::function<void(const BenchRun&)>& report);

}  // namespace rdmacc
