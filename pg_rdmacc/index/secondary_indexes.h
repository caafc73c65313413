/* A table's secondary indexes and the engine tables that hold their entries. An index's engine
 * table is known by the number of its file, as a table's is: made when the index is built, gone
 * with the file.
 *
 * The primary key is none of them, as rows themselves are keyed by it, unless the table's option
 * ordered_key asks for its order, too. */
#pragma once
#include "pg_rdmacc/index/index_entries.h"
#include "pg_rdmacc/xact/transaction_part.h"

extern "C" {

typedef struct RdmaccIndexSet {
  int count;
  const RdmaccIndex* indexes;
} RdmaccIndexSet;

/* Those that writes have to maintain. Enters the engine if there are any; valid until the next
 * call. */
RdmaccIndexSet rdmacc_secondary_indexes(Relation relation);

/* One of them; NULL for an index that is not maintained. */
const RdmaccIndex* rdmacc_secondary_index(Relation relation, Relation index);

/* The table's option ordered_key. */
bool rdmacc_has_ordered_key(Relation relation);

/* Is it an index with entries, by the catalog and the table's options? Does not ask the engine. */
bool rdmacc_should_have_entries(Relation relation, Relation index);
bool rdmacc_has_entries(Relation index); /* the same */

/* 55000: what an index should have is not there. */
[[noreturn]] void rdmacc_raise_no_entries(const char* name);

/* The engine table of an index's file; RDMACC_NO_TABLE when it has none. */
uint32 rdmacc_find_index(Relation index);

/* An engine table without entries for the file of an index that is being built: a new one, which
 * goes when the transaction aborts, or the one that this transaction has made, emptied: its nodes
 * are there (*fresh is false). */
uint32 rdmacc_new_index(Relation index, bool* fresh);

/* Removes all entries. */
void rdmacc_clear_index(uint32 id, const char* name, CommandId command);

/* For a table that is about to be made anew because the nodes have lost it: makes its indexes. */
void rdmacc_create_lost_indexes(Relation relation);

extern const RdmaccTransactionPart rdmacc_secondary_indexes_part;
}
