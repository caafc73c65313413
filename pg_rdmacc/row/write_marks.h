/* Which keys the commands under way have updated or deleted, so that a row which its own command
 * has already changed is found out (TM_SelfModified). The engine's write set cannot tell an update
 * that left a row as it was from none.
 *
 * A mark matters only while a command that could meet the row again is running, hence marks of
 * commands before its own are dropped when the outermost modifying query of a transaction begins.
 * Two queries have one command's number where the first is not ended as a statement is: a cursor of
 * UPDATE … RETURNING, or a portal of which the client has asked for some rows. */
#pragma once
#include "pg_rdmacc/xact/transaction_part.h"

extern "C" {
#include "utils/rel.h"

/* Nothing, while marks are not wanted. */
void rdmacc_write_mark(uint32 table, BridgeBytes key, CommandId command);

/* True, and *at set, when the key was marked at `command` or later and not rolled back since. */
bool rdmacc_write_marked_since(uint32 table, BridgeBytes key, CommandId command, CommandId* at);

/* Whether the query that runs from now on has to mark what it writes: not one that meets each row
 * once, as long as no query runs within it. Returns what held before. */
bool rdmacc_write_marks_want(bool wanted);

/* Those of commands before this one. */
void rdmacc_write_marks_forget_before(CommandId command);

/* A row was just updated; or one was inserted. */
void rdmacc_note_updated(Relation relation, BridgeBytes key);
void rdmacc_note_inserted(void);

/* True when the last write of that row was an UPDATE; asked right after a write. */
bool rdmacc_wrote_by_update(Relation relation, BridgeBytes key);

extern const RdmaccTransactionPart rdmacc_write_marks_part;
}
