/* Engine tables follow PostgreSQL's catalog: what a relation's new file, a dropped one, and another
 * primary key come to. Under pg_upgrade, whose server has no nodes, the catalog alone is made. */
#pragma once
#include "pg_rdmacc/xact/transaction_part.h"

extern "C" {
#include "storage/relfilenode.h"
#include "utils/rel.h"

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

extern const RdmaccTransactionPart rdmacc_table_files_part;
}
