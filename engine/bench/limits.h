#pragma once
#include <atomic>

#include "engine/bench/options.h"

namespace rdmacc {

// Measures what this machine can do at best (random 64-byte reads, CAS, a ring between two
// processes, a coroutine switch) and what our verbs, RPC and scheduler cost for the same, and
// prints a line for each pair, or one JSON object; then what a transaction written by hand reaches
// on so many records (handwritten.h). To be called before the process has threads.
Status print_limits(ReportFormat format, uint64_t records, const std::atomic<bool>& interrupted);

}  // namespace rdmacc
