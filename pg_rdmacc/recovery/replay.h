/* Reads this server's WAL from a position on and puts the rows that it commits into the nodes, in
 * its order. */
#pragma once
#include "pg_rdmacc/server/pg_rdmacc.h"

extern "C" {
#include "access/xlogdefs.h"

typedef struct ReplayResult {
  uint64 transactions; /* committed ones with rows */
  uint64 writes;
  uint64 undecided; /* transactions whose commit is not in the WAL */
  XLogRecPtr end;
} ReplayResult;

void rdmacc_replay_begin(XLogRecPtr from);
/* The next records, up to the end of the WAL as it is now, on a standby of what PostgreSQL has
 * replayed. True: there are more. An ERROR when something is not there. */
bool rdmacc_replay_some(void);
/* All of them. */
void rdmacc_replay_rest(void);
/* Behind the last one. */
XLogRecPtr rdmacc_replay_position(void);
/* From where on WAL is needed again by a replay that begins with the rows as they are now: of
 * transactions whose end is not known yet nothing is in the nodes. */
XLogRecPtr rdmacc_replay_waits_from(void);
void rdmacc_replay_end(ReplayResult* result);
}
