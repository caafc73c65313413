/* What a statement told its client: how many rows, which, and in which order. A receiver that
 * passes rows on and keeps their hashes' sum, so that another run of the statement can be compared
 * with the first one without its rows. */
#pragma once
#include "pg_rdmacc/server/pg_rdmacc.h"

extern "C" {
#include "tcop/dest.h"

typedef struct RdmaccTold {
  uint64 rows;
  uint64 hash;      /* the sum of all rows' */
  uint64 in_order;  /* the hash of all rows in their order */
  uint64 processed; /* as the command tag says */
  int sqlstate;     /* of the error that it ended with; 0 for none */
  uint64 message;   /* the hash of the error's message, detail and other fields */
} RdmaccTold;

typedef struct RdmaccToldRows {
  DestReceiver receiver; /* first: PostgreSQL sees nothing else */
  DestReceiver* next;
  RdmaccTold told; /* so far */
} RdmaccToldRows;

/* Rows go on to `next`. */
void rdmacc_tell_rows(RdmaccToldRows* rows, DestReceiver* next);

/* In a PG_CATCH: it has ended with the error. `context` is not the errors'. */
void rdmacc_tell_error(RdmaccTold* told, MemoryContext context);

/* Another run of the statement begins. */
void rdmacc_tell_again(RdmaccToldRows* rows);

/* `ordered`: the statement has asked for an order of its rows. */
bool rdmacc_told_the_same(const RdmaccTold* one, const RdmaccTold* other, bool ordered);
}
