#pragma once
#include <atomic>
#include <cstddef>
#include <cstdint>

#include "rdma/base/status.h"

namespace rdmacc {

// Everything is measured so often, and the best time counts: others may be using the machine.
constexpr uint32_t kMeasurements = 5;

// What the bare machine does, in nanoseconds an operation: what our own costs are compared with.
struct MachineLimits {
  uint64_t memory_bytes = 0;       // that the random accesses were spread over
  double dependent_read_ns = 0;    // 64 bytes at a random place, the next place known only then
  double independent_read_ns = 0;  // 64 bytes at random places known beforehand
  double compare_swap_ns = 0;      // on a random 64-byte line, each after the last
  double ring_round_trip_ns = 0;   // 64 bytes to another process and back, both spinning
  double coroutine_switch_ns = 0;  // into a Boost context and back, halved
};

// Memory for measurements: 1 GB, or less where that would use more than half of what is free.
uint64_t measured_memory_bytes();
// kCancelled, soon after `interrupted` is set.
Result<MachineLimits> measure_machine(uint64_t memory_bytes, const std::atomic<bool>& interrupted);

// Part by part: where the host has to make room first, 1 GB takes seconds. Ends early once
// `interrupted` is set.
void clear_memory(std::byte* start, uint64_t bytes, const std::atomic<bool>& interrupted);

// Monotonic, for durations.
uint64_t monotonic_ns();

}  // namespace rdmacc
