/* The replication slot "rdmacc", which nothing streams from: PostgreSQL keeps the WAL from the redo
 * of the last checkpoint of rows on. Base backups leave slots out, so that one is made while such a
 * copy recovers, before the WAL that it came with is removed. */
#pragma once
#include "pg_rdmacc/server/pg_rdmacc.h"

extern "C" {
#include "access/xlogdefs.h"

#define RDMACC_SLOT "rdmacc"

/* From _PG_init under preload: makes the slot in the startup process when it lacks. */
void rdmacc_wal_slot_init(void);
/* Makes it unless it is there, for the checkpoint whose redo is `from`, and keeps it from being
 * dropped as long as this process lives. FATAL when WAL from there on is not all here. */
void rdmacc_wal_slot_hold(XLogRecPtr from);
/* From where on WAL is kept; InvalidXLogRecPtr: there is no slot. */
XLogRecPtr rdmacc_wal_slot_position(void);
/* Of a process that holds it: WAL before `to` is not needed any more. On disk when it returns. */
void rdmacc_wal_slot_advance(XLogRecPtr to);
}
