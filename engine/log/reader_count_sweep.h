#pragma once
#include <span>

#include "engine/cluster/gate_drain.h"
#include "engine/log/caller_fence.h"
#include "engine/storage/wire/storage_service.h"

// The sweep of reader counts. A shared lock is a count of readers in the lock word that names none
// of them, so what a coordinator that died has left in them, or a request whose node died before it
// could answer, cannot be found one by one. They are cleared all at once: while no live transaction
// is inside the protocol gate (engine/cluster/gate_drain.h), every count in the cluster is set to
// 0.
//
//   1  every dead worker whose line says that it takes shared locks was resolved
//   (engine/log/resolve.h):
//      its requests are fenced, so that none changes a reader count any more
//   2  node 0 closes the gate and waits, for a bounded time, until it has drained; a transaction
//      that stays inside puts the sweep off
//   3  thread 0 of each node sets the counts in its headers to 0
//   4  the sweep is counted and the gate opened
//
// A sweep that fails half way has cleared only counts without a live reader, and is made again.

namespace rdmacc {

// From a coroutine of node 0, inside a drained gate: has every node clear its counts; how many it
// were. When it returns, no node does so any more (an RPC ends with its handler, or with its node).
Result<uint64_t> clear_reader_counts(Worker& by, const Topology& topology, VerbCounters& counters);
// Waits until no node clears counts, for a node 0 that has died meanwhile. kUnavailable: a node is
// down; try again later.
Status await_reader_count_clearing(Worker& by, const Topology& topology, VerbCounters& counters);

// The part that each node does for itself, on its thread 0: registers kMethodClearReaderCounts.
void serve_reader_count_sweep(Worker& worker, StorageService& storage, CallerFence& fence);

// When to sweep: node 0's resolver asks it again and again.
class ReaderCountSweeper {
 public:
  // What a transaction that stays inside may hold others up for, in a sweep that has to be put off,
  // and after which multiple of it the next one is tried.
  static constexpr uint64_t kDrainUsMax = 1'000'000;
  static constexpr uint64_t kPutOffFactor = 10;

  ReaderCountSweeper(Worker& worker, const Topology& topology, uint64_t drain_us_max)
      : worker_(worker),
        topology_(topology),
        drain_us_max_(drain_us_max),
        drain_(worker, topology) {}
  ReaderCountSweeper(const ReaderCountSweeper&) = delete;
  ReaderCountSweeper& operator=(const ReaderCountSweeper&) = delete;

  // Sweeps if one of `ended` (dead workers, resolved but for reader counts) or a line that tells of
  // counts in an unknown state needs it. True: swept; the lines of all in `ended` may be cleared.
  // False: nothing to do, or it is put off. An error: it could not be made now; ask again.
  Result<bool> sweep_if_needed(std::span<const WorkerId> ended, VerbCounters& counters);

  uint64_t sweeps() const { return sweeps_; }
  uint64_t reader_counts_cleared() const { return reader_counts_cleared_; }

 private:
  Status recover(VerbCounters& counters);
  Result<bool> needed(std::span<const WorkerId> ended);
  bool all_nodes_up() const;

  Worker& worker_;
  const Topology topology_;
  const uint64_t drain_us_max_;
  GateDrain drain_;
  bool recovered_ = false;
  uint64_t not_before_us_ = 0;
  uint64_t sweeps_ = 0;
  uint64_t reader_counts_cleared_ = 0;
};

}  // namespace rdmacc
