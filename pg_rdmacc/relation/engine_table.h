/* What the access method knows about one relation: its engine table and how its rows are keyed.
 * Cached in the relcache entry (rd_amcache), so it is dropped with every change of the catalog.
 *
 * Rows are keyed by the primary key, or by hidden row ids when there is none. One relfilenode may
 * have an engine table for each way: the name of an engine table is (server and variant, database,
 * relfilenode), where the variant comes from the layout's number, and the catalog's primary key
 * says which one is meant. So every backend changes over when the catalog change that it sees
 * commits. */
#pragma once
#include "pg_rdmacc/relation/key_layout.h"

extern "C" {
#include "utils/rel.h"

typedef struct RdmaccTable {
  uint32 id; /* the engine's */
  uint32 layout_epoch;
  uint32 attach_epoch;
  uint64 index_epoch; /* see shadow_index.h */
  uint32 transaction; /* last one that used it */
  Oid relation;
  Oid relfilenode;
  bool unsettled; /* rows still have the keys of a primary key that was dropped */
  RdmaccKeyLayout key;
} RdmaccTable;

/* The engine table of an open relation; enters the engine. The result lives until the relation's
 * cache entry is rebuilt: copy it before anything that takes a lock. */
RdmaccTable* rdmacc_table(Relation relation);

/* The engine table of the relation's file in one layout, as earlier transactions left it. Where
 * rows are in memory only, and it has gone with the nodes, it is made anew, empty, by the first
 * session that uses it. */
uint32 rdmacc_committed_table(Relation relation, const RdmaccKeyLayout* layout);

/* That of an index's file; RDMACC_NO_TABLE: there is none. */
uint32 rdmacc_find_index_file(Oid tablespace, Oid relfilenode);

/* The engine table that the catalog means for a relation, a table or an index, which the
 * transaction is about to read. RDMACC_NO_TABLE: there is none, on a standby not within ten
 * seconds. Raises what rdmacc_check_age() raises of one that is too new. */
uint32 rdmacc_find_to_use(Relation relation, const rdmacc::TableSpec* spec);

/* rdmacc_table() for a relation that is about to be written: its rows' keys are what the catalog
 * says. */
RdmaccTable* rdmacc_table_to_write(Relation relation);

/* What an engine table takes along that is not known here. */
typedef struct RdmaccTableHooks {
  /* Keys rows by hidden row ids if their primary key was dropped (table_files.h). */
  void (*settle_layout)(Relation relation);
  /* The table is about to be made anew because the nodes have lost it: makes its indexes
   * (secondary_indexes.h). */
  void (*create_lost_indexes)(Relation relation);
} RdmaccTableHooks;

/* Once, when the library is loaded; static storage. */
void rdmacc_set_table_hooks(const RdmaccTableHooks* table_hooks);

/* The spec by which the engine knows (relation's file `relfilenode`, layout). */
void rdmacc_table_spec(Relation relation, Oid relfilenode, const RdmaccKeyLayout* layout,
                       rdmacc::TableSpec* spec);
/* Of a table that is written anew in place of `before`, whose options it will have. */
void rdmacc_rewritten_table_spec(Relation relation, Relation before, Oid relfilenode,
                                 const RdmaccKeyLayout* layout, rdmacc::TableSpec* spec);

/* The spec of an index's engine table. Tablespace InvalidOid: the database's. */
void rdmacc_index_spec(Oid tablespace, Oid relfilenode, rdmacc::TableSpec* spec);
}
