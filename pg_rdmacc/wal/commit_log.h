/* Commits of rdmacc rows in PostgreSQL's WAL, for nodes that this server runs
 * (rdmacc_rows_are_durable()).
 *
 * Rows are installed and unlocked as soon as their record is inserted, so that a row that all want
 * waits for no disk; the session alone waits for the flush before it says "committed". A session
 * that has read such rows flushes as far before its own commit: what a client was told is on disk.
 *
 *   session      prepared -> in flight -> insert -> installed -> not in flight -> flush -> told
 *   checkpoint   waits for what is in flight, so that rows of records before its redo are in memory
 */
#pragma once
#include "pg_rdmacc/wal/redo_record.h"

extern "C" {

/* Asks for shared memory; from _PG_init under preload. What this server's settings lack for durable
 * rows is FATAL at its start. */
void rdmacc_commit_log_init(void);

/* Of a prepared transaction: its writes, decided by PostgreSQL's transaction `xid` or, if that is
 * 0, by the record itself. Interrupts are held by the caller; from here on nothing may fail. */
void rdmacc_log_prepared(uint64 xid);
/* Rows that nodes have put in place before the transaction commits, in a table of its own. */
void rdmacc_log_loaded(const BridgeWrite* writes, size_t count);
/* Its rows are installed, or (an xid's that aborts) never will be. Harmless when none is logged. */
void rdmacc_log_installed(void);
/* Waits as synchronous_commit says, standbys included, for what rdmacc_log_prepared() inserted. */
void rdmacc_log_wait_durable(void);
/* Before a transaction that has only read is said to be committed. */
void rdmacc_log_wait_for_what_was_read(void);

/* Tables of the engine that come and go beside transactions. */
void rdmacc_log_table(RdmaccRedoKind kind, const rdmacc::ListedTable* table);

/* Now and then, by a process without a transaction: if something was logged since, commits an
 * XID, so that a recovery to a point in time, which looks at nothing but commit records, can end
 * there. */
void rdmacc_log_mark_time(void);

/* ---- For checkpoints, which one process at a time makes. */

/* Begins to note changed tables under a new number, which is returned. */
#define RDMACC_FIRST_GENERATION 1 /* of a server's life */
uint32 rdmacc_log_begin_generation(void);
bool rdmacc_log_changed_since(uint32 table, uint32 generation);
bool rdmacc_log_any_changed_since(uint32 generation);
void rdmacc_log_note_changed(uint32 table);
/* Is a transaction in flight whose record may begin at or before this? */
bool rdmacc_log_in_flight_before(XLogRecPtr position);
}
