/* This backend's place among the cluster's workers: claimed at the first use of the engine, left at
 * exit. See rdmacc_ensure_attached() in pg_rdmacc.h. */
#pragma once
#include "pg_rdmacc/pg_rdmacc.h"

extern "C" {

/* Changes whenever this backend has attached anew: ids of tables may be others since. */
uint32 rdmacc_attach_epoch(void);

/* A node was lost: attaches anew before the next transaction. */
void rdmacc_attach_again(void);

/* Gives this backend's place up; nothing of it may be under way. */
void rdmacc_leave_cluster(void);

/* Monotonic. */
int64 rdmacc_now_us(void);
}
