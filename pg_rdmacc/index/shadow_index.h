/* Indexes are btrees or hash indexes in the catalog and nothing but a metapage on disk: the engine
 * has primary keys in the rows' own, and secondary indexes in tables of theirs. So that no stock
 * code writes to or reads from the empty btree, the copy of the access method's routine that each
 * index's relcache entry owns is overridden, before any executor code can use it: when a plan that
 * scans it has opened it, whenever a slot of the table is made, and before each insert.
 *
 * 1. An overridden index whose table is no longer ours (ALTER TABLE ... SET ACCESS METHOD) gets
 *    its own routine back at its next use.
 * 2. A scan of a primary key by anything else than equality on every column is refused. */
#pragma once
#include "pg_rdmacc/relation/engine_table.h"

extern "C" {
#include "executor/execdesc.h"

/* Of all that a plan scans whose executor has been started by a way past the hooks: before it runs.
 */
void rdmacc_override_scans(QueryDesc* query);

/* Overrides what is not overridden yet. Cheap while nothing in the relcache has changed. */
void rdmacc_override_indexes(Relation relation, RdmaccTable* table);

/* The same without a table at hand: for callbacks that must not enter the engine. */
void rdmacc_override_all_indexes(Relation relation);

/* Changes whenever the relcache does. */
uint64 rdmacc_index_epoch(void);

/* True when the primary key that ON CONFLICT has looked for last, in this command, is this one, and
 * there was no row: the primary key arbitrates. */
bool rdmacc_key_was_absent(uint32 table, BridgeBytes key, CommandId command);

/* True when an index of the table is open and not overridden: a scan would find it empty. */
bool rdmacc_has_foreign_index_open(Relation relation);

void rdmacc_shadow_index_init(void);
}
