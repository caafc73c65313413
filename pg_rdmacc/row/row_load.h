/* Many rows on their way into one engine table, in batches. Where the table was made by the running
 * (sub)transaction, and goes with it, the nodes put each batch in place at once: what is loaded is
 * bounded by their memory, and not by the session's. */
#pragma once
#include "pg_rdmacc/relation/engine_table.h"
#include "pg_rdmacc/xact/transaction_part.h"

extern "C" {
#include "lib/stringinfo.h"

/* How rows get into the table: known once for a statement. */
typedef struct RdmaccLoadTarget {
  uint32 table;
  bool check_absent; /* else keys are new by their nature */
  bool in_place;     /* before the commit */
} RdmaccLoadTarget;

/* Enters the engine. In place only if nothing reads the table while the statement runs, and the
 * transaction has not used the table before. */
void rdmacc_load_target(uint32 table, const RdmaccKeyLayout* layout, RdmaccLoadTarget* target);

/* A row whose key exists. `late`: of an earlier batch than the one that is flushed, which the nodes
 * have worked off meanwhile. */
typedef struct RdmaccLoadedTwice {
  BridgeBytes key;
  TupleTableSlot* slot;
  bool late;
} RdmaccLoadedTwice;

/* Raises the error. */
typedef void (*RdmaccRaiseOfLoad)(Relation relation, const void* context,
                                  const RdmaccLoadedTwice* row);

#define RDMACC_LOAD_ROWS_MAX 1024
#define RDMACC_LOAD_BYTES_MAX (1024 * 1024)

typedef struct RdmaccRowLoad {
  Relation relation; /* for errors */
  RdmaccLoadTarget target;
  RdmaccRaiseOfLoad raise;
  const void* context;  /* for it; lasts until the load has ended */
  StringInfoData bytes; /* keys and rows, one behind the other */
  int key_ends[RDMACC_LOAD_ROWS_MAX];
  int row_ends[RDMACC_LOAD_ROWS_MAX];
  int count;
  bool placed; /* some of its rows in place */
} RdmaccRowLoad;

/* Its memory is in the current context. */
void rdmacc_load_begin(RdmaccRowLoad* load, Relation relation, const RdmaccLoadTarget* target,
                       RdmaccRaiseOfLoad raise, const void* context);

/* Copies them. True: rdmacc_load_flush() comes before the next one. */
bool rdmacc_load_add(RdmaccRowLoad* load, BridgeBytes key, BridgeBytes row);

/* Before the first batch is flushed in place: its rows tell how long records have to be, and the
 * target may become another table (fitted_table.h), whose rows `layout` keys. */
void rdmacc_load_fit(RdmaccRowLoad* load, const RdmaccKeyLayout* layout);

/* The key of one of the batch. */
BridgeBytes rdmacc_load_key(const RdmaccRowLoad* load, int number);

/* Inserts the batch, which stays there for rdmacc_load_key() until rdmacc_load_reset(). In place,
 * the nodes may still be about it when this returns: rdmacc_load_finish() waits for them. */
void rdmacc_load_flush(RdmaccRowLoad* load, CommandId command);
void rdmacc_load_reset(RdmaccRowLoad* load);
/* Waits, and settles the table. */
void rdmacc_load_end(RdmaccRowLoad* load);

/* Waits for the rows that are on their way, of whatever load, and raises its error. */
void rdmacc_load_finish(void);

/* ---- For other loads (index_build, exclusive_load). */
/* The protocol puts rows in place, no other query would see them too soon, and the transaction has
 * not used the table. Enters the gate. */
bool rdmacc_may_load_beforehand(uint32 table);
/* Finishes another load that is under way. */
bool rdmacc_may_load_in_place(uint32 table);
/* The running (sub)transaction has made the table and put nothing into it. To look for its rows
 * would be a use of it, after which nothing could be loaded in place. */
bool rdmacc_is_still_empty(uint32 table);
/* The table has got some more: its index may have to grow. */
void rdmacc_expect_more_rows(uint32 table, uint64 more);
/* It has got all, and they are there: waits for what its index still has to do, which the next
 * statement would lose to. */
void rdmacc_settle_load(uint32 table);
/* In the WAL. A table that is not committed goes with all of its rows. */
void rdmacc_log_load(const BridgeWrite* writes, size_t count);

extern const RdmaccTransactionPart rdmacc_row_load_part;
}
