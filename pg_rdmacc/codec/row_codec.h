/* Rows as bytes: the stamp of the transaction that wrote them (xmin), a MinimalTuple without its
 * length word, every value inline and uncompressed, then eight bytes: the time at which the row was
 * written. The tuple's own attribute count is in it, so a row written before ADD COLUMN is read as
 * one that lacks the attribute. */
#pragma once
#include "pg_rdmacc/server/pg_rdmacc.h"

extern "C" {
#include "access/htup.h"
#include "executor/tuptable.h"
#include "lib/stringinfo.h"

#define RDMACC_ROW_BYTES_MAX 1048576

/* What SQL sees as xmin of the rows that this transaction writes, or this savepoint of it: a row
 * that others have changed has another one, which is what applications compare. Known before the
 * engine's own stamp is, so that RETURNING has it. No XID. */
uint32 rdmacc_row_stamp(void);

/* The bytes of the slot's row, stamped, in the current memory context. Raises 54000 when too long.
 */
BridgeBytes rdmacc_row_encode(TupleTableSlot* slot);

/* How many bytes of any row's beginning, decoded, have its first `columns` columns;
 * kWholeRow when that depends on the row. */
uint32 rdmacc_row_bytes_of(TupleDesc descriptor, int columns);

/* When the row was written: microseconds on this server's clock, but later for each row that a
 * session writes. Rows of a table have an order by it, as versions in PostgreSQL's own files do; no
 * more is to be read from it. */
uint64 rdmacc_row_time(BridgeBytes row);

/* A heap tuple in the current memory context; free with heap_freetuple(). */
HeapTuple rdmacc_row_decode(BridgeBytes row);

/* The same in `bytes`, which is used over and over; `tuple` points there. */
void rdmacc_row_decode_into(BridgeBytes row, StringInfo bytes, HeapTuple tuple);
}
