/* What the access method knows about one relation: its engine table and how its rows are keyed.
 * Cached in the relcache entry (rd_amcache), so it is dropped with every change of the catalog.
 *
 * Rows are keyed by the primary key, or by hidden row ids when there is none. One relfilenode may
 * have an engine table for each way: the name of an engine table is (server and variant, database,
 * relfilenode), where the variant comes from the layout's number, and the catalog's primary key
 * says which one is meant.
 * So every backend changes over when the catalog change that it sees commits. */
#pragma once
#include "pg_rdmacc/pg_rdmacc.h"

extern "C" {
#include "executor/tuptable.h"
#include "lib/stringinfo.h"
#include "utils/rel.h"

#define RDMACC_ACCESS_METHOD "rdmacc"

typedef struct RdmaccKeyColumn {
  AttrNumber attno;
  Oid type; /* base type that the key's comparison is defined on */
  Oid collation;
} RdmaccKeyColumn;

typedef struct RdmaccKeyLayout {
  uint32 number;     /* 0: hidden row ids */
  Oid index;         /* the primary key's, InvalidOid for hidden row ids */
  int place_columns; /* the leading ones that decide the node; 0: all, for this table by itself */
  int column_count;
  RdmaccKeyColumn columns[INDEX_MAX_KEYS];
} RdmaccKeyLayout;

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

/* The engine table of the relation's file in one layout, as earlier transactions left it. Rows live
 * in memory: after a stop of the nodes the table is made anew, empty, by whoever comes first. */
uint32 rdmacc_committed_table(Relation relation, const RdmaccKeyLayout* layout);

/* rdmacc_table() for a relation that is about to be written: its rows' keys are what the catalog
 * says. */
RdmaccTable* rdmacc_table_to_write(Relation relation);

/* True for open relations and for locked ones by OID. */
bool rdmacc_is_ours(Relation relation);
bool rdmacc_relation_is_ours(Oid relation);

/* OID of the access method in this database; InvalidOid without the extension. */
Oid rdmacc_access_method(void);

/* The layout that the catalog asks for, and that of one primary key index. */
void rdmacc_catalog_layout(Relation relation, RdmaccKeyLayout* layout);
/* The type of what a column of an index holds, expressions included. */
Oid rdmacc_index_column_type(Relation relation, Relation index, int number);

void rdmacc_index_layout(Relation relation, Relation index, RdmaccKeyLayout* layout);

/* The type that an index column compares: its operator class's, unless that is for several. */
Oid rdmacc_key_column_type(Oid operator_class_type, Oid attribute_type);

/* Appends a value of a key column, of a type that matches the column's. A key is made of all
 * columns in their order, beginning with an empty `key`. */
void rdmacc_append_key_column(const RdmaccKeyLayout* layout, int column, Oid type, Datum value,
                              StringInfo key);

/* The key of the slot's row, into an empty `key`: primary key columns, or a new hidden row id. */
void rdmacc_table_key(const RdmaccKeyLayout* layout, TupleTableSlot* slot, StringInfo key);

/* The spec by which the engine knows (relation's file `relfilenode`, layout). */
void rdmacc_table_spec(Relation relation, Oid relfilenode, const RdmaccKeyLayout* layout,
                       BridgeTableSpec* spec);

/* The spec of an index's engine table. Tablespace InvalidOid: the database's. */
void rdmacc_index_spec(Oid tablespace, Oid relfilenode, BridgeTableSpec* spec);

/* Number of live rows as far as PostgreSQL's statistics, and this session's share that they do not
 * have yet, tell. */
double rdmacc_estimated_rows(Relation relation);

/* VACUUM or ANALYZE reports a number that has this session's committed share in it: it must not be
 * added again. */
void rdmacc_rows_reported(Relation relation);
}
