/* Reads this server's WAL from a position to its end and puts the rows that it commits into the
 * nodes, in its order. */
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

/* An ERROR when the WAL is not all there. */
void rdmacc_replay(XLogRecPtr from, ReplayResult* result);
}
