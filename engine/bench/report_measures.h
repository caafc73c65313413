#pragma once
#include <nlohmann/json.hpp>

#include "engine/bench/runner.h"

// What the machine forms of the report say of a run beyond the numbers that every form shows.

namespace rdmacc {

using ReportJson = nlohmann::ordered_json;

// Shares of the coordinators' time; both mean nothing in virtual time.
struct ProcessorUse {
  double effective;  // within attempts that committed, without what these waited
  double busy;       // that the processor spent on the coordinators' threads, spinning included
};
std::optional<ProcessorUse> processor_use(const BenchRun& run);
double verbs_per_transaction(const RunResult& result);

ReportJson swept_json(const BenchOptions& options);
ReportJson load_json(const BenchRun& run);      // what was asked of the run, and what missed it
ReportJson measures_json(const BenchRun& run);  // processors, verbs, distribution
ReportJson origin_json(const BenchRun& run);    // version, machine, time, command

// "least-below:count", in microseconds, by spaces.
std::string latency_buckets_text(const RunResult& result);
// "committed/aborted/mean_us/p99_us" of each second, by spaces.
std::string timeline_text(const RunResult& result);

}  // namespace rdmacc
