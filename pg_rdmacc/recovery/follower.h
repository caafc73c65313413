/* A hot standby's nodes: they get the rows of each transaction as PostgreSQL replays its WAL, and
 * sessions read them meanwhile (server/standby.h). By the process that gave the nodes their rows,
 * between rdmacc_recover_begin() and rdmacc_recover_end(). */
#pragma once
#include "pg_rdmacc/recovery/checkpoint.h"

extern "C" {

/* From the first step on sessions read. */
void rdmacc_follow_begin(void);
/* Applies some of what was replayed since the last step. True: there is more. */
bool rdmacc_follow_step(void);
/* How one is made now; while it is made, sessions read rows that get older. */
RdmaccStandbyCheckpoint rdmacc_follow_checkpoint(void);
/* The server is promoted: sessions wait, and the rest is applied. */
void rdmacc_follow_end(void);
}
