/* This backend's place among the cluster's workers: claimed at the first use of the engine, left at
 * exit. */
#pragma once
#include "pg_rdmacc/server/pg_rdmacc.h"

extern "C" {

/* Claims a worker slot of the cluster at the first use in this backend. Raises 55000 (not
 * preloaded), 57P03 (the nodes are not up within 10 s), 53300 (no slot). */
void rdmacc_ensure_attached(void);

/* This process gives the nodes their rows back: it need not wait for them. */
void rdmacc_attach_to_recover(void);

/* What an attached backend does at its exit, before it gives its place up. */
void rdmacc_at_exit(void (*end_transaction)(void));

/* Changes whenever this backend has attached anew: ids of tables may be others since. */
uint32 rdmacc_attach_epoch(void);

/* A node was lost: attaches anew before the next transaction. */
void rdmacc_attach_again(void);

/* Gives this backend's place up; nothing of it may be under way. */
void rdmacc_leave_cluster(void);

/* Monotonic. */
int64 rdmacc_now_us(void);
}
