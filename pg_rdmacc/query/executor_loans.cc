#include "pg_rdmacc/query/executor_loans.h"

extern "C" {
#include "access/genam.h"
#include "access/table.h"
#include "executor/executor.h"
#include "parser/parsetree.h"
#include "utils/rel.h"
}

namespace {

/* The table that is written; NULL when none is. */
ResultRelInfo* target_of(PlanState* top) {
  if (!IsA(top, ModifyTableState)) return nullptr;
  return reinterpret_cast<ModifyTableState*>(top)->resultRelInfo;
}

const EPQState* recheck_of(PlanState* top) {
  if (IsA(top, LockRowsState)) return &reinterpret_cast<LockRowsState*>(top)->lr_epqstate;
  if (IsA(top, ModifyTableState)) return &reinterpret_cast<ModifyTableState*>(top)->mt_epqstate;
  return nullptr;
}

Relation relation_with(const EState* state, TupleDesc descriptor) {
  for (Index i = 0; i < state->es_range_table_size; i++) {
    Relation relation = state->es_relations[i];
    if (relation != nullptr && RelationGetDescr(relation) == descriptor) return relation;
  }
  return nullptr;
}

bool note_slot(const EState* state, TupleTableSlot* slot, RdmaccExecutorLoans* loans) {
  CHECK(slot != nullptr);
  const TupleDesc descriptor = slot->tts_tupleDescriptor;
  if (descriptor == nullptr || descriptor->tdrefcount < 0) return true; /* its own */
  Relation relation = relation_with(state, descriptor);
  if (relation == nullptr || loans->slot_count == RDMACC_LOANED_SLOTS_MAX) return false;
  loans->slots[loans->slot_count++] = {slot, descriptor, relation};
  return true;
}

bool note_slots(const EState* state, const EPQState* recheck, RdmaccExecutorLoans* loans) {
  ListCell* cell;
  foreach (cell, state->es_tupleTable) {
    if (!note_slot(state, static_cast<TupleTableSlot*>(lfirst(cell)), loans)) return false;
  }
  /* Rows that are locked have theirs apart. */
  if (recheck == nullptr || recheck->relsubs_slot == nullptr) return true;
  for (Index i = 0; i < state->es_range_table_size; i++) {
    TupleTableSlot* slot = recheck->relsubs_slot[i];
    if (slot != nullptr && !note_slot(state, slot, loans)) return false;
  }
  return true;
}

bool note_indexes(const ResultRelInfo* target, RdmaccExecutorLoans* loans) {
  if (target == nullptr || target->ri_IndexRelationDescs == nullptr) return true;
  if (target->ri_NumIndices > RDMACC_LOANED_INDEXES_MAX) return false;
  for (int i = 0; i < target->ri_NumIndices; i++) {
    loans->indexes[loans->index_count++] = RelationGetRelid(target->ri_IndexRelationDescs[i]);
  }
  return true;
}

void close_indexes(const ResultRelInfo* target, const RdmaccExecutorLoans* loans) {
  CHECK(loans->index_count == 0 || target != nullptr);
  for (int i = 0; i < loans->index_count; i++) {
    index_close(target->ri_IndexRelationDescs[i], RowExclusiveLock);
  }
}

/* An UPDATE changes entries along with its row; that there is an array keeps PostgreSQL from
 * opening indexes for it. (A deferrable index, which it would check, comes with a trigger.) */
void forget_unused_indexes(PlanState* top, RdmaccExecutorLoans* loans) {
  ResultRelInfo* target = target_of(top);
  if (target == nullptr || reinterpret_cast<ModifyTableState*>(top)->operation != CMD_UPDATE)
    return;
  CHECK(target->ri_TrigDesc == nullptr);
  loans->index_count = 0;
  target->ri_NumIndices = 0;
}

bool open_relations(EState* state, const PlannedStmt* plan) {
  bool same = true;
  for (Index i = 1; i <= state->es_range_table_size; i++) {
    const Relation before = state->es_relations[i - 1];
    if (before == nullptr) continue;
    state->es_relations[i - 1] = table_open(rt_fetch(i, plan->rtable)->relid, NoLock);
    same = same && state->es_relations[i - 1] == before;
  }
  return same;
}

bool open_indexes(const ResultRelInfo* target, const RdmaccExecutorLoans* loans) {
  bool same = true;
  for (int i = 0; i < loans->index_count; i++) {
    const Relation before = target->ri_IndexRelationDescs[i];
    target->ri_IndexRelationDescs[i] = index_open(loans->indexes[i], RowExclusiveLock);
    same = same && target->ri_IndexRelationDescs[i] == before;
  }
  return same;
}

bool has_same_descriptors(const RdmaccExecutorLoans* loans) {
  for (int i = 0; i < loans->slot_count; i++) {
    if (RelationGetDescr(loans->slots[i].relation) != loans->slots[i].descriptor) return false;
  }
  return true;
}

}  // namespace

bool rdmacc_note_loans(const EState* state, PlanState* top, RdmaccExecutorLoans* loans) {
  CHECK(state->es_relations != nullptr && top != nullptr);
  loans->slot_count = loans->index_count = 0;
  return note_slots(state, recheck_of(top), loans) && note_indexes(target_of(top), loans);
}

void rdmacc_return_loans(EState* state, PlanState* top, RdmaccExecutorLoans* loans) {
  ListCell* cell;
  foreach (cell, state->es_tupleTable) ExecClearTuple(static_cast<TupleTableSlot*>(lfirst(cell)));
  for (int i = 0; i < loans->slot_count; i++) {
    ExecClearTuple(loans->slots[i].slot);
    ReleaseTupleDesc(loans->slots[i].descriptor);
  }
  close_indexes(target_of(top), loans);
  forget_unused_indexes(top, loans);
  ExecCloseRangeTableRelations(state);
}

bool rdmacc_renew_loans(EState* state, PlanState* top, const PlannedStmt* plan,
                        const RdmaccExecutorLoans* loans) {
  CHECK(list_length(plan->rtable) == static_cast<int>(state->es_range_table_size));
  bool same = open_relations(state, plan);
  same = open_indexes(target_of(top), loans) && same;
  if (!same || !has_same_descriptors(loans)) {
    close_indexes(target_of(top), loans);
    ExecCloseRangeTableRelations(state);
    return false;
  }
  for (int i = 0; i < loans->slot_count; i++) PinTupleDesc(loans->slots[i].descriptor);
  return true;
}
