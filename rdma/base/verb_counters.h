#pragma once
#include <cstdint>

// Plain data, which the PostgreSQL side of the extension sees, too: no base.h here.

namespace rdmacc {

// What a transaction cost on the wire; also summed per worker.
struct VerbCounters {
  uint64_t round_trips = 0;  // rounds waited for (RPC rounds included)
  uint64_t doorbells = 0;
  uint64_t reads = 0;
  uint64_t writes = 0;
  uint64_t atomics = 0;
  uint64_t messages = 0;  // RPC requests

  void add(const VerbCounters& other) {
    round_trips += other.round_trips;
    doorbells += other.doorbells;
    reads += other.reads;
    writes += other.writes;
    atomics += other.atomics;
    messages += other.messages;
  }
};

}  // namespace rdmacc
