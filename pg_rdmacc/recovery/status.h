/* What the checkpointer tells the other processes, and what they ask of it: words in shared memory,
 * each of which one side writes. */
#pragma once
#include "pg_rdmacc/server/pg_rdmacc.h"

extern "C" {
#include "port/atomics.h"

typedef struct RdmaccDurabilityStatus {
  /* The last checkpoint. */
  pg_atomic_uint64 redo;
  pg_atomic_uint64 tables, rows, bytes; /* in it */
  pg_atomic_uint64 written_bytes;       /* by it */
  pg_atomic_uint64 duration_us;
  pg_atomic_uint64 made_at; /* TimestampTz; 0: none was made since the server's start */
  pg_atomic_uint64 checkpoints;
  pg_atomic_uint64 failures;
  pg_atomic_uint64 kept_from; /* WAL is kept from here on */
  /* The recovery at the server's start. */
  pg_atomic_uint64 loaded_rows;     /* from a checkpoint */
  pg_atomic_uint64 replayed_writes; /* from the WAL */
  pg_atomic_uint64 replayed_until;  /* a position in it, which grows up to */
  pg_atomic_uint64 replay_end;      /* where it ends; 0: not known yet */
  pg_atomic_uint64 recovery_us;     /* 0: not over */
  pg_atomic_uint64 sql_backups;     /* sessions between pg_backup_start() and _stop() */
  /* Asked for by sessions: how often, and up to which of these it was done or has failed. */
  pg_atomic_uint64 requested;
  pg_atomic_uint64 answered;
} RdmaccDurabilityStatus;

extern RdmaccDurabilityStatus* rdmacc_durability_status; /* NULL unless rows are durable */

void rdmacc_durability_status_init(void); /* from _PG_init under preload */
}
