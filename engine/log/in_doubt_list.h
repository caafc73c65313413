#pragma once
#include <compare>
#include <optional>
#include <vector>

#include "engine/storage/wire/messages.h"
#include "rdma/fabric/fabric.h"

// Transactions in doubt, as they are named and listed.

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
  WorkerId worker = kNoWorker;  // that was its coordinator
  NodeId node = 0;              // one of those that keep its log
  uint64_t lock_ctts = 0;       // what the lock words hold
  uint64_t stamp = 0;           // time of its log record
  bool decided = false;         // and about to be finished
  // Of node 0 alone: copies of its log record that say so, and what it has begun to tell them.
  std::vector<GlobalAddress> entries;
  std::optional<bool> begun;
};

// What node 0 answers when asked what is in doubt. A list is complete when `unresolved` is 0:
// then nothing in doubt can be of a worker that died before it was asked for.
struct InDoubtList {
  std::vector<InDoubt> transactions;
  uint64_t unresolved = 0;  // dead workers that have not been looked at yet
};

void write_in_doubt_list(MessageWriter& out, const InDoubtList& list);
// False unless it is well formed, to the message's end.
bool read_in_doubt_list(MessageReader& in, InDoubtList& list);

}  // namespace rdmacc
