#pragma once
#include "engine/cluster/gate.h"
#include "engine/cluster/txn_slots.h"
#include "engine/log/log_ring.h"
#include "engine/txn/driver/admission.h"
#include "engine/txn/driver/engine_context.h"
#include "engine/txn/driver/full_groups.h"
#include "engine/txn/stages/unvalidated_read.h"
#include "engine/txn/transaction/history.h"
#include "engine/txn/transaction/object_memory.h"
#include "engine/txn/transaction/ordered_request.h"
#include "engine/txn/transaction/txn_frame.h"
#include "engine/txn/transaction/txn_observer.h"
#include "engine/txn/transaction/worker_stats.h"
#include "rdma/base/sampling.h"

namespace rdmacc {

// What all transactions of one coordinator share, besides what stages need. Its worker's thread
// alone.
struct CoordinatorState {
  CoordinatorState(Worker& worker, const Topology& topology, uint32_t replicas,
                   uint64_t of_write_set_bytes_max, uint32_t location_cache_entries,
                   uint32_t unvalidated_read_cache_entries, uint32_t reserved_slots_max)
      : engine(worker, topology, location_cache_entries),
        slots(worker, engine.storage, engine.clock, reserved_slots_max),
        full_groups(worker, engine.storage),
        log_map(topology.nodes, replicas),
        disk_log_map(topology.nodes, 0),
        gate(worker, topology, engine.clock),
        txn_slots(worker, topology),
        frees(worker, topology, engine.storage),
        log(worker, topology, engine.storage, frees),
        admission(worker.scheduler()),
        write_set_bytes_max(of_write_set_bytes_max),
        unvalidated_reads(unvalidated_read_cache_entries),
        frames(worker.pool()) {
    engine.slots = &slots;
    engine.frees = &frees;
  }

  EngineContext engine;
  SlotPool slots;
  FullGroups full_groups;
  const PartitionMap log_map;       // which nodes keep the log
  const PartitionMap disk_log_map;  // where they have it on disk: those that are written on
  Gate gate;
  TxnSlots txn_slots;
  BackgroundFree frees;
  LogWriter log;
  Admission admission;
  const uint64_t write_set_bytes_max;
  UnvalidatedReadCache unvalidated_reads;
  ObjectMemory transactions;
  TxnFrames frames;
  WorkerStats stats;
  Sampling timed;  // transactions, unless an observer hears of all
  HistoryWriter* history = nullptr;
  TxnObserver* observer = nullptr;
  // A transaction whose log could not be made void or be installed: only resolution ends it.
  bool left_to_resolution = false;
  OrderedCommit* order = nullptr;  // where transactions of deterministic protocols go
};

}  // namespace rdmacc
