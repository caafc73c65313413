/* SELECT … FOR UPDATE, NO KEY UPDATE, SHARE and KEY SHARE, and whether they wait.
 *
 * What a transaction reads is protected to its end anyway, so that locks for sharing do nothing
 * more; the others write the row as it is, and who else reads or writes it conflicts. NOWAIT and
 * SKIP LOCKED lock it at once where the protocol locks; see README.md. */
#pragma once
#include "pg_rdmacc/engine_table.h"

extern "C" {
#include "access/relscan.h"
#include "access/tableam.h"
#include "nodes/lockoptions.h"
#include "nodes/plannodes.h"

TM_Result rdmacc_tuple_lock(Relation rel, ItemPointer tid, Snapshot snapshot, TupleTableSlot* slot,
                            CommandId cid, LockTupleMode mode, LockWaitPolicy wait_policy,
                            uint8 flags, TM_FailureData* tmfd);

/* What a statement says of locks on the rows of its range table's entry. */
LockWaitPolicy rdmacc_wait_policy_of(const PlannedStmt* statement, Index number);

/* The same of a scan that the running query has begun. */
LockWaitPolicy rdmacc_wait_policy_of_scan(const TableScanDescData* scan);
LockWaitPolicy rdmacc_wait_policy_of_index_scan(const IndexScanDescData* scan);

/* Reads a row, and locks it if `exclusive`, without waiting. False when somebody else holds it;
 * under LockWaitError that is 55P03. */
bool rdmacc_try_lock_row(Relation relation, uint32 table, BridgeBytes key, bool exclusive,
                         uint32 visible_before, LockWaitPolicy wait_policy, BridgeRow* row);

[[noreturn]] void rdmacc_raise_row_locked(Relation relation);
}
