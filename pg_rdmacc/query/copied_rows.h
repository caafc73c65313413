/* COPY FROM STDIN in a block that may be run again (replay.h): what the client sends for it is kept
 * in the journal, and given to it again. */
#pragma once
#include "pg_rdmacc/query/journal.h"

extern "C" {
#include "nodes/parsenodes.h"

/* NULL if it is another statement, or one of a file's or a program's rows. */
const CopyStmt* rdmacc_copy_from_client(const Node* statement);

/* Its client is there, and what it tells is the same wherever its data come from. Of a statement
 * alone: it may lose, as one into a table of another access method without triggers does not.
 * Locks the table as COPY does. */
bool rdmacc_copy_may_come_again(const CopyStmt* statement, bool alone);

/* COPY FROM STDIN of a journal is being run. */
bool rdmacc_runs_copy(void);

/* Calls `run`, which executes the statement. What the journal has of its data comes first; what
 * follows is asked of the client, and kept, unless the statement has ended before: then no more
 * comes. */
void rdmacc_run_copy_from_client(const CopyStmt* statement, RdmaccSent* sent, void (*run)(void*),
                                 void* argument);
}
