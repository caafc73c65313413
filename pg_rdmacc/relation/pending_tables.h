/* The engine tables that a transaction creates and those that go at its end, and what it has made
 * of its relations' files: one engine table per relfilenode and layout, created at once, dropped
 * when the transaction that replaced or created it has ended. */
#pragma once
#include "pg_rdmacc/relation/engine_table.h"
#include "pg_rdmacc/relation/key_layout.h"
#include "pg_rdmacc/xact/transaction_part.h"

extern "C" {

#define RDMACC_NO_TABLE PG_UINT32_MAX

/* RDMACC_NO_TABLE when there is none. `made_us`: by node 0's clock. */
uint32 rdmacc_find_engine_table(const rdmacc::TableSpec* spec, uint64* made_us = nullptr);

/* The table, empty, of a relation whose rows went with the nodes' memory. */
uint32 rdmacc_create_lost_engine_table(const rdmacc::TableSpec* spec);

/* A new engine table that goes when the transaction aborts. */
uint32 rdmacc_create_engine_table(const rdmacc::TableSpec* spec);

/* The same, or, taken, the one of that name which was to go with this transaction: rows that have
 * been moved away, or that a savepoint has loaded, are still in it. */
uint32 rdmacc_create_or_take_engine_table(const rdmacc::TableSpec* spec, bool* taken);

/* One in the place of another that was created so and has no rows, which is dropped at once. */
uint32 rdmacc_replace_engine_table(uint32 id, const rdmacc::TableSpec* spec);

/* One that goes when the transaction commits. */
void rdmacc_drop_at_commit(uint32 id);

/* True for a table that was created so by this transaction. */
bool rdmacc_created_by_transaction(uint32 id);
/* And by the running subtransaction, so that it goes with everything that is done now. */
bool rdmacc_created_at_this_level(uint32 id);

/* Rows have been put in place in a table that was created so, outside of the write set. */
void rdmacc_note_loaded(uint32 id, uint64 rows);
uint64 rdmacc_loaded_rows(uint32 id); /* so many; 0: none */

/* ---- Where the rows of a file are, if this transaction has changed that. */
typedef struct RdmaccLayoutNote {
  Oid relation;
  Oid relfilenode;
  uint32 id; /* the engine table */
  int nest;
  RdmaccKeyLayout key;
} RdmaccLayoutNote;

void rdmacc_note_layout(Relation relation, Oid relfilenode, uint32 id, const RdmaccKeyLayout* key);
/* The newest note of a file, which counts; NULL when there is none. */
const RdmaccLayoutNote* rdmacc_find_layout_note(Oid relfilenode);
/* All of them, from the oldest. */
int rdmacc_layout_note_count(void);
const RdmaccLayoutNote* rdmacc_layout_note(int number);

/* What this transaction has made of the relation's file, if it changed it: fills in table->id and
 * table->key. */
bool rdmacc_transaction_layout(Relation relation, RdmaccTable* table);

/* Changes whenever rdmacc_transaction_layout() may answer differently. */
uint32 rdmacc_layout_epoch(void);

/* This transaction has looked at the file: should the file be dropped under another relation's
 * name (a rewrite swaps them), its table is known. */
void rdmacc_note_seen(Oid relfilenode, uint32 table_id);
uint32 rdmacc_seen_table(Oid relfilenode); /* RDMACC_NO_TABLE: not seen */

extern const RdmaccTransactionPart rdmacc_pending_tables_part;
}
