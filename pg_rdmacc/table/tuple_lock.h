/* SELECT … FOR UPDATE, NO KEY UPDATE, SHARE and KEY SHARE, and whether they wait.
 *
 * What a transaction reads is protected to its end anyway, so that locks for sharing do nothing
 * more; the others write the row as it is, which conflicts with every other reader and writer.
 * NOWAIT and SKIP LOCKED lock it at once where the protocol locks. */
#pragma once
#include "pg_rdmacc/server/pg_rdmacc.h"

extern "C" {
#include "access/tableam.h"

/* tableam.h */
TM_Result rdmacc_tuple_lock(Relation rel, ItemPointer tid, Snapshot snapshot, TupleTableSlot* slot,
                            CommandId cid, LockTupleMode mode, LockWaitPolicy wait_policy,
                            uint8 flags, TM_FailureData* tmfd);
}
