/* The rows of a small table that one statement scans again and again: the inner side of a nested
 * loop, a subquery that depends on the row around it. The second pass copies them, and later ones
 * read the copy: were they read again, the transaction could only commit if they were the same. */
#pragma once
#include "pg_rdmacc/bridge/engine_bridge.h"
#include "pg_rdmacc/server/pg_rdmacc.h"

extern "C" {

struct RdmaccCopiedBytes;

/* Zeroed before the first pass. All copies of a session together have work_mem. */
typedef struct RdmaccPassedRows {
  MemoryContext memory; /* of the copy; NULL: there is none */
  struct RdmaccCopiedBytes* bytes;
  BridgeRow* rows;
  size_t count;
  size_t capacity;
  uint64 transaction; /* that has read them */
  int passes;
  int attempts; /* to copy them all */
  bool complete;
} RdmaccPassedRows;

/* A pass begins. `memory` lives as long as `passed`. True: the copy is complete, and of this
 * transaction. */
bool rdmacc_passed_rows_begin(RdmaccPassedRows* passed, MemoryContext memory);

/* The pass has come to a row, to one that is only counted, or to the end. */
void rdmacc_passed_rows_add(RdmaccPassedRows* passed, const BridgeRow* row);
void rdmacc_passed_rows_count(RdmaccPassedRows* passed);
void rdmacc_passed_rows_end(RdmaccPassedRows* passed);
}
