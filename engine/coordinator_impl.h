#pragma once
#include "engine/protocols/calvin/order_client.h"
#include "engine/protocols/registry.h"
#include "engine/session.h"
#include "engine/txn/stages/install.h"
#include "engine/txn/transaction/coordinator_state.h"

// What a Coordinator is made of: private to the sources that implement session.h.

namespace rdmacc {

struct Coordinator::Impl {
  Impl(std::unique_ptr<Endpoint> endpoint, const Topology& topology, const EngineOptions& options,
       Scheduler::Options scheduler_options)
      : worker(std::move(endpoint), scheduler_options),
        state(worker, topology, options.replicas, options.write_set_bytes_max,
              options.location_cache_entries, options.unvalidated_read_cache_entries,
              options.reserved_slots_max),
        rules_of_protocol(options.rules_of != nullptr ? options.rules_of : &rules_of),
        order(worker, topology) {
    state.order = &order;
    state.gate.watch_standstills(options.standstill_of);
    state.engine.standstill_of = options.standstill_of;
    state.engine.slot_scans = options.slot_scans;
  }

  Worker worker;
  CoordinatorState state;
  const RulesOf rules_of_protocol;
  OrderClient order;
};

}  // namespace rdmacc
