#include "pg_rdmacc/query/sent_statement.h"

#include "pg_rdmacc/query/copied_rows.h"
#include "pg_rdmacc/query/lost_attempt.h"
#include "pg_rdmacc/query/new_attempt.h"

extern "C" {
#include "commands/prepare.h"
#include "nodes/parsenodes.h"
#include "parser/analyze.h"
#include "tcop/pquery.h"
#include "tcop/tcopprot.h"
#include "tcop/utility.h"
#include "utils/memutils.h"
#include "utils/portal.h"
#include "utils/snapmgr.h"
}

namespace {

Oid* parameter_types(ParamListInfo params) {
  if (params == nullptr || params->numParams == 0) return nullptr;
  auto* types = static_cast<Oid*>(palloc(sizeof(Oid) * static_cast<Size>(params->numParams)));
  for (int i = 0; i < params->numParams; i++) types[i] = params->params[i].ptype;
  return types;
}

/* The plan that was made when the statement was prepared, unless one of its tables, or a function,
 * has changed since: PostgreSQL would read the text anew then, too. */
bool has_plan(const RdmaccSent* sent) {
  if (sent->plan == nullptr) return false;
  ListCell* cell;
  foreach (cell, sent->plan->stmt_list) rdmacc_lock_relations(lfirst_node(PlannedStmt, cell));
  return !sent->plan_is_stale && sent->plan->is_valid;
}

/* Of a utility statement it is not known. */
bool wants_order(const Node* statement) {
  CHECK(statement != nullptr);
  return !IsA(statement, InsertStmt) && !IsA(statement, UpdateStmt) &&
         !IsA(statement, DeleteStmt) && !IsA(statement, MergeStmt) &&
         (!IsA(statement, SelectStmt) ||
          reinterpret_cast<const SelectStmt*>(statement)->sortClause != NIL);
}

List* plan(const RdmaccSent* sent, RawStmt* raw) {
  if (has_plan(sent)) return sent->plan->stmt_list;
  const bool needs_snapshot = analyze_requires_snapshot(raw);
  if (needs_snapshot) PushActiveSnapshot(GetTransactionSnapshot());
  const int count = sent->params != nullptr ? sent->params->numParams : 0;
  List* queries = pg_analyze_and_rewrite_fixedparams(raw, sent->text, parameter_types(sent->params),
                                                     count, nullptr);
  List* plans = pg_plan_queries(queries, sent->text, CURSOR_OPT_PARALLEL_OK, sent->params);
  if (needs_snapshot) PopActiveSnapshot();
  return plans;
}

void define(Portal portal, const RdmaccSent* sent, const RawStmt* raw, List* plans) {
  CHECK(plans != NIL);
  CachedPlan* kept = nullptr;
  if (sent->plan != nullptr && plans == sent->plan->stmt_list) {
    kept = sent->plan;
    kept->refcount++; /* the portal's */
  }
  PortalDefineQuery(portal, nullptr, sent->text, CreateCommandTag(raw->stmt), plans, kept);
}

struct PortalToRun {
  Portal portal;
  DestReceiver* receiver;
  QueryCompletion* completion;
};

void run_portal(void* argument) {
  const auto* run = static_cast<PortalToRun*>(argument);
  static_cast<void>(
      PortalRun(run->portal, FETCH_ALL, true, true, run->receiver, run->receiver, run->completion));
}

const CopyStmt* copy_of(List* plans) {
  if (list_length(plans) != 1) return nullptr;
  const Node* utility = linitial_node(PlannedStmt, plans)->utilityStmt;
  return utility != nullptr ? rdmacc_copy_from_client(utility) : nullptr;
}

bool same_columns(TupleDesc a, TupleDesc b) {
  if (a == nullptr || b == nullptr) return a == b;
  if (a->natts != b->natts) return false;
  for (int i = 0; i < a->natts; i++) {
    if (TupleDescAttr(a, i)->atttypid != TupleDescAttr(b, i)->atttypid) return false;
  }
  return true;
}

}  // namespace

TimestampTz rdmacc_prepared_at(const Node* statement) {
  if (!IsA(statement, ExecuteStmt)) return 0;
  const PreparedStatement* prepared =
      FetchPreparedStatement(reinterpret_cast<const ExecuteStmt*>(statement)->name, false);
  return prepared != nullptr ? prepared->prepare_time : 0;
}

bool rdmacc_run_sent(RdmaccSent* sent, Portal first, DestReceiver* receiver,
                     QueryCompletion* completion) {
  List* parsed = pg_parse_query(sent->text);
  /* Where a statement stands in a message that has several is not always known. */
  if (list_length(parsed) != 1) {
    ereport(ERROR, (errcode(ERRCODE_SYNTAX_ERROR),
                    errmsg("a statement cannot be told from others of its message")));
  }
  auto* raw = linitial_node(RawStmt, parsed);
  CHECK(!ActiveSnapshotSet()); /* each statement sees what is there when it begins */
  if (sent->prepared_at != rdmacc_prepared_at(raw->stmt)) {
    rdmacc_raise_lost("The prepared statement is another one than in the first attempt.");
  }
  List* plans = plan(sent, raw);
  Portal portal = CreateNewPortal();
  portal->visible = false;
  define(portal, sent, raw, plans);
  CHECK(portal != first);
  PortalStart(portal, sent->params, 0, InvalidSnapshot);
  if (first != nullptr && !same_columns(first->tupDesc, portal->tupDesc)) {
    rdmacc_raise_lost("The statement returns rows of other types than in its first attempt.");
  }
  PortalToRun run = {portal, receiver, completion};
  if (const CopyStmt* copy = copy_of(plans)) {
    rdmacc_run_copy_from_client(copy, sent, run_portal, &run);
  } else {
    run_portal(&run);
  }
  PortalDrop(portal, false);
  return wants_order(raw->stmt);
}
