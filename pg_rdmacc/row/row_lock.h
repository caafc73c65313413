/* Whether a statement waits for rows that others hold, and locking one without waiting: for the
 * locks of SELECT ... FOR UPDATE and its kind (tuple_lock.h) and for the scans below them. */
#pragma once
#include "pg_rdmacc/server/pg_rdmacc.h"

extern "C" {
#include "access/relscan.h"
#include "nodes/lockoptions.h"
#include "nodes/plannodes.h"

/* What a statement says of locks on the rows of its range table's entry. */
LockWaitPolicy rdmacc_wait_policy_of(const PlannedStmt* statement, Index number);

/* The same of a scan that the running query has begun. */
LockWaitPolicy rdmacc_wait_policy_of_scan(const TableScanDescData* scan);
LockWaitPolicy rdmacc_wait_policy_of_index_scan(const IndexScanDescData* scan);

/* Reads a row, and locks it if `exclusive`, without waiting. False when another transaction holds
 * it; under LockWaitError that is 55P03. */
bool rdmacc_try_lock_row(Relation relation, uint32 table, BridgeBytes key, bool exclusive,
                         uint32 visible_before, LockWaitPolicy wait_policy, BridgeRow* row);

[[noreturn]] void rdmacc_raise_row_locked(Relation relation);
}
