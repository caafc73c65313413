/* PostgreSQL makes nested loops over key lookups by itself: one exchange with the nodes for each
 * outer row. Here each gets a twin with a RdmaccKeyPrefetch above its outer side (key_prefetch.h),
 * and with a lookup that costs less, as it finds its row at hand. */

#include "pg_rdmacc/plan/key_prefetch.h"
#include "pg_rdmacc/plan/scan.h"

extern "C" {
#include "nodes/nodeFuncs.h"
#include "nodes/plannodes.h"
#include "optimizer/clauses.h"
#include "optimizer/cost.h"
#include "optimizer/optimizer.h"
#include "optimizer/pathnode.h"
#include "optimizer/paths.h"
}

namespace {

/* A lookup by itself costs 0.25 (planner.cc). */
constexpr Cost kBatchedLookupCost = 0.1;

set_join_pathlist_hook_type previous_join_pathlist;

struct Join {
  PlannerInfo* root;
  RelOptInfo* rel;
  RelOptInfo* outer;
  RelOptInfo* inner;
  JoinType type; /* for the nested loop */
  JoinPathExtraData* extra;
};

Relids top_relids(const RelOptInfo* rel) {
  return rel->top_parent_relids != nullptr ? rel->top_parent_relids : rel->relids;
}

/* Rows that are locked without waiting are locked one by one. */
bool all_wait(const PlannerInfo* root) {
  ListCell* cell;
  foreach (cell, root->rowMarks) {
    if (static_cast<const PlanRowMark*>(lfirst(cell))->waitPolicy != LockWaitBlock) return false;
  }
  return true;
}

/* Lookups whose keys the outer side alone knows. */
bool can_prefetch(const Join* join, const Path* lookup, RdmaccLookupParts* parts) {
  if (!rdmacc_key_lookup_parts(lookup, parts) || parts->is_array || parts->state_param < 0) {
    return false;
  }
  auto* values = reinterpret_cast<Node*>(parts->values);
  const Relids relids = pull_varnos(join->root, values);
  return !bms_is_empty(relids) && bms_is_subset(relids, join->outer->relids) &&
         !contain_subplans(values);
}

/* As try_nestloop_path() does; `lookup` belongs to a partition's own join where there are such. */
void try_join(const Join* join, Path* outer, Path* lookup, const RdmaccLookupParts* parts,
              Relids required_outer) {
  CustomPath* inner = makeNode(CustomPath);
  *inner = *reinterpret_cast<CustomPath*>(lookup);
  inner->path.total_cost =
      Min(inner->path.total_cost, inner->path.startup_cost + kBatchedLookupCost);
  Path* prefetch = rdmacc_key_prefetch_path(outer, parts);
  List* pathkeys = build_join_pathkeys(join->root, join->rel, join->type, outer->pathkeys);
  JoinCostWorkspace workspace;
  initial_cost_nestloop(join->root, &workspace, join->type, prefetch, &inner->path, join->extra);
  if (!add_path_precheck(join->rel, workspace.startup_cost, workspace.total_cost, pathkeys,
                         required_outer)) {
    return;
  }
  add_path(join->rel, reinterpret_cast<Path*>(create_nestloop_path(
                          join->root, join->rel, join->type, &workspace, join->extra, prefetch,
                          &inner->path, join->extra->restrictlist, pathkeys, required_outer)));
}

/* What the join itself still needs of others; false when that makes no sense. */
bool sensible_requirement(const Join* join, const Path* outer, const Path* lookup,
                          Relids* required_outer) {
  Relids needed = PATH_REQ_OUTER(lookup);
  *required_outer = calc_nestloop_required_outer(top_relids(join->outer), PATH_REQ_OUTER(outer),
                                                 top_relids(join->inner), needed);
  return *required_outer == nullptr ||
         (bms_overlap(*required_outer, join->extra->param_source_rels) &&
          !have_dangerous_phv(join->root, top_relids(join->outer), needed));
}

void add_joins_over(const Join* join, Path* outer) {
  ListCell* cell;
  foreach (cell, join->inner->pathlist) {
    auto* lookup = static_cast<Path*>(lfirst(cell));
    Relids required_outer = nullptr;
    if (!bms_overlap(PATH_REQ_OUTER(lookup), top_relids(join->outer)) ||
        !sensible_requirement(join, outer, lookup, &required_outer)) {
      continue;
    }
    if (join->outer->top_parent_relids != nullptr) {
      lookup = reparameterize_path_by_child(join->root, lookup, join->outer);
      if (lookup == nullptr) continue;
    }
    RdmaccLookupParts parts;
    if (!can_prefetch(join, lookup, &parts)) continue;
    try_join(join, outer, lookup, &parts, required_outer);
  }
}

bool has_lookup(const RelOptInfo* rel) {
  RdmaccLookupParts parts;
  ListCell* cell;
  foreach (cell, rel->pathlist) {
    if (rdmacc_key_lookup_parts(static_cast<const Path*>(lfirst(cell)), &parts)) return true;
  }
  return false;
}

/* One row at most: there is nothing to be read ahead. */
bool is_single_row(const Path* path) {
  RdmaccLookupParts parts;
  return IsA(path, GroupResultPath) || path->pathtype == T_Result ||
         (rdmacc_key_lookup_parts(path, &parts) && !parts.is_array);
}

void set_join_pathlist(PlannerInfo* root, RelOptInfo* joinrel, RelOptInfo* outerrel,
                       RelOptInfo* innerrel, JoinType jointype, JoinPathExtraData* extra) {
  if (previous_join_pathlist != nullptr) {
    previous_join_pathlist(root, joinrel, outerrel, innerrel, jointype, extra);
  }
  const bool unique_outer = jointype == JOIN_UNIQUE_OUTER;
  if (jointype != JOIN_INNER && jointype != JOIN_LEFT && jointype != JOIN_SEMI &&
      jointype != JOIN_ANTI && !unique_outer) {
    return;
  }
  if (!has_lookup(innerrel) || !all_wait(root)) return;
  const Join join = {root, joinrel, outerrel, innerrel, unique_outer ? JOIN_INNER : jointype,
                     extra};
  if (unique_outer) {
    Path* cheapest = outerrel->cheapest_total_path;
    if (bms_overlap(PATH_REQ_OUTER(cheapest), top_relids(innerrel))) return;
    Path* unique =
        reinterpret_cast<Path*>(create_unique_path(root, outerrel, cheapest, extra->sjinfo));
    if (unique != nullptr) add_joins_over(&join, unique);
    return;
  }
  ListCell* cell;
  foreach (cell, outerrel->pathlist) {
    auto* outer = static_cast<Path*>(lfirst(cell));
    if (bms_overlap(PATH_REQ_OUTER(outer), top_relids(innerrel)) || is_single_row(outer)) continue;
    add_joins_over(&join, outer);
  }
}

}  // namespace

void rdmacc_join_planner_init(void) {
  previous_join_pathlist = set_join_pathlist_hook;
  set_join_pathlist_hook = set_join_pathlist;
}
