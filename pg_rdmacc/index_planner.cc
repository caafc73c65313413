#include "pg_rdmacc/index_planner.h"

#include "pg_rdmacc/index_entries.h"
#include "pg_rdmacc/key_codec.h"

extern "C" {
#include "access/stratnum.h"
#include "catalog/pg_opfamily.h"
#include "catalog/pg_type.h"
#include "nodes/nodeFuncs.h"
#include "optimizer/cost.h"
#include "optimizer/optimizer.h"
#include "utils/lsyscache.h"
#include "utils/selfuncs.h"
}

namespace {

/* A scan of the whole table passes some ten rows in the time of a lookup by key, which costs 0.25;
 * rows that an index names are looked up many at a time. */
constexpr Cost kSeekCost = 0.5;
constexpr Cost kEntryCost = 0.2;
constexpr double kArrayElementsUnknown = 10;

/* ---- Which clauses make the ranges of a scan smaller */

enum class Use { kNone, kBounds, kFixes };

bool same_order(const IndexOptInfo* index, int column) {
  return rdmacc_type_is_ordered(index->opcintype[column], index->indexcollations[column],
                                index->opfamily[column]);
}

Use use_of_operator(const IndexOptInfo* index, int column, Oid opno) {
  int strategy = 0;
  Oid left = InvalidOid;
  Oid right = InvalidOid;
  if (!op_in_opfamily(opno, index->opfamily[column])) return Use::kNone;
  get_op_opfamily_properties(opno, index->opfamily[column], false, &strategy, &left, &right);
  const bool polymorphic = IsPolymorphicType(right) || right == RECORDOID;
  if (!polymorphic && !rdmacc_key_types_match(index->opcintype[column], right)) return Use::kNone;
  if (strategy == BTEqualStrategyNumber) return Use::kFixes;
  return same_order(index, column) ? Use::kBounds : Use::kNone;
}

Use use_of_clause(const IndexOptInfo* index, int column, Expr* clause, double* seeks) {
  switch (nodeTag(clause)) {
    case T_OpExpr:
      return use_of_operator(index, column, reinterpret_cast<const OpExpr*>(clause)->opno);
    case T_NullTest:
      return reinterpret_cast<const NullTest*>(clause)->nulltesttype == IS_NULL ? Use::kFixes
                                                                                : Use::kBounds;
    case T_RowCompareExpr:
      return use_of_operator(index, column,
                             linitial_oid(reinterpret_cast<RowCompareExpr*>(clause)->opnos));
    case T_ScalarArrayOpExpr: {
      const auto* operation = reinterpret_cast<const ScalarArrayOpExpr*>(clause);
      if (use_of_operator(index, column, operation->opno) != Use::kFixes) return Use::kNone;
      auto* array = static_cast<Node*>(lsecond(operation->args));
      const bool known = IsA(array, Const) || IsA(array, ArrayExpr);
      *seeks *= Max(known ? estimate_array_length(array) : kArrayElementsUnknown, 1);
      return Use::kFixes;
    }
    default:
      return Use::kNone;
  }
}

/* The clauses that decide which entries are read: equality of leading columns, and bounds of the
 * next one. */
List* deciding_clauses(const IndexPath* path, double* seeks) {
  List* taken = NIL;
  bool fixed = true;
  for (int column = 0; fixed && column < path->indexinfo->nkeycolumns; column++) {
    fixed = false;
    ListCell* cell;
    foreach (cell, path->indexclauses) {
      const auto* clause = static_cast<const IndexClause*>(lfirst(cell));
      if (clause->indexcol != column) continue;
      ListCell* part;
      foreach (part, clause->indexquals) {
        auto* restriction = static_cast<RestrictInfo*>(lfirst(part));
        const Use use = use_of_clause(path->indexinfo, column, restriction->clause, seeks);
        if (use != Use::kNone) taken = lappend(taken, restriction);
        fixed = fixed || use == Use::kFixes;
      }
    }
  }
  return taken;
}

void index_scan_cost(PlannerInfo* root, IndexPath* path, double, Cost* startup, Cost* total,
                     Selectivity* selectivity, double* correlation, double* pages) {
  const RelOptInfo* rel = path->indexinfo->rel;
  double seeks = 1;
  List* clauses = deciding_clauses(path, &seeks);
  *selectivity =
      clauselist_selectivity(root, clauses, static_cast<int>(rel->relid), JOIN_INNER, nullptr);
  *pages = 1;
  *correlation = 1; /* rows of one batch travel together, wherever they are */
  *startup = kSeekCost;
  *total = seeks * kSeekCost + *selectivity * Max(rel->tuples, 1.0) * kEntryCost;
}

/* ---- Order */

/* The operator family whose order entries have in this column; InvalidOid: in none. */
Oid order_family(const IndexOptInfo* index, int column) {
  if (same_order(index, column)) return index->opfamily[column];
  if (index->opcintype[column] == TEXTOID) return TEXT_PATTERN_BTREE_FAM_OID;
  if (index->opcintype[column] == BPCHAROID) return BPCHAR_PATTERN_BTREE_FAM_OID;
  return InvalidOid;
}

/* Texts are in the order of their bytes, whatever their collation says: that of another family. */
Oid* order_families(const IndexOptInfo* index) {
  auto* families =
      static_cast<Oid*>(palloc(sizeof(Oid) * static_cast<Size>(Max(index->nkeycolumns, 1))));
  for (int i = 0; i < index->nkeycolumns; i++) {
    families[i] = order_family(index, i);
    if (!OidIsValid(families[i])) return nullptr;
  }
  return families;
}

}  // namespace

void rdmacc_describe_to_planner(IndexOptInfo* index) {
  index->amcostestimate = reinterpret_cast<void (*)()>(index_scan_cost);
  index->sortopfamily = order_families(index);
}

bool rdmacc_is_secondary_path(const IndexPath* path) {
  return path->indexinfo->amcostestimate == reinterpret_cast<void (*)()>(index_scan_cost);
}
