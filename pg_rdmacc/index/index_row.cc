#include "pg_rdmacc/index/index_row.h"

#include "pg_rdmacc/index/shadow_index.h"

extern "C" {
#include "access/htup_details.h"
#include "access/xact.h"
#include "catalog/index.h"
#include "executor/executor.h"
#include "nodes/execnodes.h"
#include "nodes/nodeFuncs.h"
#include "utils/datum.h"
#include "utils/inval.h"
#include "utils/lsyscache.h"
#include "utils/memutils.h"
#include "utils/syscache.h"
}

namespace {

/* What is prepared once to compute an index's columns, and used for many rows. */
struct Evaluator {
  Oid index;
  bool busy; /* an expression's function may write to the same table */
  EState* state;
  IndexInfo* info;
  ExprState* predicate;
  TupleTableSlot* slot; /* for rows that come as tuples */
};

List* evaluators; /* of this transaction */
MemoryContext memory;
int computing;
uint64 epoch;   /* when they were made */
uint64 changes; /* what else makes them stale */

void function_changed(Datum, int, uint32) { changes++; }

/* Rises when an index, or any function, is another one. */
uint64 epoch_now(void) {
  static bool watching;
  if (!watching) CacheRegisterSyscacheCallback(PROCOID, function_changed, static_cast<Datum>(0));
  watching = true;
  return rdmacc_index_epoch() + changes;
}

Evaluator* make_evaluator(const RdmaccIndex* index, Relation relation) {
  CHECK(CurrentMemoryContext == memory); /* it lives as long as the list of them */
  Relation index_relation = RelationIdGetRelation(index->oid);
  if (!RelationIsValid(index_relation)) elog(ERROR, "could not open index %u", index->oid);
  auto* evaluator = static_cast<Evaluator*>(palloc0(sizeof(Evaluator)));
  evaluator->index = index->oid;
  evaluator->info = BuildIndexInfo(index_relation);
  RelationClose(index_relation);
  evaluator->state = CreateExecutorState();
  evaluator->predicate = ExecPrepareQual(evaluator->info->ii_Predicate, evaluator->state);
  /* A copy of the description: that of the relation's cache would have to be given back. */
  evaluator->slot = MakeSingleTupleTableSlot(CreateTupleDescCopyConstr(RelationGetDescr(relation)),
                                             &TTSOpsHeapTuple);
  return evaluator;
}

void forget(void) {
  CHECK(computing == 0);
  if (memory != nullptr) MemoryContextDelete(memory);
  memory = nullptr;
  evaluators = NIL;
}

bool one_is_busy(void) {
  ListCell* cell;
  foreach (cell, evaluators) {
    if (static_cast<const Evaluator*>(lfirst(cell))->busy) return true;
  }
  return false;
}

Evaluator* evaluator_of(const RdmaccIndex* index, Relation relation) {
  const uint64 now = epoch_now();
  if (epoch != now && !one_is_busy()) forget();
  ListCell* cell;
  foreach (cell, evaluators) {
    auto* evaluator = static_cast<Evaluator*>(lfirst(cell));
    if (evaluator->index == index->oid && !evaluator->busy && epoch == now) {
      return evaluator;
    }
  }
  if (memory == nullptr) {
    memory = AllocSetContextCreate(TopTransactionContext, "rdmacc index expressions",
                                   ALLOCSET_DEFAULT_SIZES);
    epoch = now;
  }
  const MemoryContext previous = MemoryContextSwitchTo(memory);
  Evaluator* evaluator = make_evaluator(index, relation);
  evaluators = lappend(evaluators, evaluator);
  MemoryContextSwitchTo(previous);
  return evaluator;
}

/* Computed values are copied: the next row's take their place. */
void copy_expressions(const IndexInfo* info, Datum* values, const bool* nulls) {
  ListCell* expression = list_head(info->ii_Expressions);
  for (int i = 0; i < info->ii_NumIndexKeyAttrs; i++) {
    if (info->ii_IndexAttrNumbers[i] != 0) continue;
    int16 length = 0;
    bool by_value = false;
    CHECK(expression != nullptr); /* one for each column without a number */
    get_typlenbyval(exprType(static_cast<Node*>(lfirst(expression))), &length, &by_value);
    if (!nulls[i]) values[i] = datumCopy(values[i], by_value, length);
    expression = lnext(info->ii_Expressions, expression);
  }
}

bool evaluate(Evaluator* evaluator, TupleTableSlot* slot, Datum* values, bool* nulls) {
  CHECK(!evaluator->busy);
  ExprContext* context = GetPerTupleExprContext(evaluator->state);
  volatile bool taken = false;
  evaluator->busy = true;
  computing++;
  PG_TRY();
  {
    context->ecxt_scantuple = slot;
    taken = evaluator->predicate == nullptr || ExecQual(evaluator->predicate, context);
    if (taken) {
      FormIndexDatum(evaluator->info, slot, evaluator->state, values, nulls);
      copy_expressions(evaluator->info, values, nulls);
    }
  }
  PG_FINALLY();
  {
    ResetExprContext(context);
    evaluator->busy = false;
    computing--;
  }
  PG_END_TRY();
  return taken;
}

/* An error may have left a function in the middle of a query, with what the subtransaction has
 * taken back. */
void subtransaction_aborted(int) { changes++; }

/* With the transaction, whose memory it was. */
void forget_all(void) {
  memory = nullptr;
  evaluators = NIL;
}

}  // namespace

bool rdmacc_index_row(const RdmaccIndex* index, Relation relation, TupleTableSlot* slot,
                      Datum* values, bool* nulls) {
  if (index->computed) return evaluate(evaluator_of(index, relation), slot, values, nulls);
  for (int i = 0; i < index->column_count; i++) {
    values[i] = slot_getattr(slot, index->columns[i].attno, &nulls[i]);
  }
  return true;
}

bool rdmacc_index_row_of_tuple(const RdmaccIndex* index, Relation relation, HeapTuple tuple,
                               Datum* values, bool* nulls) {
  if (index->computed) {
    Evaluator* evaluator = evaluator_of(index, relation);
    ExecStoreHeapTuple(tuple, evaluator->slot, false);
    const bool taken = evaluate(evaluator, evaluator->slot, values, nulls);
    /* Columns of the row that are not computed point into the tuple, not into the slot. */
    ExecClearTuple(evaluator->slot);
    return taken;
  }
  for (int i = 0; i < index->column_count; i++) {
    values[i] = heap_getattr(tuple, index->columns[i].attno, RelationGetDescr(relation), &nulls[i]);
  }
  return true;
}

bool rdmacc_index_row_is_computed(void) { return computing > 0; }

const RdmaccTransactionPart rdmacc_index_rows_part = {
    .subtransaction_aborted = subtransaction_aborted, .forget = forget_all};
