#pragma once
#include <functional>

#include "engine/log/log_record.h"
#include "engine/log/log_ring.h"
#include "engine/storage/storage_service.h"

// Resolution: what happens to the transactions of a coordinator that died. Complete log entry on
// any node: committed, so it is installed wherever its locks still stand. No complete entry:
// aborted. Then every lock that carries the worker's id is released, slots of unfinished inserts
// are freed, the worker's line in the control area is cleared and its ring emptied. Done by node
// 0; repeating any part of it is harmless, so a resolver that dies is simply followed by another.

namespace rdmacc {

struct ResolveReport {
  uint64_t committed = 0;       // log entries found complete
  uint64_t writes_installed = 0;
  uint64_t locks_released = 0;
  uint64_t slots_discarded = 0;
};

// Installs the writes of a committed record whose headers are still locked with its lock_ctts,
// and unlocks them; in engine/txn, given here so that the log knows no protocol.
using InstallCommitted = std::function<Status(const LogRecord& record, VerbCounters& counters)>;

// Reads the complete entries of `dead`'s ring on `node`, oldest first, into owned payloads.
Status read_ring(Worker& by, const RegionLayout& layout, NodeId node, WorkerId dead,
                 std::vector<std::vector<std::byte>>& payloads, VerbCounters& counters);

// From a coroutine of node 0. kUnavailable: a node is down; try again later.
Result<ResolveReport> resolve_worker(Worker& by, const Topology& topology, WorkerId dead,
                                     const InstallCommitted& install, VerbCounters& counters);

// The part that each node does for itself (kMethodReleaseLocksOf): registers the handler.
void serve_resolution(Worker& worker, StorageService& storage);

}  // namespace rdmacc
