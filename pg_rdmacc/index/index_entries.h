/* Secondary indexes: what an index is to us, and its entries as bytes. The engine keeps entries in
 * memcmp order and knows nothing of what is in them:
 *
 *     column, column, ...        each a marker and the value's key bytes
 *     the row's key              primary key or hidden row id: no two rows have one entry
 *     the key's size             2 bytes, so that the key is found from the end
 *
 * The marker is 0 or 2 for NULL, as the index puts it first or last, and 1 before a value. The
 * bytes of a descending column's value are inverted. No column is the beginning of another one, so
 * the entries of one value are those that begin with its bytes. */
#pragma once
#include "pg_rdmacc/server/pg_rdmacc.h"

extern "C" {
#include "access/htup.h"
#include "executor/tuptable.h"
#include "lib/stringinfo.h"
#include "utils/rel.h"

/* With the row's key it has to be an entry that the engine takes. */
#define RDMACC_INDEX_COLUMNS_BYTES_MAX 2200

/* Markers. */
#define RDMACC_INDEX_NULL_FIRST 0
#define RDMACC_INDEX_VALUE 1
#define RDMACC_INDEX_NULL_LAST 2

typedef struct RdmaccIndexColumn {
  AttrNumber attno; /* 0 for an expression */
  Oid type;         /* base type that the index compares */
  Oid collation;
  bool descending;
  bool nulls_first;
  bool ordered; /* bytes are in the order of the index's operators */
  bool exact;   /* equal bytes mean equal values; else they are a hash */
} RdmaccIndexColumn;

typedef struct RdmaccIndex {
  Oid oid;
  Oid relfilenode;
  uint32 id; /* the engine's */
  bool unique;
  bool nulls_not_distinct;
  bool valid;      /* else rows that are older than the index may have no entry yet */
  bool deferrable; /* whether a row is unique may be asked for as late as at COMMIT */
  bool hash;       /* of PostgreSQL's hash access method: equality is its strategy 1 */
  bool computed;   /* has expressions or a predicate: see index_row.h */
  int column_count;
  RdmaccIndexColumn columns[INDEX_MAX_KEYS];
} RdmaccIndex;

/* Everything but id. */
void rdmacc_describe_index(Relation relation, Relation index, RdmaccIndex* out);

/* True when the bytes of keys of this type have the order of the operator family. */
bool rdmacc_type_is_ordered(Oid type, Oid collation, Oid family);

/* Appends one column; `type` is that of the value. */
void rdmacc_append_index_column(StringInfo out, const RdmaccIndexColumn* column, Oid type,
                                Datum value, bool is_null);

/* Appends all columns. True when one is NULL. */
bool rdmacc_append_index_columns(StringInfo out, Relation relation, const RdmaccIndex* index,
                                 const Datum* values, const bool* nulls);

/* The entry of a row: `columns` as they were appended, and its key. palloc'ed. */
BridgeBytes rdmacc_index_entry(const StringInfoData* columns, BridgeBytes key);

/* The row's key, in the entry's bytes. */
BridgeBytes rdmacc_entry_key(BridgeBytes entry);

/* Turns bytes into the first ones that are larger and do not begin with them. False when there are
 * none. */
bool rdmacc_next_prefix(StringInfo bytes);

/* The entries that begin with these bytes. Uses `high` for the end of the range. */
BridgeRange rdmacc_prefix_range(BridgeBytes prefix, StringInfo high);
}
