#include "pg_rdmacc/plan/scan.h"

#include "pg_rdmacc/plan/custom_node.h"
#include "pg_rdmacc/plan/explain.h"
#include "pg_rdmacc/plan/key_lookup.h"

extern "C" {
#include "nodes/extensible.h"
#include "nodes/makefuncs.h"
#include "optimizer/appendinfo.h"
#include "optimizer/paramassign.h"
#include "optimizer/restrictinfo.h"
}

namespace {

/* What custom_private holds, in a path and in a plan. */
enum PathPart { kPathValues, kPathClauses, kPathRestrictions, kPathTypes, kPathFlags };

Plan* PlanCustomPath(PlannerInfo* root, RelOptInfo* rel, CustomPath* best_path, List* tlist,
                     List* clauses, List* custom_plans);
List* ReparameterizeCustomPathByChild(PlannerInfo* root, List* custom_private,
                                      RelOptInfo* child_rel);
Node* CreateCustomScanState(CustomScan* scan);

const CustomPathMethods path_methods = {
    .CustomName = "RdmaccKeyLookup",
    .PlanCustomPath = PlanCustomPath,
    .ReparameterizeCustomPathByChild = ReparameterizeCustomPathByChild,
};

const CustomScanMethods plan_methods = {
    .CustomName = "RdmaccKeyLookup",
    .CreateCustomScanState = CreateCustomScanState,
};

const CustomExecMethods state_methods =
    rdmacc_node_methods("RdmaccKeyLookup", {.begin = rdmacc_lookup_begin,
                                            .exec = rdmacc_lookup_exec,
                                            .end = rdmacc_lookup_end,
                                            .rescan = rdmacc_lookup_rescan,
                                            .explain = rdmacc_explain_lookup});

bool made_good_by(const RestrictInfo* restriction, const List* taken) {
  ListCell* cell;
  foreach (cell, taken) {
    const auto* other = static_cast<const RestrictInfo*>(lfirst(cell));
    if (restriction == other) return true;
    if (restriction->parent_ec != nullptr && restriction->parent_ec == other->parent_ec) {
      return true;
    }
  }
  return false;
}

Plan* PlanCustomPath(PlannerInfo*, RelOptInfo* rel, CustomPath* best_path, List* tlist,
                     List* clauses, List*) {
  const List* parts = best_path->custom_private;
  const auto* taken = static_cast<const List*>(list_nth(parts, kPathRestrictions));
  List* left = NIL;
  ListCell* cell;
  foreach (cell, clauses) {
    auto* restriction = static_cast<RestrictInfo*>(lfirst(cell));
    if (restriction->pseudoconstant || made_good_by(restriction, taken)) continue;
    left = lappend(left, restriction);
  }
  CustomScan* scan = makeNode(CustomScan);
  scan->scan.plan.targetlist = tlist;
  scan->scan.plan.qual = extract_actual_clauses(left, false);
  scan->scan.scanrelid = rel->relid;
  scan->flags = best_path->flags;
  scan->custom_exprs = list_make2(list_nth(parts, kPathValues), list_nth(parts, kPathClauses));
  scan->custom_private = list_make2(list_nth(parts, kPathTypes), list_nth(parts, kPathFlags));
  scan->methods = &plan_methods;
  return &scan->scan.plan;
}

/* Expressions of a partition's path that refer to the other side of a partitionwise join. */
List* ReparameterizeCustomPathByChild(PlannerInfo* root, List* custom_private,
                                      RelOptInfo* child_rel) {
  List* parts = list_copy(custom_private);
  for (int part = kPathValues; part <= kPathRestrictions; part++) {
    lfirst(list_nth_cell(parts, part)) =
        adjust_appendrel_attrs_multilevel(root, static_cast<Node*>(list_nth(parts, part)),
                                          child_rel->relids, child_rel->top_parent_relids);
  }
  return parts;
}

Node* CreateCustomScanState(CustomScan*) {
  return rdmacc_make_node_state<RdmaccKeyLookup>(&state_methods);
}

}  // namespace

Path* rdmacc_key_lookup_path(PlannerInfo* root, const IndexPath* path,
                             const RdmaccKeyMatch* match) {
  const Oid state_param = path->path.param_info == nullptr
                              ? InvalidOid
                              : static_cast<Oid>(assign_special_exec_param(root) + 1);
  CustomPath* lookup = makeNode(CustomPath);
  lookup->path = path->path;
  lookup->path.type = T_CustomPath;
  lookup->path.pathtype = T_CustomScan;
  lookup->path.parallel_safe = false;
  lookup->path.parallel_aware = false;
  lookup->path.pathkeys = NIL;
  lookup->flags = CUSTOMPATH_SUPPORT_PROJECTION | CUSTOMPATH_SUPPORT_BACKWARD_SCAN;
  lookup->custom_private =
      list_make5(match->values, match->clauses, match->restrictions, match->types,
                 list_make4_oid(path->indexinfo->indexoid, static_cast<Oid>(match->is_array),
                                state_param, static_cast<Oid>(match->compares)));
  lookup->methods = &path_methods;
  return &lookup->path;
}

bool rdmacc_is_key_lookup(const Plan* plan) {
  return IsA(plan, CustomScan) &&
         reinterpret_cast<const CustomScan*>(plan)->methods == &plan_methods;
}

bool rdmacc_key_lookup_parts(const Path* path, RdmaccLookupParts* parts) {
  if (!IsA(path, CustomPath)) return false;
  const auto* lookup = reinterpret_cast<const CustomPath*>(path);
  if (lookup->methods != &path_methods) return false;
  const auto* flags = static_cast<const List*>(list_nth(lookup->custom_private, kPathFlags));
  parts->values = static_cast<List*>(list_nth(lookup->custom_private, kPathValues));
  parts->is_array = lsecond_oid(flags) != 0;
  parts->state_param = static_cast<int>(lthird_oid(flags)) - 1;
  return true;
}

void rdmacc_scan_init(void) { RegisterCustomScanMethods(&plan_methods); }
