/* PostgreSQL itself finds out which clauses match the primary key, also across joins, by making
 * index paths. They are priced so that a lookup of whole keys is chosen, and then each becomes a
 * custom path; what only matches a part of the key is thrown away, unless the key has an order
 * (table_options.h). Paths of secondary indexes (index_planner) stay. */
#include "pg_rdmacc/plan/planner.h"

#include "pg_rdmacc/codec/key_codec.h"
#include "pg_rdmacc/index/query_functions.h"
#include "pg_rdmacc/index/secondary_indexes.h"
#include "pg_rdmacc/plan/scan.h"
#include "pg_rdmacc/relation/access_method.h"
#include "pg_rdmacc/xact/exported_snapshot.h"
#include "pg_rdmacc/xact/guests.h"

extern "C" {
#include "access/htup_details.h"
#include "access/stratnum.h"
#include "access/sysattr.h"
#include "access/table.h"
#include "catalog/pg_index.h"
#include "catalog/pg_inherits.h"
#include "nodes/makefuncs.h"
#include "nodes/nodeFuncs.h"
#include "nodes/plannodes.h"
#include "optimizer/cost.h"
#include "optimizer/optimizer.h"
#include "optimizer/pathnode.h"
#include "optimizer/paths.h"
#include "optimizer/plancat.h"
#include "optimizer/planner.h"
#include "parser/parsetree.h"
#include "utils/lsyscache.h"
#include "utils/selfuncs.h"
#include "utils/syscache.h"
}

