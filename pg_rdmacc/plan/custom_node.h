/* What our custom scans have in common: none goes back to a mark. */
#pragma once
#include "pg_rdmacc/server/pg_rdmacc.h"

extern "C" {
#include "nodes/execnodes.h"
#include "nodes/extensible.h"
}

struct RdmaccNodeWork {
  decltype(CustomExecMethods::BeginCustomScan) begin;
  decltype(CustomExecMethods::ExecCustomScan) exec;
  decltype(CustomExecMethods::EndCustomScan) end;
  decltype(CustomExecMethods::ReScanCustomScan) rescan;
  decltype(CustomExecMethods::ExplainCustomScan) explain;
  /* Of one whose work is shared with parallel workers; or else none. */
  decltype(CustomExecMethods::EstimateDSMCustomScan) estimate_shared = nullptr;
  decltype(CustomExecMethods::InitializeDSMCustomScan) share = nullptr;
  decltype(CustomExecMethods::ReInitializeDSMCustomScan) share_again = nullptr;
  decltype(CustomExecMethods::InitializeWorkerCustomScan) join_shared = nullptr;
};

constexpr CustomExecMethods rdmacc_node_methods(const char* name, const RdmaccNodeWork& work) {
  CustomExecMethods methods = {};
  methods.CustomName = name;
  methods.BeginCustomScan = work.begin;
  methods.ExecCustomScan = work.exec;
  methods.EndCustomScan = work.end;
  methods.ReScanCustomScan = work.rescan;
  methods.ExplainCustomScan = work.explain;
  methods.EstimateDSMCustomScan = work.estimate_shared;
  methods.InitializeDSMCustomScan = work.share;
  methods.ReInitializeDSMCustomScan = work.share_again;
  methods.InitializeWorkerCustomScan = work.join_shared;
  return methods;
}

/* `State` begins with its CustomScanState `custom`. */
template <typename State>
Node* rdmacc_make_node_state(const CustomExecMethods* methods) {
  auto* state = static_cast<State*>(palloc0(sizeof(State)));
  NodeSetTag(state, T_CustomScanState);
  state->custom.methods = methods;
  return reinterpret_cast<Node*>(state);
}
