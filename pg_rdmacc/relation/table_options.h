/* What a table may ask of the engine, beside its columns:
 *
 *   record_size   bytes of a row that its record holds in place, 32 .. 512; longer rows take a
 *                 block of their own. By default what the column types let expect
 *   history       old versions that MVCC keeps of each row, 0 .. 15; by default 3
 *   partition_by  how many of the primary key's leading columns decide on which node a row is, so
 *                 that rows with the same values there are on one node, of all tables with this
 *                 option; by default 0: the whole key decides, for each table by itself
 *   ordered_key   whether the primary key finds ranges and gives their order, too, as a secondary
 *                 index on its columns would; a new table gets what the setting rdmacc.ordered_keys
 *                 says. off: it finds whole keys, and inserts cost less. A table whose label does
 *                 not say has been made before there was this: off
 *
 * Written as CREATE TABLE ... WITH (rdmacc.history = 5), ALTER TABLE ... SET and RESET of the same,
 * or rdmacc.set_option(). Access methods have no storage parameters of their own in PostgreSQL 15,
 * so a table's options are its security label of the provider "rdmacc": transactional, dropped
 * with the table, and part of every dump. A change rewrites the table. */
#pragma once
#include "pg_rdmacc/server/pg_rdmacc.h"

extern "C" {
#include "utils/rel.h"

typedef struct RdmaccTableOptions {
  int record_size; /* -1: by the columns */
  int history;
  int partition_by;
  int ordered_key; /* 0, 1 or RDMACC_ORDERED_KEY_UNSAID */
} RdmaccTableOptions;

#define RDMACC_HISTORY_DEFAULT 3
#define RDMACC_ORDERED_KEY_UNSAID (-1)

#define RDMACC_LABEL_PROVIDER "rdmacc"

/* Those of the relation, or of the one that is being rewritten into it. */
void rdmacc_table_options(Relation relation, RdmaccTableOptions* options);
void rdmacc_table_options_of(Oid relation, RdmaccTableOptions* options);

/* 22023 for an unknown name or a value that it may not have; NULL: what a new table has. */
void rdmacc_set_table_option(RdmaccTableOptions* options, const char* name, const char* value_text);

/* The table's label from now on, for its owner alone; false when it is that already. The caller
 * holds AccessExclusiveLock and rewrites the table. */
bool rdmacc_change_table_options(Oid relation, const RdmaccTableOptions* options);

/* What a table gets that is about to be made, or to become an rdmacc table. The catalog need not
 * show it yet. */
void rdmacc_label_new_table(Oid relation);
/* Of a table that is none any more. */
void rdmacc_unlabel_table(Oid relation);

void rdmacc_table_options_init(void);
}
