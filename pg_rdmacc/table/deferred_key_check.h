/* UPDATE of primary keys. Whether keys are unique is judged when a statement ends: a row may take
 * the key of another one that the same statement moves or deletes later (UPDATE t SET id = id + 1).
 *
 * The engine's row of that key is overwritten at once, and the check is deferred: the query still
 * reads the row that had the key as it was before the command, and has to move it before its end.
 *
 * Tables with foreign keys to them that follow a changed key are excepted: there it is judged row
 * by row. So is ON CONFLICT DO UPDATE, which looks for rows as they are by now: it would find the
 * row that took a key in place of the one that had it. */
#pragma once
#include "pg_rdmacc/relation/engine_table.h"
#include "pg_rdmacc/xact/transaction_part.h"

extern "C" {
#include "executor/execdesc.h"

/* A row is about to be stored under a key that exists. True when the running query may have it:
 * the row there is older than the query's command, and its key is taken now. */
bool rdmacc_defer_key_check(Relation relation, const RdmaccTable* table, BridgeBytes key,
                            CommandId cid);

/* True for a row, as read with the own writes of commands before `visible_before`, whose key was
 * taken so: it is another row's now. */
bool rdmacc_key_was_taken(uint32 table, BridgeBytes key, uint32 visible_before);

/* Raises 23505 for such a row. */
void rdmacc_refuse_taken_key(uint32 table, BridgeBytes key, uint32 visible_before);

/* Like rdmacc_key_was_taken, and the row has been moved away or deleted. */
bool rdmacc_settle_taken_key(uint32 table, BridgeBytes key, uint32 visible_before);

/* The query ends. Raises 23505 when a row whose key was taken has stayed. */
void rdmacc_check_deferred_keys(const QueryDesc* query);

extern const RdmaccTransactionPart rdmacc_deferred_keys_part;
}
