/* What an executor holds of the relcache: relations, indexes of the table that it writes,
 * descriptors of slots. Between two executions a kept one (kept_executor.h) knows them, and holds
 * none. */
#pragma once
#include "pg_rdmacc/server/pg_rdmacc.h"

extern "C" {
#include "nodes/execnodes.h"
#include "nodes/plannodes.h"

#define RDMACC_LOANED_SLOTS_MAX 16
#define RDMACC_LOANED_INDEXES_MAX 16

typedef struct RdmaccLoanedSlot {
  TupleTableSlot* slot;
  TupleDesc descriptor;
  Relation relation;
} RdmaccLoanedSlot;

typedef struct RdmaccExecutorLoans {
  int slot_count;
  RdmaccLoanedSlot slots[RDMACC_LOANED_SLOTS_MAX];
  int index_count;
  Oid indexes[RDMACC_LOANED_INDEXES_MAX];
} RdmaccExecutorLoans;

/* What there is to be given back. False: there is too much, or something that is not of a relation
 * of the plan. `top` is the plan's state. */
bool rdmacc_note_loans(const EState* state, PlanState* top, RdmaccExecutorLoans* loans);

/* Slots are empty then. Snapshots and memory are another's business, and there are no triggers. */
void rdmacc_return_loans(EState* state, PlanState* top, RdmaccExecutorLoans* loans);

/* Once the plan's tables are locked. False, and nothing is held: something is not what it was. */
bool rdmacc_renew_loans(EState* state, PlanState* top, const PlannedStmt* plan,
                        const RdmaccExecutorLoans* loans);
}
