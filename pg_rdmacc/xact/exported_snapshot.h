/* Snapshots that sessions share: pg_export_snapshot() and SET TRANSACTION SNAPSHOT, as pg_dump
 * --jobs uses them. The engine keeps no state of the past that would last for a dump. So the
 * transaction that exports keeps writers of rdmacc tables out of its database until it ends, and it
 * and those that import its snapshot read rows as they are stored, since nothing changes them.
 *
 *  S1  A transaction holds the writers' lock (RowExclusiveLock on pg_am of the database) from
 *      before its first write until PostgreSQL releases its locks, after its rows were installed.
 *  S2  The exporting transaction holds it as ShareLock, and says so in shared memory after it has
 *      it and until before it gives it up. Rows that were read before a look that finds it said
 *      were therefore read while no transaction wrote.
 *  S3  What sessions that have gone left for the nodes to install is awaited before the first read:
 *      such a session notes a doubt before its locks go (short_worker.h). */
#pragma once
#include "pg_rdmacc/server/pg_rdmacc.h"

extern "C" {

void rdmacc_exported_snapshot_init(void); /* from _PG_init under preload only */

/* pg_export_snapshot() is about to run. Waits for the transactions that write. Does nothing when
 * the transaction or its role may not keep others from writing: an import is of no use then. */
void rdmacc_snapshot_is_exported(void);

/* This transaction has taken the snapshot of that name. */
void rdmacc_snapshot_is_imported(const char* name);

/* Before a transaction's first write, better before the first read that leads to it: waits for
 * exporting transactions. 25006 in one that imports. */
void rdmacc_await_leave_to_write(void);

/* Rows are to be read as they are stored (rdmacc::ScanMode::kAsStored), by scans alone. Known
 * before the transaction's first access to rdmacc tables. */
bool rdmacc_reads_as_stored(void);

/* Where rows are found by keys, which cannot be read so: 0A000. */
void rdmacc_check_reads_by_key(void);

/* Before the first access, when no engine transaction is begun: raises unless the rows as they
 * are stored are those of the snapshot, if one was imported. */
void rdmacc_check_snapshot(void);

/* After each read of rows as they are stored: none was written until now, or 55000. */
void rdmacc_check_exporter_lives(void);

/* The transaction is over, and has its locks still. */
void rdmacc_forget_snapshot(void);
}
