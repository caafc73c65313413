#include "pg_rdmacc/plan/explain.h"

#include "pg_rdmacc/plan/key_lookup.h"
#include "pg_rdmacc/plan/key_prefetch.h"
#include "pg_rdmacc/server/standby.h"
#include "pg_rdmacc/xact/entry.h"

extern "C" {
#include "nodes/makefuncs.h"
#include "utils/ruleutils.h"
}

namespace {

constexpr size_t kStagesTextBytes = 256;
constexpr const char* kDefaultProtocol = "occ";

/* What auto has chosen differs from run to run: like costs, it is not shown under COSTS OFF. */
const char* stages_text(int protocol, const ExplainState* es) {
  const int running = bridge_txn_stages();
  if (rdmacc_stages_auto && (running < 0 || !es->costs)) return "auto";
  auto* text = static_cast<char*>(palloc(kStagesTextBytes));
  const auto code = running >= 0 ? static_cast<uint16>(running) : rdmacc_stages_code;
  bridge_stages_text(protocol, code, text, kStagesTextBytes);
  return rdmacc_stages_auto ? psprintf("auto (%s)", text) : text;
}

void explain_engine(ExplainState* es) {
  const int joined = bridge_txn_protocol();
  const int protocol = joined >= 0 ? joined : rdmacc_protocol_to_begin(rdmacc_on_standby());
  /* A session that chose none takes part in what others have open. */
  const bool chosen = protocol >= 0;
  const int shown = chosen ? protocol : bridge_parse_protocol(kDefaultProtocol);
  const char* name = bridge_protocol_name(shown);
  ExplainPropertyText("Protocol", chosen ? name : psprintf("%s, unless another is open", name), es);
  ExplainPropertyText("Stages", stages_text(shown, es), es);
}

}  // namespace

void rdmacc_explain_scan(uint64 round_trips, ExplainState* es) {
  if (es->verbose) explain_engine(es);
  if (es->analyze && es->timing) {
    ExplainPropertyUInteger("Engine Round Trips", nullptr, round_trips, es);
  }
}

void rdmacc_explain_lookup(CustomScanState* node, List* ancestors, ExplainState* es) {
  const auto* lookup = reinterpret_cast<const RdmaccKeyLookup*>(node);
  const auto* plan = reinterpret_cast<const CustomScan*>(node->ss.ps.plan);
  auto* clauses = static_cast<List*>(lsecond(plan->custom_exprs));
  List* context = set_deparse_context_plan(es->deparse_cxt, node->ss.ps.plan, ancestors);
  const bool prefix = list_length(es->rtable) > 1 || es->verbose;
  char* key = deparse_expression(reinterpret_cast<Node*>(make_ands_explicit(clauses)), context,
                                 prefix, false);
  ExplainPropertyText("Key", key, es);
  if (es->verbose) explain_engine(es);
  if (!es->analyze) return;
  const char* nodes = psprintf("%d of %d", bms_num_members(lookup->nodes), bridge_node_count());
  ExplainPropertyText("Nodes", nodes, es);
  if (es->timing) {
    ExplainPropertyUInteger("Engine Round Trips", nullptr, lookup->round_trips, es);
  }
}

void rdmacc_explain_prefetch(CustomScanState* node, List* ancestors, ExplainState* es) {
  const auto* prefetch = reinterpret_cast<const RdmaccKeyPrefetch*>(node);
  const auto* plan = reinterpret_cast<const CustomScan*>(node->ss.ps.plan);
  List* context = set_deparse_context_plan(es->deparse_cxt, node->ss.ps.plan, ancestors);
  List* keys = NIL;
  ListCell* cell;
  foreach (cell, plan->custom_exprs) {
    keys =
        lappend(keys, deparse_expression(static_cast<Node*>(lfirst(cell)), context, true, false));
  }
  ExplainPropertyList("Lookup Key", keys, es);
  if (!es->analyze) return;
  ExplainPropertyUInteger("Lookups", nullptr, prefetch->lookups, es);
  ExplainPropertyUInteger("Batches", nullptr, prefetch->batches, es);
  if (es->timing) {
    ExplainPropertyUInteger("Engine Round Trips", nullptr, prefetch->round_trips, es);
  }
}
