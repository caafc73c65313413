/* What our custom scans have in common: none is part of a parallel plan, or goes back to a mark. */
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
};

constexpr CustomExecMethods rdmacc_node_methods(const char* name, const RdmaccNodeWork& work) {
  CustomExecMethods methods = {};
  methods.CustomName = name;
  methods.BeginCustomScan = work.begin;
  methods.ExecCustomScan = work.exec;
  methods.EndCustomScan = work.end;
  methods.ReScanCustomScan = work.rescan;
  methods.ExplainCustomScan = work.explain;
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