namespace {

constexpr Cost kLookupCost = 0.25; /* a scan passes some ten rows in the time */
constexpr Cost kNeverCost = 1e12;
constexpr double kArrayElementsUnknown = 10;

planner_hook_type previous_planner;
get_relation_info_hook_type previous_relation_info;
set_rel_pathlist_hook_type previous_pathlist;

/* ---- Which clauses fix a key column */

bool take_operator(const IndexOptInfo* index, int column, Oid opno, RdmaccKeyMatch* match) {
  int strategy = 0;
  Oid left = InvalidOid;
  Oid right = InvalidOid;
  if (get_op_opfamily_strategy(opno, index->opfamily[column]) != BTEqualStrategyNumber) {
    return false;
  }
  get_op_opfamily_properties(opno, index->opfamily[column], false, &strategy, &left, &right);
  const Oid column_type = index->opcintype[column];
  const bool polymorphic = IsPolymorphicType(right) || right == RECORDOID;
  if (!polymorphic && !rdmacc_key_types_match(column_type, right)) return false;
  match->types = lappend_oid(match->types, polymorphic ? InvalidOid : right);
  match->compares = match->compares || polymorphic || IsPolymorphicType(column_type) ||
                    rdmacc_key_kind(column_type) == RDMACC_KEY_HASH;
  return true;
}

/* A row of no type of its own has perhaps other columns than the key, which comparing them says. */
bool is_comparable(Node* value) {
  const Oid type = exprType(value);
  return type != RECORDOID && type != RECORDARRAYOID;
}

bool take_clause(const IndexOptInfo* index, int column, const RestrictInfo* restriction,
                 RdmaccKeyMatch* match) {
  Expr* clause = restriction->clause;
  if (IsA(clause, OpExpr)) {
    const auto* operation = reinterpret_cast<const OpExpr*>(clause);
    if (list_length(operation->args) != 2) return false;
    if (!is_comparable(static_cast<Node*>(lsecond(operation->args)))) return false;
    if (!take_operator(index, column, operation->opno, match)) return false;
    match->values = lappend(match->values, lsecond(operation->args));
    return true;
  }
  if (IsA(clause, ScalarArrayOpExpr) && index->nkeycolumns == 1) {
    const auto* operation = reinterpret_cast<const ScalarArrayOpExpr*>(clause);
    if (!is_comparable(static_cast<Node*>(lsecond(operation->args)))) return false;
    if (!operation->useOr || !take_operator(index, column, operation->opno, match)) return false;
    match->values = lappend(match->values, lsecond(operation->args));
    match->is_array = true;
    return true;
  }
  return false;
}

bool take_column(const IndexPath* path, int column, RdmaccKeyMatch* match) {
  ListCell* cell;
  foreach (cell, path->indexclauses) {
    const auto* clause = static_cast<const IndexClause*>(lfirst(cell));
    if (clause->indexcol != column || clause->lossy || list_length(clause->indexquals) != 1) {
      continue;
    }
    auto* restriction = static_cast<RestrictInfo*>(linitial(clause->indexquals));
    if (!take_clause(path->indexinfo, column, restriction, match)) continue;
    match->clauses = lappend(match->clauses, restriction->clause);
    match->restrictions = lappend(match->restrictions, clause->rinfo);
    return true;
  }
  return false;
}

/* ---- What PostgreSQL may know of the indexes */

/* Of the path's whole keys, if it has any; no page of the table is read: what PostgreSQL adds for
 * the rows is one page's worth. */
bool whole_keys_cost(const IndexPath* path, Cost* total, Selectivity* selectivity) {
  RdmaccKeyMatch match = {};
  if (!rdmacc_match_key(path, &match)) return false;
  const double rows = Max(path->indexinfo->rel->tuples, 1.0);
  double keys = 1;
  if (match.is_array) {
    auto* array = static_cast<Node*>(linitial(match.values));
    keys = Max(estimate_array_length(array), 1);
    if (!IsA(array, Const) && !IsA(array, ArrayExpr)) keys = Max(keys, kArrayElementsUnknown);
  }
  *selectivity = Min(keys / rows, 1.0 / Max(path->indexinfo->rel->pages, 1));
  *total = keys * kLookupCost;
  return true;
}

void key_lookup_cost(PlannerInfo*, IndexPath* path, double, Cost* startup, Cost* total,
                     Selectivity* selectivity, double* correlation, double* pages) {
  *pages = 1;
  *correlation = 1; /* keys of one batch travel together */
  *startup = 0;
  *selectivity = 1;
  *total = kNeverCost;
  whole_keys_cost(path, total, selectivity);
}

/* Of a primary key that has an order, too. */
void ordered_key_cost(PlannerInfo* root, IndexPath* path, double loop_count, Cost* startup,
                      Cost* total, Selectivity* selectivity, double* correlation, double* pages) {
  *pages = 1;
  *correlation = 1;
  *startup = 0;
  if (whole_keys_cost(path, total, selectivity)) return;
  rdmacc_index_scan_cost(root, path, loop_count, startup, total, selectivity, correlation, pages);
}

bool costs_by(const IndexPath* path, decltype(&ordered_key_cost) function) {
  return path->indexinfo->amcostestimate == reinterpret_cast<void (*)()>(function);
}

bool is_primary_key(Oid index) {
  HeapTuple tuple = SearchSysCache1(INDEXRELID, ObjectIdGetDatum(index));
  if (!HeapTupleIsValid(tuple)) return false;
  const bool primary = reinterpret_cast<Form_pg_index>(GETSTRUCT(tuple))->indisprimary;
  ReleaseSysCache(tuple);
  return primary;
}

bool has_entries(Oid index_id) {
  Relation index = RelationIdGetRelation(index_id);
  if (!RelationIsValid(index)) return false;
  const bool has = rdmacc_has_entries(index);
  RelationClose(index);
  return has;
}

/* What the query's FOR UPDATE of the table says. */
LockWaitPolicy wait_policy(const PlannerInfo* root, Index number) {
  ListCell* cell;
  foreach (cell, root->rowMarks) {
    const auto* mark = static_cast<const PlanRowMark*>(lfirst(cell));
    if (mark->rti == number) return mark->waitPolicy;
  }
  return LockWaitBlock;
}

void relation_info(PlannerInfo* root, Oid relation, bool inherits, RelOptInfo* rel) {
  if (previous_relation_info != nullptr) previous_relation_info(root, relation, inherits, rel);
  if (!rdmacc_relation_is_ours(relation)) return;
  /* CREATE INDEX asks how many workers are to help with it, with a query of nothing. */
  if (root->parse->jointree == nullptr) rel->rel_parallel_workers = 0;
  if (rdmacc_reads_as_stored()) rel->indexlist = NIL; /* which scans of the whole table can do */
  ListCell* cell;
  foreach (cell, rel->indexlist) {
    auto* index = static_cast<IndexOptInfo*>(lfirst(cell));
    index->amhasgetbitmap = false;
    index->amcanparallel = false;
    index->amcanmarkpos = false;
    index->hypothetical = true; /* the file is empty: nothing is to be learnt from it */
    /* Entries are read by the protocol, so that a scan of an index does not get past what others
     * hold. The scan of the table does, and the lookup of a key. */
    const LockWaitPolicy policy = wait_policy(root, rel->relid);
    const bool primary = is_primary_key(index->indexoid);
    if (!primary || (policy != LockWaitSkip && has_entries(index->indexoid))) {
      rdmacc_describe_to_planner(index, relation);
      index->amhasgettuple = index->amhasgettuple && policy != LockWaitSkip;
      index->amhasgetbitmap = policy == LockWaitBlock;
      if (primary) index->amcostestimate = reinterpret_cast<void (*)()>(ordered_key_cost);
      continue;
    }
    for (int i = 0; i < index->ncolumns; i++) index->canreturn[i] = false;
    index->amcostestimate = reinterpret_cast<void (*)()>(key_lookup_cost);
    /* Rows are found by whole keys: they have no order. */
    index->sortopfamily = nullptr;
    index->reverse_sort = nullptr;
    index->nulls_first = nullptr;
  }
}

void forbid_parallel(List* paths) {
  ListCell* cell;
  foreach (cell, paths) static_cast<Path*>(lfirst(cell))->parallel_safe = false;
}

/* So many as a heap would have pages: what is worth a worker is said in these. */
BlockNumber heap_pages(const RelOptInfo* rel, Oid relation) {
  const auto width = static_cast<Size>(get_relation_data_width(relation, nullptr));
  const Size row = SizeofHeapTupleHeader + sizeof(ItemIdData) + MAXALIGN(width);
  const double pages = rel->tuples * static_cast<double>(row) / BLCKSZ;
  return static_cast<BlockNumber>(Min(pages, static_cast<double>(MaxBlockNumber)));
}

/* Workers share a scan of the whole table with their leader, and nothing else. */
void share_scan(PlannerInfo* root, RelOptInfo* rel, const RangeTblEntry* entry) {
  rel->partial_pathlist = NIL;
  int workers = 0;
  if (rel->consider_parallel && bms_is_empty(rel->lateral_relids) &&
      entry->tablesample == nullptr && rdmacc_may_have_guests()) {
    workers = compute_parallel_worker(rel, heap_pages(rel, entry->relid), -1,
                                      Min(max_parallel_workers_per_gather, kGuestsMax));
  }
  if (workers > 0) add_partial_path(rel, create_seqscan_path(root, rel, nullptr, workers));
  /* Of a part of a table PostgreSQL may make other scans when it comes to the whole, and believes
   * this of them. */
  if (workers <= 0 || rel->reloptkind == RELOPT_OTHER_MEMBER_REL) rel->consider_parallel = false;
}

/* Of the topmost table, when its paths and those of its parts are there: what PostgreSQL makes from
 * then on is made of these, and workers may have it where they may have a part's scan. Of a part
 * that has parts itself it would be too early: for the whole, PostgreSQL makes scans of these parts
 * once more, and such a scan would be a worker's alone. */
void let_parts_be_parallel(const PlannerInfo* root, Index whole) {
  ListCell* cell;
  foreach (cell, root->append_rel_list) {
    const auto* part = static_cast<const AppendRelInfo*>(lfirst(cell));
    if (part->parent_relid != whole) continue;
    RelOptInfo* rel = root->simple_rel_array[part->child_relid];
    if (rel == nullptr) continue;
    if (root->simple_rte_array[part->child_relid]->inh) {
      let_parts_be_parallel(root, part->child_relid);
    } else if (rel->partial_pathlist != NIL) {
      rel->consider_parallel = true;
    }
  }
}

bool has_plain_path(const RelOptInfo* rel) {
  ListCell* cell;
  foreach (cell, rel->pathlist) {
    const auto* path = static_cast<const Path*>(lfirst(cell));
    if (bms_equal(PATH_REQ_OUTER(path), rel->lateral_relids)) return true;
  }
  return false;
}

/* ---- Paths */

void set_rel_pathlist(PlannerInfo* root, RelOptInfo* rel, Index number, RangeTblEntry* entry) {
  if (previous_pathlist != nullptr) previous_pathlist(root, rel, number, entry);
  if (entry->rtekind != RTE_RELATION) return;
  if (entry->inh) {
    if (rel->reloptkind == RELOPT_BASEREL) let_parts_be_parallel(root, number);
    return;
  }
  if (!rdmacc_relation_is_ours(entry->relid)) return;
  share_scan(root, rel, entry);
  ListCell* cell;
  foreach (cell, rel->pathlist) {
    auto* path = static_cast<Path*>(lfirst(cell));
    if (!IsA(path, IndexPath)) continue;
    RdmaccKeyMatch match = {};
    auto* index_path = reinterpret_cast<IndexPath*>(path);
    const bool ordered = costs_by(index_path, ordered_key_cost);
    if (!ordered && !costs_by(index_path, key_lookup_cost)) continue;
    if (rdmacc_match_key(index_path, &match)) {
      lfirst(cell) = rdmacc_key_lookup_path(root, index_path, &match);
    } else if (!ordered) {
      rel->pathlist = foreach_delete_current(rel->pathlist, cell);
    }
  }
  forbid_parallel(rel->pathlist);
  /* The scan of the whole table may have lost to an index path that is gone now. */
  if (!has_plain_path(rel)) {
    Path* scan = create_seqscan_path(root, rel, rel->lateral_relids, 0);
    scan->parallel_safe = false;
    add_path(rel, scan);
  }
}

/* ---- Whole queries */

struct QueryWalk {
  List* queries; /* innermost first */
  bool ours;
};

bool walk(Node* node, QueryWalk* state);
/* PostgreSQL declares walkers without their parameters. */
bool (*walker(void))() { return reinterpret_cast<bool (*)()>(reinterpret_cast<void (*)()>(walk)); }

bool is_ours(const RangeTblEntry* entry) {
  return entry->rtekind == RTE_RELATION && rdmacc_relation_is_ours(entry->relid);
}

/* The first of our tables whose rows the entry stands for, children's too; InvalidOid for none.
 * Children may not be locked yet; one that is being dropped is not looked at. */
Oid table_of_ours(const RangeTblEntry* entry) {
  if (is_ours(entry)) return entry->relid;
  if (entry->rtekind != RTE_RELATION || !entry->inh) return InvalidOid;
  ListCell* cell;
  foreach (cell, find_all_inheritors(entry->relid, NoLock, nullptr)) {
    if (rdmacc_relation_is_ours(lfirst_oid(cell))) return lfirst_oid(cell);
  }
  return InvalidOid;
}

[[noreturn]] void refuse_row_identifier(Oid table) {
  ereport(ERROR, (errcode(ERRCODE_FEATURE_NOT_SUPPORTED),
                  errmsg("rdmacc table \"%s\" has no ctid", get_rel_name(table)),
                  errhint("Use the primary key to identify rows.")));
}

bool walk(Node* node, QueryWalk* state) {
  if (node == nullptr) return false;
  if (IsA(node, Query)) {
    auto* query = reinterpret_cast<Query*>(node);
    ListCell* cell;
    foreach (cell, query->rtable) {
      state->ours = state->ours || is_ours(static_cast<const RangeTblEntry*>(lfirst(cell)));
    }
    state->queries = lcons(query, state->queries);
    const bool result = query_tree_walker(query, walker(), state, 0);
    state->queries = list_delete_first(state->queries);
    return result;
  }
  /* Whether a row is there at all, in an outer join, needs no ctid to compare. */
  if (IsA(node, NullTest) && IsA(reinterpret_cast<NullTest*>(node)->arg, Var)) return false;
  if (IsA(node, Var)) {
    const auto* var = reinterpret_cast<const Var*>(node);
    if (var->varattno != SelfItemPointerAttributeNumber ||
        static_cast<int>(var->varlevelsup) >= list_length(state->queries)) {
      return false;
    }
    const auto* query =
        static_cast<const Query*>(list_nth(state->queries, static_cast<int>(var->varlevelsup)));
    const RangeTblEntry* entry = rt_fetch(static_cast<Index>(var->varno), query->rtable);
    const Oid table = table_of_ours(entry);
    if (OidIsValid(table)) refuse_row_identifier(table);
    return false;
  }
  return expression_tree_walker(node, walker(), state);
}

PlannedStmt* planner_entry(Query* parse, const char* text, int options, ParamListInfo params) {
  Oid function = InvalidOid;
  if (OidIsValid(rdmacc_access_method())) {
    QueryWalk state = {};
    walk(reinterpret_cast<Node*>(parse), &state);
    if (!rdmacc_may_have_workers(parse, options, state.ours)) options &= ~CURSOR_OPT_PARALLEL_OK;
    if (state.ours) function = rdmacc_function_with_queries(parse);
  }
  PlannedStmt* plan = previous_planner != nullptr ? previous_planner(parse, text, options, params)
                                                  : standard_planner(parse, text, options, params);
  rdmacc_note_function(plan, function);
  return plan;
}

}  // namespace

bool rdmacc_match_key(const IndexPath* path, RdmaccKeyMatch* match) {
  const IndexOptInfo* index = path->indexinfo;
  if (!index->unique || !index->immediate || index->indpred != NIL) return false;
  for (int i = 0; i < index->nkeycolumns; i++) {
    if (!take_column(path, i, match)) return false;
  }
  return true;
}

void rdmacc_planner_init(void) {
  previous_planner = planner_hook;
  planner_hook = planner_entry;
  previous_relation_info = get_relation_info_hook;
  get_relation_info_hook = relation_info;
  previous_pathlist = set_rel_pathlist_hook;
  set_rel_pathlist_hook = set_rel_pathlist;
  rdmacc_join_planner_init();
  rdmacc_aggregate_planner_init();
}
