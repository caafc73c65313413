/* Rows as bytes, in as few as a tuple can be made of again:
 *
 *   0   stamp          4    of the transaction that wrote the row (xmin)
 *   4   attributes  1, 2    how many (6 bits, and where kMoreAttributes is set 8 in the next byte),
 *                           and kHasNulls
 *       bitmap              with kHasNulls: PostgreSQL's, a bit for each attribute
 *       values              as in a heap tuple, aligned to its t_hoff; inline and uncompressed
 *
 * The row's own number of attributes is in it, so a row written before ADD COLUMN is read as one
 * that lacks the attribute. */
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

/* Bytes before the values of a row that has no nulls. */
uint32 rdmacc_row_head_bytes(TupleDesc descriptor);

/* A heap tuple in the current memory context; free with heap_freetuple(). */
HeapTuple rdmacc_row_decode(BridgeBytes row);

/* Decoded tuples say that they have values of variable width, whether or not they do. Behind this
 * one says so if it does, as those that PostgreSQL makes. */
void rdmacc_row_correct_width_flag(HeapTuple tuple, TupleDesc descriptor);

/* The same in `bytes`, which is used over and over; `tuple` points there. */
void rdmacc_row_decode_into(BridgeBytes row, StringInfo bytes, HeapTuple tuple);
}
