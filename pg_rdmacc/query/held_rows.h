/* Rows of a statement, held back from the client while the statement may still have to be run
 * again.
 *
 * The receiver stands between the executor and the statement's own receiver. It keeps rows until
 * they are released, or until they have taken as much memory as they may: then they go on, and so
 * does every later one at once. What has gone on cannot be taken back. */
#pragma once
#include "pg_rdmacc/server/pg_rdmacc.h"

extern "C" {
#include "access/htup.h"
#include "executor/execdesc.h"
#include "tcop/dest.h"

typedef struct RdmaccHeldRows {
  DestReceiver receiver; /* first: PostgreSQL sees nothing else */
  DestReceiver* real;
  MemoryContext parent; /* where the rows' memory is made; outlives transactions */
  MemoryContext memory; /* of the rows; NULL before the first */
  int operation;
  TupleDesc type;
  MinimalTuple* rows;
  uint64 count;
  uint64 capacity;
  Size bytes;
  Size bytes_max;
  bool started; /* the executor has something to send */
  bool passing; /* the real receiver has begun */
} RdmaccHeldRows;

/* `bytes_max`: how much may be held. */
void rdmacc_hold_rows(RdmaccHeldRows* held, DestReceiver* real, Size bytes_max);

/* Forgets the rows of an attempt that has failed. Nothing may have gone on. */
void rdmacc_drop_held_rows(RdmaccHeldRows* held);

/* Sends what is held on, and ends the real receiver's work. The statement has run; `context`: for
 * what the receiver allocates. */
void rdmacc_release_held_rows(RdmaccHeldRows* held, MemoryContext context);
}
