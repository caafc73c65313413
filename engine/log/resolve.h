#pragma once
#include <functional>

#include "engine/log/caller_fence.h"
#include "engine/log/log_entry.h"
#include "engine/log/log_record.h"
#include "engine/storage/wire/storage_service.h"

// Resolution: what happens to the transactions of a coordinator that died. Complete log entry on
// any node: committed, so it is installed wherever its locks still stand. No complete entry:
// aborted. Complete, but nowhere more than prepared: in doubt, so that it is neither until the
// deciding party has decided it (engine/log/in_doubt.h). Done by node 0, in this order:
//
//   1  every node thread fences the dead worker (caller_fence.h); its own verbs ended before the
//      fabric listed it (F6), so that from here on nothing of it takes effect any more
//   2  the rings of all nodes are read, and what is complete in any of them is installed, in the
//      order of the stamps; only then
//   3  every lock that still carries the worker's id is released, and slots of unfinished inserts
//      are freed, by each node for itself; but for those of transactions in doubt, with which
//      the resolution ends here until one of them is decided
//   4  the rings are emptied, and last the worker's line is cleared, which lets the gate drain;
//      unless the line tells of shared locks: their counts must be swept before
//      (reader_count_sweep.h)
//
// Repeating any part of it is harmless, so a resolver that dies is simply followed by another:
// entries stay until no lock is left, and an entry whose locks are gone installs nothing. The
// caller then releases the worker's slot; before that the worker has no new owner.

namespace rdmacc {

struct ResolveReport {
  uint64_t committed = 0;         // log entries found complete
  uint64_t writes_installed = 0;  // writes of these, whether or not they were in place already
  uint64_t locks_released = 0;
  uint64_t slots_discarded = 0;
  std::vector<InDoubt> in_doubt;  // not empty: resolve it again once one of them is decided
  // It may have left reader counts: its line stands until the caller has swept, and clears it.
  bool left_reader_counts = false;
};

// Installs the writes of a committed record whose headers are still locked with its lock_ctts,
// and unlocks them; in engine/txn, given here so that the log knows no protocol.
using InstallCommitted = std::function<Status(const LogRecord& record, VerbCounters& counters)>;

// A complete entry, its payload owned.
struct RingEntry {
  std::vector<std::byte> payload;
  bool prepared = false;  // and not committed
  GlobalAddress address;
};
// Reads the complete entries of `dead`'s ring on `node`, oldest first.
Status read_ring(Worker& by, const RegionLayout& layout, NodeId node, WorkerId dead,
                 std::vector<RingEntry>& entries, VerbCounters& counters);

// From a coroutine of node 0. kUnavailable: a node is down; try again later. kInvalidArgument:
// the worker is alive, or a node thread. kCorrupt: a complete entry does not parse; nothing was
// released, and a person must look.
Result<ResolveReport> resolve_worker(Worker& by, const Topology& topology, WorkerId dead,
                                     const InstallCommitted& install, VerbCounters& counters);

// The part that each node does for itself, on its thread 0: registers kMethodReleaseLocksOf and
// kMethodFenceCaller. The node's other threads call serve_fence.
void serve_resolution(Worker& worker, StorageService& storage, CallerFence& fence);

}  // namespace rdmacc
