/* SELECT … FOR UPDATE, NO KEY UPDATE, SHARE and KEY SHARE, and whether they wait.
 *
 * What a transaction reads is protected to its end anyway, so that locks for sharing do nothing
 * more. The others lock the row at once, for other sessions to see, and are no writes. Under a
 * deterministic protocol, which locks nothing before the commit, they write the row as it is. */
#pragma once
#include "pg_rdmacc/server/pg_rdmacc.h"

extern "C" {
#include "access/tableam.h"

/* tableam.h */
TM_Result rdmacc_tuple_lock(Relation rel, ItemPointer tid, Snapshot snapshot, TupleTableSlot* slot,
                            CommandId cid, LockTupleMode mode, LockWaitPolicy wait_policy,
                            uint8 flags, TM_FailureData* tmfd);
}
