#pragma once
#include <atomic>

#include "rdma/base/status.h"

namespace rdmacc {

// Measures what this machine can do at best (random 64-byte reads, CAS, a ring between two
// processes, a coroutine switch) and what our verbs, RPC and scheduler cost for the same, and
// prints a line for each pair. To be called before the process has threads.
Status print_limits(const std::atomic<bool>& interrupted);

}  // namespace rdmacc
