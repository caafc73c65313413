#pragma once
#include <atomic>

#include "engine/cluster/lease_clock.h"
#include "engine/cluster/partition_map.h"
#include "engine/cluster/timestamp.h"
#include "engine/storage/wire/background_free.h"
#include "engine/storage/wire/storage_client.h"
#include "engine/txn/driver/admission.h"
#include "engine/txn/driver/block_pool.h"
#include "engine/txn/driver/location_cache.h"
#include "engine/txn/driver/message_memory.h"
#include "engine/txn/driver/slot_pool.h"
#include "engine/txn/driver/slot_scan_limits.h"
#include "engine/txn/driver/table_cache.h"
#include "engine/txn/rule/rule.h"
#include "rdma/rpc/worker.h"

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
        leases(of_worker.endpoint()),
        storage(of_worker, of_topology),
        tables(of_worker, of_topology),
        blocks(of_worker, of_topology, storage),
        locations(finds_in_place(of_worker) ? 0 : location_cache_entries) {}

  // Then a bucket is read as fast as a place in a cache of locations.
  static bool finds_in_place(Worker& worker) {
    return worker.scheduler().port() != Endpoint::Port::kPosted;
  }

  // The era of addresses in which what follows begins (engine/storage/layout/control_area.h, or the
  // region's own): what is known from another one is not to be used.
  void enter_era(uint64_t now) {
    if (now == era) return;
    era = now;
    locations.forget_all();
    tables.doubt_roots();
    if (slots != nullptr) slots->renew();
  }

  // Of a thread of a node, which serves transactions that are inside.
  void enter_own_era() {
    std::byte* word = worker.endpoint().local_region() + offsetof(Superblock, address_era);
    enter_era(std::atomic_ref<uint64_t>(*reinterpret_cast<uint64_t*>(word)).load());
  }

  Worker& worker;
  const Topology topology;
  const RegionLayout layout;
  const PartitionMap map;  // placement only; a coordinator has its own for the log's nodes
  TimestampClock clock;
  LeaseClock leases;
  StorageClient storage;
  TableCache tables;
  BlockPool blocks;
  LocationCache locations;
  uint64_t era = 0;
  MessageMemory messages;
  SlotScanLimits slot_scans;
  // Of a coordinator.
  SlotPool* slots = nullptr;
  BackgroundFree* frees = nullptr;
  // Asked of transactions that hold locks; nullptr: it is not known.
  StandstillOf standstill_of = nullptr;
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
  // Of the transaction, among its coordinator's; nullptr: it waits for none of them.
  Admission::Place* place = nullptr;
  // Where a transaction, of any coordinator, is noted that holds what this one has given up for.
  uint64_t* held_by = nullptr;

  bool is_cancelled() const { return cancelled != nullptr && *cancelled; }
  // The rest of a wait for another transaction: short at first, since a commit takes a few rounds,
  // and what is waited for lies idle until the next look.
  void backoff(int attempt) const {
    constexpr uint64_t kPauseUsMax = 200;
    const uint64_t pause_us = 1 + static_cast<uint64_t>(attempt) / 8;
    engine.worker.scheduler().sleep_for(std::min(pause_us, kPauseUsMax));
  }
  // The read rule's word on entries that were read between these two looks at their gap header. A
  // split moves entries within their chains, under its lock and a stamp that both looks may have
  // seen: a reader that other locks do not hinder might meet an entry twice, or not at all.
  Step judge_gap(const Header& before, const Header& after) const {
    const auto by_owner = [this](const Header& gap) {
      return locked_exclusively(gap.lock) &&
             engine.topology.is_node_worker(worker_of_ctts(gap.lock));
    };
    const bool passes_locks = rules.reads_at_ctts || rules.skips_locked;
    if (passes_locks && (by_owner(before) || by_owner(after))) return Step::again(kNoVerbs);
    const Step step = rules.read_gap(before, after, stamps);
    // The next attempt is to be later than what this one was too late for.
    if (step.verdict == Verdict::kAbort) engine.clock.observe(std::max(before.wts, after.wts));
    return step;
  }
  // A gap header that the read rule has accepted.
  void note_gap_read(Access& gap, const Header& before, const Header& after,
                     const Step& accepted) const {
    gap.read = true;
    // Under timestamp ordering what counts is the time of the look; others may insert later.
    gap.read_wts = rules.reads_at_ctts ? stamps.just_before() : after.wts;
    gap.lease = accepted.lease_or(before.sundial);
    engine.clock.observe(after.wts);
  }
  // A table that this protocol can work with: several versions need room for them.
  Result<CachedTable*> table(TableId id) const {
    auto found = engine.tables.get(id, counters);
    if (found.ok() && rules.keeps_versions() && (*found)->history == 0) {
      return keeps_no_history(id);
    }
    return found;
  }
  [[gnu::cold]] Status keeps_no_history(TableId id) const {
    return Status(Code::kInvalidArgument, "table " + std::to_string(id) +
                                              " keeps no history, which protocol " +
                                              protocol_name(rules.protocol) + " needs");
  }
  DoorbellBatch batch() { return DoorbellBatch(engine.worker.scheduler(), counters); }
  // The same use by other rules, which outlive it, and which do not wait.
  StageContext by(const ProtocolRules& others) const {
    return StageContext{engine,    others,  stamps, arena, counters, allocation_counters,
                        cancelled, nullptr, held_by};
  }
};

}  // namespace rdmacc
