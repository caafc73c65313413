/* Engine tables follow PostgreSQL's catalog: one per relfilenode and layout, created at once,
 * dropped when the transaction that replaced or created them has ended. Under pg_upgrade, whose
 * server has no nodes, the catalog alone is made. */
#pragma once
#include "pg_rdmacc/engine_table.h"
#include "pg_rdmacc/transaction_part.h"

extern "C" {
#include "storage/relfilenode.h"

#define RDMACC_NO_TABLE PG_UINT32_MAX

/* RDMACC_NO_TABLE when there is none. */
uint32 rdmacc_find_engine_table(const BridgeTableSpec* spec);

/* The table, empty, of a relation whose rows went with the nodes' memory. */
uint32 rdmacc_create_lost_engine_table(const BridgeTableSpec* spec);

/* A new engine table that goes when the transaction aborts. */
uint32 rdmacc_create_engine_table(const BridgeTableSpec* spec);

/* True for a table that was made so by this transaction. */
bool rdmacc_created_by_transaction(uint32 id);

/* A new file of a relation: an engine table for it, keyed by hidden row ids. The table of the file
 * that it replaces, if any, goes at commit. */
void rdmacc_new_file(Relation relation, const RelFileNode* file);

/* The relation, or its present file, goes when the transaction commits. */
void rdmacc_drop_file(Relation relation);

/* What the catalog says of the keys is about to change: the primary key is dropped, say. The rows
 * of the present file keep theirs until they have to change. The caller has locked the relation. */
void rdmacc_keep_layout(Oid relation);

/* Keys rows by hidden row ids if their primary key was dropped. */
void rdmacc_settle_layout(Relation relation);

/* The primary key index is built: rows are keyed by it from now on. Their number, as far as it is
 * known. */
double rdmacc_key_by_index(Relation relation, Relation index);

/* What this transaction has made of the relation's file, if it changed it: fills in table->id and
 * table->key. */
bool rdmacc_transaction_layout(Relation relation, RdmaccTable* table);

/* Changes whenever rdmacc_transaction_layout() may answer differently. */
uint32 rdmacc_layout_epoch(void);

/* This transaction has looked at the file: should the file be dropped under another relation's
 * name (a rewrite swaps them), its table is known. */
void rdmacc_note_seen(Oid relfilenode, uint32 table_id);

extern const RdmaccTransactionPart rdmacc_engine_tables_part;
}
