/* What a statement says of locks on the rows that it reads, and reading and locking them
 * accordingly: for SELECT ... FOR UPDATE and its kind (tuple_lock.h) and for the scans below them.
 */
#pragma once
#include "pg_rdmacc/server/pg_rdmacc.h"

extern "C" {
#include "access/relscan.h"
#include "nodes/lockoptions.h"
#include "nodes/plannodes.h"

/* What a statement says of locks on the rows of its range table's entry. */
typedef struct RdmaccRowMark {
  LockWaitPolicy wait_policy; /* of rows that others hold; LockWaitBlock without a mark */
  bool locks;     /* FOR UPDATE and its kind; not FOR KEY SHARE, which checks of foreign keys
                   * use: those are reads as the protocol has them */
  bool exclusive; /* FOR UPDATE and FOR NO KEY UPDATE */
} RdmaccRowMark;

RdmaccRowMark rdmacc_row_mark_of(const PlannedStmt* statement, Index number);

/* Does it write or lock rows of that entry? Of one that it only reads, others' locks are passed. */
bool rdmacc_writes_rows_of(const PlannedStmt* statement, Index number);

/* The mark of a scan that the running query has begun. */
RdmaccRowMark rdmacc_row_mark_of_scan(const TableScanDescData* scan);
RdmaccRowMark rdmacc_row_mark_of_index_scan(const IndexScanDescData* scan);

/* Rows that a statement reads by their keys. */
typedef struct RdmaccRead {
  Relation relation;
  uint32 table;
  uint32 visible_before;
  RdmaccRowMark mark;
  bool to_write;          /* rows that others have locked are in its way, whatever the mark says */
  CommandId lock_command; /* what is found is locked for it at once; InvalidCommandId: not */
  BridgeReadBatch* batch; /* the rows, which are not asked for again, are its next ones; or NULL */
} RdmaccRead;

/* Before a row is locked that others may share: what rdmacc_enter_write() is before writes. */
void rdmacc_enter_share(void);

/* Reads a row, and locks it at once by `mode` (kNone: not). Of one that another transaction holds
 * the mark says what happens: it is waited for (lock_holder.h), or 55P03, or the answer is false.
 */
bool rdmacc_lock_row(const RdmaccRead* read, BridgeBytes key, rdmacc::RowLockMode mode,
                     BridgeRow* row);

/* Reads rows, together where they are free. What the mark skips is not found. Where the transaction
 * may not wait for holders, what they hold is a conflict, by the protocol. */
void rdmacc_read_rows(const RdmaccRead* read, const BridgeBytes* keys, size_t count,
                      BridgeRow* rows);

[[noreturn]] void rdmacc_raise_row_locked(Relation relation);
}
