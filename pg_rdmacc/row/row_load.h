/* Many rows on their way into one engine table, in batches. Where the table was made by the running
 * (sub)transaction, and goes with it, the nodes put each batch in place at once: what is loaded is
 * bounded by their memory, and not by the session's. */
#pragma once
#include "pg_rdmacc/relation/engine_table.h"

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

#define RDMACC_LOAD_ROWS_MAX 1024
#define RDMACC_LOAD_BYTES_MAX (1024 * 1024)

typedef struct RdmaccRowLoad {
  Relation relation; /* for errors */
  RdmaccLoadTarget target;
  StringInfoData bytes; /* keys and rows, one behind the other */
  int key_ends[RDMACC_LOAD_ROWS_MAX];
  int row_ends[RDMACC_LOAD_ROWS_MAX];
  int count;
  bool placed; /* some of its rows in place */
} RdmaccRowLoad;

/* Its memory is in the current context. */
void rdmacc_load_begin(RdmaccRowLoad* load, Relation relation, const RdmaccLoadTarget* target);

/* Copies them. True: rdmacc_load_flush() comes before the next one. */
bool rdmacc_load_add(RdmaccRowLoad* load, BridgeBytes key, BridgeBytes row);

/* Key and row of one of the batch. */
BridgeBytes rdmacc_load_key(const RdmaccRowLoad* load, int number);
BridgeBytes rdmacc_load_row(const RdmaccRowLoad* load, int number);

/* Inserts the batch, which stays there for rdmacc_load_key() until rdmacc_load_reset(). The number
 * of the first row whose key exists, which the caller raises an error about; -1: there is none. */
int rdmacc_load_flush(RdmaccRowLoad* load, CommandId command);
void rdmacc_load_reset(RdmaccRowLoad* load);
void rdmacc_load_end(RdmaccRowLoad* load);

/* ---- For other loads (index_build). */
bool rdmacc_may_load_in_place(uint32 table);
/* The running (sub)transaction has made the table and put nothing into it. To look for its rows
 * would be a use of it, after which nothing could be loaded in place. */
bool rdmacc_is_still_empty(uint32 table);
/* The table has got some more: its index may have to grow. */
void rdmacc_expect_more_rows(uint32 table, uint64 more);
/* It has got all: waits for what its index still has to do, which the next statement would lose
 * to. */
void rdmacc_settle_load(uint32 table);
/* In the WAL. A table that is not committed goes with all of its rows. */
void rdmacc_log_load(const BridgeWrite* writes, size_t count);
}
