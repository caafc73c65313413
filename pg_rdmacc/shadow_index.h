/* Primary keys are btree indexes in the catalog and nothing but a metapage on disk: the engine
 * enforces them. So that no stock code writes to or reads from the empty btree, the copy of the
 * access method's routine that each index's relcache entry owns is overridden, before any executor
 * code can use it: whenever a slot of the table is made and before each insert.
 *
 * 1. An overridden index whose table is no longer ours (ALTER TABLE ... SET ACCESS METHOD) gets
 *    its own routine back at its next use.
 * 2. A scan by anything else than equality on every key column is refused. */
#pragma once
#include "pg_rdmacc/relation.h"

extern "C" {

/* Overrides what is not overridden yet. Cheap while nothing in the relcache has changed. */
void rdmacc_override_indexes(Relation relation, RdmaccTable* table);

/* The same without a table at hand: for callbacks that must not enter the engine. */
void rdmacc_override_all_indexes(Relation relation);

/* Raises 0A000 for an index that the engine cannot enforce. */
void rdmacc_check_index(Relation relation, Relation index);

void rdmacc_shadow_index_init(void);
}
