#pragma once
#include "engine/cluster/partition_map.h"
#include "engine/cluster/timestamp.h"
#include "engine/storage/storage_client.h"
#include "engine/txn/location_cache.h"
#include "engine/txn/rule.h"
#include "engine/txn/table_cache.h"
#include "rdma/worker.h"

namespace rdmacc {

// What a worker needs to carry out stages, be it a coordinator or a node's thread serving RPC
// stages: the same code runs on both. One per worker, its thread alone.
struct EngineContext {
  EngineContext(Worker& of_worker, const Topology& of_topology, uint32_t location_cache_entries)
      : worker(of_worker),
        topology(of_topology),
        layout(of_topology),
        map(of_topology.nodes, 0),
        clock(of_worker.endpoint()),
        storage(of_worker, of_topology),
        tables(of_worker, of_topology),
        locations(location_cache_entries) {}

  Worker& worker;
  const Topology topology;
  const RegionLayout layout;
  const PartitionMap map;  // placement only; a coordinator has its own for the log's nodes
  TimestampClock clock;
  StorageClient storage;
  TableCache tables;
  LocationCache locations;
};

// One transaction's (or one RPC handler's) use of a context.
struct StageContext {
  EngineContext& engine;
  const ProtocolRules& rules;
  TxnStamps stamps;
  VerbArena& arena;
  VerbCounters& counters;
  VerbCounters& allocation_counters;  // allocate, free, chain
  const bool* cancelled;              // nullptr: cannot be cancelled

  bool is_cancelled() const { return cancelled != nullptr && *cancelled; }
  DoorbellBatch batch() { return DoorbellBatch(engine.worker.scheduler(), counters); }
};

}  // namespace rdmacc
