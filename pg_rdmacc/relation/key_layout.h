/* Key layouts: which columns make the key of a table's rows, as the catalog's primary key says, and
 * the key of a row. A table without a primary key has hidden row ids. */
#pragma once
#include "pg_rdmacc/server/pg_rdmacc.h"

extern "C" {
#include "executor/tuptable.h"
#include "lib/stringinfo.h"
#include "utils/rel.h"

typedef struct RdmaccKeyColumn {
  AttrNumber attno;
  Oid type; /* base type that the key's comparison is defined on */
  Oid collation;
} RdmaccKeyColumn;

typedef struct RdmaccKeyLayout {
  uint32 number;            /* 0: hidden row ids */
  Oid index;                /* the primary key's, InvalidOid for hidden row ids */
  int distribution_columns; /* the leading ones, which decide the node; 0: all, for this table by
                               itself */
  int column_count;
  RdmaccKeyColumn columns[INDEX_MAX_KEYS];
} RdmaccKeyLayout;

/* The layout that the catalog asks for, and that of one primary key index. */
void rdmacc_catalog_layout(Relation relation, RdmaccKeyLayout* layout);
void rdmacc_index_layout(Relation relation, Relation index, RdmaccKeyLayout* layout);

/* The type of what a column of an index holds, expressions included. */
Oid rdmacc_index_column_type(Relation relation, Relation index, int number);

/* The type that an index column compares: its operator class's, unless that is for several. */
Oid rdmacc_key_column_type(Oid operator_class_type, Oid attribute_type);

/* Appends a value of a key column, of a type that matches the column's. A key is made of all
 * columns in their order, beginning with an empty `key`. */
void rdmacc_append_key_column(const RdmaccKeyLayout* layout, int column, Oid type, Datum value,
                              StringInfo key);

/* The key of the slot's row, into an empty `key`: primary key columns, or a new hidden row id. */
void rdmacc_table_key(const RdmaccKeyLayout* layout, TupleTableSlot* slot, StringInfo key);
}
