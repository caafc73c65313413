#pragma once
#include <atomic>

#include "rdma/base/status.h"

namespace rdmacc {

// Nanoseconds for `bytes` to another process and back over TCP on 127.0.0.1, without delay of small
// packets: what an RPC over the tcp fabric is compared with. Forks: to be called before the process
// has threads.
// kCancelled, soon after `interrupted` is set.
Result<double> loopback_round_trip_ns(size_t bytes, const std::atomic<bool>& interrupted);

}  // namespace rdmacc
