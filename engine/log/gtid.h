#pragma once
#include <compare>
#include <cstdint>
#include <vector>

#include "rdma/fabric/fabric.h"

namespace rdmacc {

// The name of a transaction that is decided outside the engine: the deciding party, and its number
// there. Never used for two.
struct Gtid {
  uint64_t system_id = 0;
  uint64_t xid = 0;

  bool null() const { return system_id == 0 && xid == 0; }
  auto operator<=>(const Gtid&) const = default;
};

// A prepared transaction whose coordinator has died. Its locks are held until it is decided.
struct InDoubt {
  Gtid gtid;
  WorkerId worker = kNoWorker;         // that was its coordinator
  NodeId node = 0;                     // one of those that keep its log
  uint64_t lock_ctts = 0;              // what the lock words hold
  uint64_t stamp = 0;                  // time of its log record
  bool decided = false;                // and about to be finished
  std::vector<GlobalAddress> entries;  // copies of its log record that say so; of node 0 alone
};

}  // namespace rdmacc
