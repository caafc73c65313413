/* Row handles. PostgreSQL names a row by its TID; the engine has keys. A TID handed out here names
 * (table, key, what was visible) for this transaction only, and is never stored anywhere.
 *
 * Handles are given out by streams: a scan's, or that of a relation's writes. A stream that keeps
 * its handles does so until the transaction ends (the row may be updated, locked, or be wanted by
 * an AFTER trigger); any other one forgets all but its last two blocks. Block numbers are not used
 * again within a transaction, so a forgotten TID is an error and never another row. */
#pragma once
#include "pg_rdmacc/xact/transaction_part.h"

extern "C" {
#include "storage/itemptr.h"
#include "utils/rel.h"
#include "utils/resowner.h"

typedef struct RdmaccHandle {
  Oid relation;
  uint32 table;
  uint32 visible_before; /* own writes of commands before it belong to the row's version */
  BridgeBytes key;
  BridgeRow row; /* found == false: not kept but for its version, ask the engine */
} RdmaccHandle;

/* Of a search for conflicting keys (ON CONFLICT)? It sees all own writes. */
static inline bool rdmacc_handle_is_of_conflict(const RdmaccHandle* handle) {
  return handle->visible_before == RDMACC_EVERY_COMMAND;
}

typedef struct RdmaccHandleBlock RdmaccHandleBlock;

typedef struct RdmaccHandleStream {
  RdmaccHandleBlock* current;
  RdmaccHandleBlock* previous;
  ResourceOwner owner; /* NULL: the transaction */
  uint32 epoch;        /* of the transaction that the blocks belong to */
  bool keep;
} RdmaccHandleStream;

void rdmacc_handle_stream_begin(RdmaccHandleStream* stream, bool keep);
void rdmacc_handle_stream_end(RdmaccHandleStream* stream);

/* Copies what `handle` points to but for row's bytes, and writes its TID. */
void rdmacc_handle_assign(RdmaccHandleStream* stream, const RdmaccHandle* handle, ItemPointer tid);

/* Names the rows of a scan's batch that nothing is likely to ask for by TID, all at once: nothing
 * is copied. They are forgotten when the next ones are named, and have to stay where they are until
 * then. `all` has what their handles have in common; at most RDMACC_NAMED_ROWS_MAX. */
#define RDMACC_NAMED_ROWS_MAX 2047
void rdmacc_handle_name_rows(RdmaccHandleStream* stream, const RdmaccHandle* all,
                             const BridgeRow* rows, uint32 count);

/* The TID of one of them, counted from 0. */
void rdmacc_handle_of_named(const RdmaccHandleStream* stream, uint32 row, ItemPointer tid);

/* NULL when this transaction has not given out `tid` for the relation or has forgotten it: TIDs
 * also come from users, and a row of one table is no row of another. */
const RdmaccHandle* rdmacc_handle_find(const ItemPointerData* tid, Relation relation);

/* As above, but an error then. If the relation has triggers, which may come back to the row, the
 * handle is kept until the transaction ends. */
const RdmaccHandle* rdmacc_handle_get(const ItemPointerData* tid, Relation relation);

/* The stream for rows that this transaction writes; keeps when `keep`. */
RdmaccHandleStream* rdmacc_handle_write_stream(bool keep);

extern const RdmaccTransactionPart rdmacc_handles_part;
}
