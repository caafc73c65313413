/* What the files of pg_rdmacc/ that see postgres.h share: settings, the functions that install each
 * file's hooks, and the door to the cluster. The engine is reached through engine_bridge.h alone.
 *
 * Rule for every file that includes this one: no object with a destructor is alive where
 * PostgreSQL may raise an error. Memory is palloc'ed; what crosses the border is POD. */
#pragma once
/* PostgreSQL's headers do not say it themselves. */
extern "C" {
#include "postgres.h"
}

#include "pg_rdmacc/engine_bridge.h"

extern "C" {

/* ---- Settings: defined and registered by guc.cc, which owns them. */
extern int rdmacc_protocol; /* the bridge's number; -1: never set, joins what the gate has */
extern char* rdmacc_stages;
extern uint16 rdmacc_stages_code; /* of rdmacc_stages, unless it is auto */
extern bool rdmacc_stages_auto;
extern int rdmacc_lock_mode; /* the bridge's number */
extern int rdmacc_nodes;
extern int rdmacc_node_memory_mb;
extern int rdmacc_replicas;
extern char* rdmacc_durability;
extern int rdmacc_max_workers;
extern int rdmacc_spin_us;
extern int rdmacc_gate_timeout_ms;
extern int rdmacc_max_write_set_mb;
extern bool rdmacc_mixed_transactions;
extern int rdmacc_auto_retry;    /* times; 0: never */
extern int rdmacc_debug_stop_at; /* see two_phase.h */

/* ---- module.cc: true once _PG_init ran under shared_preload_libraries. */
extern bool rdmacc_preloaded;

/* ---- shmem.cc, supervisor.cc: the cluster that backends of this server attach to; static
 * storage. Only to be asked when rdmacc_preloaded. */
const char* rdmacc_cluster_name(void);

/* ---- Called once by _PG_init, in this order (xact first: its PRE_COMMIT callback has to run
 * last, and PostgreSQL calls the newest registration first). */
void rdmacc_xact_init(void);
void rdmacc_ddl_init(void);
void rdmacc_planner_init(void);
void rdmacc_scan_init(void);

/* ---- xact.cc: claims a worker slot of the cluster at the first use in this backend. Raises
 * 55000 (not preloaded), 57P03 (the nodes are not up within 10 s), 53300 (no slot). */
void rdmacc_ensure_attached(void);

/* ---- xact.cc: runs the bridge command that was just started to its end, serving interrupts;
 * raises theirs. The result is in bridge_error(). */
void rdmacc_pump(void);

/* ---- xact.cc: raises bridge_error() with its SQLSTATE when it is not BRIDGE_OK. `action` names
 * what failed ("could not create table"); relation may be NULL. */
void rdmacc_check(const char* action, const char* relation);
}
