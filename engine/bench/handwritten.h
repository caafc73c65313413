#pragma once
#include <atomic>

#include "rdma/base/status.h"

namespace rdmacc {

// Transactions a second, one at a time on one thread, that do to the memory of a node what NOWAIT
// does for YCSB (ten operations, two of them updates), written by hand for this one
// purpose: no session, no rules, no verbs, nothing between them and the cache lines. What the
// engine reaches of it is what its generality costs. It loads a cluster of its own; to be called
// before the process has threads.
Result<double> handwritten_transactions_per_second(uint64_t records, double seconds,
                                                   const std::atomic<bool>& interrupted);

}  // namespace rdmacc
