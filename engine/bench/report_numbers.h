#pragma once
#include <string>
#include <utility>
#include <vector>

#include "engine/bench/runner.h"

// What the forms of the report share: the numbers that every form shows, and lines of text.

namespace rdmacc {

struct StageLatency {
  Stage stage;
  Primitive primitive;
  uint64_t count;
  double mean_us, p50_us, p99_us;
};

struct LatencyUs {
  double mean, p50, p90, p99, p999;
};

// That transactions ran under; with --stages=auto the one that was found to be the cheapest.
StagePlan plan_of(const BenchRun& run);
double rounded(double value);  // to three digits after the point
double committed_per_second(const RunResult& result);
uint64_t aborted_attempts(const RunResult& result);  // by the protocol, not by a user
double abort_rate(const RunResult& result);          // aborted / (aborted + committed)
// Every reason that there is, in their order.
std::vector<std::pair<const char*, uint64_t>> aborts_by_reason(const RunResult& result);
LatencyUs latency_us(const RunResult& result);
// Of the stages that ran, in their order.
std::vector<StageLatency> stage_latencies(const RunResult& result);
// Verbs and the like of all attempts, per committed transaction.
std::vector<std::pair<const char*, double>> per_transaction(const RunResult& result);
double to_us(double ns);                         // rounded
std::string invariant(const RunResult& result);  // "ok", or what is wrong

// Appends one formatted line of at most 511 characters.
__attribute__((format(printf, 2, 3))) void add_line(std::string& text, const char* format, ...);
// The lines that say what was run on what.
void add_setup(std::string& text, const BenchOptions& options);

}  // namespace rdmacc
