
#include <math.h>

#include "pg_rdmacc/codec/key_codec.h"
#include "pg_rdmacc/index/index_entries.h"
#include "pg_rdmacc/index/index_only.h"
#include "pg_rdmacc/plan/planner.h"

extern "C" {
#include "access/htup_details.h"
#include "access/itup.h"
#include "access/stratnum.h"
#include "catalog/pg_am.h"
#include "catalog/pg_class.h"
#include "catalog/pg_opfamily.h"
#include "catalog/pg_type.h"
#include "nodes/nodeFuncs.h"
#include "optimizer/cost.h"
#include "optimizer/optimizer.h"
#include "storage/bufpage.h"
#include "utils/index_selfuncs.h"
#include "utils/lsyscache.h"
#include "utils/selfuncs.h"
#include "utils/syscache.h"
}

namespace {

/* As PostgreSQL fills the leaves of a btree that it builds, and how many the root can have. */
constexpr double kLeafFill = 0.9;
constexpr BlockNumber kChildrenOfRoot = 285;
/* A scan of the whole table passes some ten rows in the time of a lookup by key, which costs 0.25;
 * rows that an index names are looked up many at a time. */
constexpr Cost kSeekCost = 0.5;
constexpr Cost kEntryCost = 0.2;
/* Beside what PostgreSQL adds for a row: by measurement, a row that an index names takes three
 * times as long as one that a scan of the table passes. */
constexpr Cost kFetchCost = 0.01;
constexpr double kArrayElementsUnknown = 10;

/* ---- Which clauses make the ranges of a scan smaller */

enum class Use { kNone, kBounds, kFixes };

bool same_order(const IndexOptInfo* index, int column) {
  return index->relam == BTREE_AM_OID &&
         rdmacc_type_is_ordered(index->opcintype[column], index->indexcollations[column],
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
  const int equality = index->relam == HASH_AM_OID ? HTEqualStrategyNumber : BTEqualStrategyNumber;
  if (strategy == equality) return Use::kFixes;
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

int number_of_clauses(const IndexPath* path) {
  int count = 0;
  ListCell* cell;
  foreach (cell, path->indexclauses) {
    count += list_length(static_cast<const IndexClause*>(lfirst(cell))->indexquals);
  }
  return count;
}

/* ---- Sizes */

/* The average size of a column's values; from the table's statistics where there are any. */
int32 column_width(const IndexOptInfo* index, int column, Oid table) {
  const int attno = index->indexkeys[column];
  int32 width = 0;
  if (attno != 0) width = get_attavgwidth(table, static_cast<AttrNumber>(attno));
  if (width > 0) return width;
  const auto number = static_cast<AttrNumber>(column + 1);
  return get_typavgwidth(get_atttype(index->indexoid, number), -1);
}

/* As ANALYZE has found; as many as the table has, when that is not known. */
double rows_of_partial(const IndexOptInfo* index) {
  HeapTuple tuple = SearchSysCache1(RELOID, ObjectIdGetDatum(index->indexoid));
  if (!HeapTupleIsValid(tuple)) return index->rel->tuples;
  const double rows = reinterpret_cast<Form_pg_class>(GETSTRUCT(tuple))->reltuples;
  ReleaseSysCache(tuple);
  return rows > 0 ? rows : index->rel->tuples;
}

/* That of a btree of PostgreSQL's with as many entries: there is no file to look at. */
void estimate_size(IndexOptInfo* index, Oid table) {
  Size width = sizeof(IndexTupleData);
  for (int i = 0; i < index->ncolumns; i++) {
    width += static_cast<Size>(column_width(index, i, table));
  }
  const double entry = static_cast<double>(MAXALIGN(width) + sizeof(ItemIdData));
  const double page = (BLCKSZ - SizeOfPageHeaderData) * kLeafFill;
  index->tuples = index->rel->tuples;
  if (index->indpred != NIL) index->tuples = Min(index->tuples, rows_of_partial(index));
  index->pages = 1 + static_cast<BlockNumber>(ceil(Max(index->tuples, 1.0) * entry / page));
  index->tree_height = index->pages <= 2 ? 0 : 1;
  if (index->pages > kChildrenOfRoot) index->tree_height = 2;
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

void rdmacc_describe_to_planner(IndexOptInfo* index, Oid table) {
  index->amcostestimate = reinterpret_cast<void (*)()>(rdmacc_index_scan_cost);
  estimate_size(index, table);
  rdmacc_describe_index_only(index);
  index->sortopfamily = index->relam == BTREE_AM_OID ? order_families(index) : nullptr;
}

/* What PostgreSQL's own index of the kind would cost, and the rows that are fetched, which travel
 * in batches wherever they are: their order is no matter, so that a bitmap is no cheaper. Where it
 * could use a clause that our entries cannot, because their order is another one or the clause's
 * column is not next, the rows have to be read to apply it. */
void rdmacc_index_scan_cost(PlannerInfo* root, IndexPath* path, double loop_count, Cost* startup,
                            Cost* total, Selectivity* selectivity, double* correlation,
                            double* pages) {
  const IndexOptInfo* index = path->indexinfo;
  if (index->relam == HASH_AM_OID) {
    hashcostestimate(root, path, loop_count, startup, total, selectivity, correlation, pages);
  } else {
    btcostestimate(root, path, loop_count, startup, total, selectivity, correlation, pages);
  }
  *correlation = 1;
  const RelOptInfo* rel = index->rel;
  if (path->path.pathtype != T_IndexOnlyScan) {
    *total += *selectivity * Max(rel->tuples, 1.0) * kFetchCost;
  }
  double seeks = 1;
  List* clauses = deciding_clauses(path, &seeks);
  if (list_length(clauses) == number_of_clauses(path)) return;
  const Selectivity read =
      clauselist_selectivity(root, list_concat_copy(index->indpred, clauses),
                             static_cast<int>(rel->relid), JOIN_INNER, nullptr);
  *selectivity = Max(*selectivity, read);
  *total = Max(*total, seeks * kSeekCost + read * Max(rel->tuples, 1.0) * kEntryCost);
}
