/* What all files that see postgres.h include first: PostgreSQL's own first header, the bridge,
 * through which alone the engine is reached, and the settings.
 *
 * Rule for every file that includes this one: no object with a destructor is alive where
 * PostgreSQL may raise an error. Memory is palloc'ed; what crosses the border is POD. */
#pragma once
/* PostgreSQL's headers do not say it themselves. */
extern "C" {
#include "postgres.h"
}

#include "pg_rdmacc/bridge/engine_bridge.h"
#include "pg_rdmacc/server/check.h"

extern "C" {

/* ---- Settings: defined and registered by guc.cc, which owns them. The first five are what is in
 * effect: rdmacc.preset's where no others were asked for (guc_sampled.cc). */
extern int rdmacc_protocol;       /* the bridge's number; -1: never set, joins what the gate has */
extern uint16 rdmacc_stages_code; /* unless they are auto */
extern bool rdmacc_stages_auto;
extern int rdmacc_lock_mode;   /* the bridge's number */
extern int rdmacc_lock_writes; /* one of: */
#define RDMACC_LOCK_AT_COMMIT 0
#define RDMACC_LOCK_AT_WRITE 1
extern int rdmacc_nodes;
extern int rdmacc_node_memory_mb;
extern int rdmacc_replicas;
extern int rdmacc_durability; /* one of: */
#define RDMACC_DURABILITY_MEMORY 0
#define RDMACC_DURABILITY_DISK 1
extern int rdmacc_checkpoint_timeout_s;
extern int rdmacc_max_workers;
extern int rdmacc_spin_us;
extern int rdmacc_gate_timeout_ms;
extern int rdmacc_max_write_set_mb;
extern bool rdmacc_mixed_transactions;
extern bool rdmacc_ordered_keys;
extern bool rdmacc_exclusive_loads;
extern bool rdmacc_exclusive_deletes;
extern int rdmacc_auto_retry;   /* times; 0: never */
extern int rdmacc_replay_limit; /* times; 0: never; with the two below */
extern int rdmacc_replay_statements;
extern int rdmacc_replay_memory_kb;
extern int rdmacc_kept_executors; /* of how many plans */
extern int rdmacc_debug_stop_at;  /* one of: */
#define RDMACC_STOP_NOWHERE 0
#define RDMACC_STOP_PREPARED 1  /* a committing session stands still before PostgreSQL's record */
#define RDMACC_STOP_INSTALLED 3 /* others see its rows, and its record is not flushed */
#define RDMACC_STOP_RECORDED 2  /* and after it, for a while, so that a test can kill it there */

/* Are commits of this server's own nodes in its WAL? Nodes that others run have no disk. */
bool rdmacc_rows_are_durable(void);

/* Own writes of whichever command are visible: for what reads as of now. */
#define RDMACC_EVERY_COMMAND PG_UINT32_MAX
}
