#pragma once
#include <memory>

#include "engine/txn/driver/slot_scan_limits.h"
#include "engine/txn/rule/stage.h"
#include "engine/txn/transaction/worker_stats.h"
#include "rdma/rpc/worker.h"

// What a worker has of the engine: what its sessions (session.h) have in common.

namespace rdmacc {

class HistoryWriter;
struct ProtocolRules;
class TxnObserver;

struct EngineOptions {
  uint32_t replicas = 0;                           // backups of each partition's log
  uint64_t write_set_bytes_max = 256ull << 20;     // kWriteSetFull beyond
  uint32_t location_cache_entries = 64 * 1024;     // used where verbs are posted; 0: none
  uint32_t unvalidated_read_cache_entries = 4096;  // rows from unvalidated reads; 0: none are kept
  // Slots of a table on a node that are kept in advance for inserts, at most; 0: none are.
  uint32_t reserved_slots_max = 512;
  SlotScanLimits slot_scans = {};
  // Of which worker it can be told that its transaction waits outside of the engine; nullptr: of
  // none. They are not waited for as long as others, at the gate and for a lock.
  StandstillOf standstill_of = nullptr;
  // Where a protocol's rules come from; nullptr: the registry. Tests of the tests put wrong rules
  // there, and into NodeOptions.
  const ProtocolRules* (*rules_of)(Protocol, LockMode) = nullptr;
};

class Coordinator {
 public:
  Coordinator(std::unique_ptr<Endpoint> endpoint, const Topology& topology,
              const EngineOptions& options, Scheduler::Options scheduler_options = {});
  ~Coordinator();
  Coordinator(const Coordinator&) = delete;
  Coordinator& operator=(const Coordinator&) = delete;

  Worker& worker();
  const Topology& topology() const;
  WorkerStats& stats();
  // Is told what the transactions measure, while they run (nullptr: none). Not owned.
  void set_observer(TxnObserver* observer);
  // From a coroutine, before the worker leaves: waits until blocks that are freed in the background
  // are free, for `us_max` at most, and gives back what it keeps in advance. What is not freed then
  // leaks until its node starts again.
  void finish_background(uint64_t us_max);
  // A transaction has ended with an unknown outcome, or committed and not installed everywhere,
  // because a node was away for a minute: its locks stand until the worker is resolved. So the
  // worker must not leave its slot: the process ends without.
  bool left_to_resolution() const;
  // Every committed and aborted transaction is reported to `history` (nullptr: none). Not owned.
  void set_history(HistoryWriter* history);

  struct Impl;
  Impl& impl() { return *impl_; }

 private:
  std::unique_ptr<Impl> impl_;
};

}  // namespace rdmacc
