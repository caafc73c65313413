/* A query that only aggregates a table's rows gets a RdmaccRowStream (row_stream.h) in place of the
 * scan. Aggregates themselves are PostgreSQL's, with their types, overflows, ORDER BY, FILTER,
 * DISTINCT and HAVING. */

#include "pg_rdmacc/plan/planner.h"
#include "pg_rdmacc/plan/row_stream.h"
#include "pg_rdmacc/relation/access_method.h"
#include "pg_rdmacc/relation/row_estimate.h"

extern "C" {
#include "access/sysattr.h"
#include "nodes/nodeFuncs.h"
#include "optimizer/optimizer.h"
#include "optimizer/pathnode.h"
#include "optimizer/planner.h"
#include "optimizer/prep.h"
#include "optimizer/tlist.h"
#include "parser/parsetree.h"
}

namespace {

constexpr double kRowsMin = 100; /* below, nothing is to be gained */

create_upper_paths_hook_type previous_upper_paths;

bool only_aggregates(const PathTarget* target, Node* having) {
  auto* results = reinterpret_cast<Node*>(target->exprs);
  if (contain_volatile_functions(results) || contain_volatile_functions(having)) return false;
  List* parts =
      list_concat(pull_var_clause(results, PVC_INCLUDE_AGGREGATES | PVC_RECURSE_PLACEHOLDERS),
                  pull_var_clause(having, PVC_INCLUDE_AGGREGATES | PVC_RECURSE_PLACEHOLDERS));
  ListCell* cell;
  foreach (cell, parts) {
    if (!IsA(lfirst(cell), Aggref)) return false;
  }
  return true;
}

/* As many as there are now: the planner takes new tables for larger ones. */
bool has_rows_enough(Oid table) {
  Relation relation = RelationIdGetRelation(table);
  if (!RelationIsValid(relation)) return false;
  const bool enough = rdmacc_estimated_rows(relation) >= kRowsMin;
  RelationClose(relation);
  return enough;
}

/* A row's identity, which a stream does not give. */
bool wants_ctid(const RelOptInfo* input) {
  CHECK(input->min_attr <= SelfItemPointerAttributeNumber && input->attr_needed != nullptr);
  return !bms_is_empty(input->attr_needed[SelfItemPointerAttributeNumber - input->min_attr]);
}

/* The scan of a whole table of ours that the input is; NULL when it is something else. */
Path* scan_of(PlannerInfo* root, const RelOptInfo* input) {
  if (input->reloptkind != RELOPT_BASEREL || input->rtekind != RTE_RELATION ||
      !bms_is_empty(input->lateral_relids)) {
    return nullptr;
  }
  const RangeTblEntry* entry = planner_rt_fetch(input->relid, root);
  if (entry->inh || !rdmacc_relation_is_ours(entry->relid)) return nullptr;
  if (wants_ctid(input) || !has_rows_enough(entry->relid)) return nullptr;
  Path* cheapest = input->cheapest_total_path;
  return cheapest->pathtype == T_SeqScan ? cheapest : nullptr;
}

Path* aggregate(PlannerInfo* root, RelOptInfo* output, Path* of, AggSplit split, List* having,
                const AggClauseCosts* costs) {
  return reinterpret_cast<Path*>(create_agg_path(root, output, of, output->reltarget, AGG_PLAIN,
                                                 split, NIL, having, costs, 1));
}

/* The same by workers, each of its part of the table, if PostgreSQL has thought of that. */
void add_shared_path(PlannerInfo* root, const RelOptInfo* input, RelOptInfo* output, List* having,
                     const GroupPathExtraData* extra) {
  if (input->partial_pathlist == NIL || !extra->partial_costs_set) return;
  const auto* scan = static_cast<const Path*>(linitial(input->partial_pathlist));
  RelOptInfo* parts = fetch_upper_rel(root, UPPERREL_PARTIAL_GROUP_AGG, output->relids);
  if (scan->pathtype != T_SeqScan || parts->partial_pathlist == NIL) return;
  Path* part = aggregate(root, parts, rdmacc_row_stream_path(scan), AGGSPLIT_INITIAL_SERIAL, NIL,
                         &extra->agg_partial_costs);
  double rows = part->rows * part->parallel_workers;
  Path* gathered = reinterpret_cast<Path*>(
      create_gather_path(root, parts, part, parts->reltarget, nullptr, &rows));
  add_path(output, aggregate(root, output, gathered, AGGSPLIT_FINAL_DESERIAL, having,
                             &extra->agg_final_costs));
}

void create_upper_paths(PlannerInfo* root, UpperRelationKind stage, RelOptInfo* input,
                        RelOptInfo* output, void* extra) {
  if (previous_upper_paths != nullptr) previous_upper_paths(root, stage, input, output, extra);
  const Query* query = root->parse;
  if (stage != UPPERREL_GROUP_AGG || !query->hasAggs || query->groupClause != NIL ||
      query->groupingSets != NIL || query->rowMarks != NIL) {
    return;
  }
  const Path* scan = scan_of(root, input);
  const auto* grouping = static_cast<const GroupPathExtraData*>(extra);
  if (scan == nullptr || !only_aggregates(output->reltarget, grouping->havingQual)) return;
  AggClauseCosts costs = {};
  get_agg_clause_costs(root, AGGSPLIT_SIMPLE, &costs);
  auto* having = reinterpret_cast<List*>(grouping->havingQual);
  add_path(output,
           aggregate(root, output, rdmacc_row_stream_path(scan), AGGSPLIT_SIMPLE, having, &costs));
  add_shared_path(root, input, output, having, grouping);
}

}  // namespace

void rdmacc_aggregate_planner_init(void) {
  previous_upper_paths = create_upper_paths_hook;
  create_upper_paths_hook = create_upper_paths;
}
