/* Keys as bytes: equal values give equal bytes, and unequal ones unequal bytes (but for kinds that
 * are hashed). Where the type has an order that does not depend on a locale, memcmp gives it, and a
 * composite key is the concatenation of its columns. Nodes compare bytes and nothing else. */
#pragma once
#include "pg_rdmacc/server/pg_rdmacc.h"

extern "C" {
#include "lib/stringinfo.h"

#define RDMACC_KEY_BYTES_MAX 2048

/* Part of the names of engine tables: numbers are never changed or used again. */
typedef enum RdmaccKeyKind {
  RDMACC_KEY_NONE = 0, /* no key of this type */
  RDMACC_KEY_BOOL = 1,
  RDMACC_KEY_INT = 2, /* smallint, integer, bigint: one encoding */
  RDMACC_KEY_OID = 3,
  RDMACC_KEY_FLOAT = 4, /* real, double precision: one encoding */
  RDMACC_KEY_NUMERIC = 5,
  RDMACC_KEY_DATE = 6,
  RDMACC_KEY_INT64_TIME = 7, /* time, timestamp, timestamptz */
  RDMACC_KEY_TIMETZ = 8,
  RDMACC_KEY_INTERVAL = 9,
  RDMACC_KEY_UUID = 10,
  RDMACC_KEY_BYTES = 11, /* bytea, text, varchar, name: escaped */
  RDMACC_KEY_BPCHAR = 12,
  RDMACC_KEY_CHAR = 13,
  RDMACC_KEY_ENUM = 14,
  RDMACC_KEY_HASH = 15,
  RDMACC_KEY_UINT64 = 16 /* xid8, pg_lsn */
} RdmaccKeyKind;

/* How values of `type` (a base type) are encoded. */
RdmaccKeyKind rdmacc_key_kind(Oid type);

/* True when a value of `type` may be compared with a key column of `column_type` by bytes. */
bool rdmacc_key_types_match(Oid column_type, Oid type);

/* Appends the bytes of a value of `type`; collation is for hashed kinds. */
void rdmacc_key_append(StringInfo out, Oid type, Oid collation, Datum value);

/* The elements of an array, palloc'ed; their number. */
int rdmacc_array_elements(Datum array, Datum** elements, bool** nulls);

/* Raises 54000 when the whole key is too long. */
void rdmacc_key_check_size(const StringInfoData* key);

/* ---- Keys of types that have no bytes of their own as keys: 128 bits of hash stand for them. */
void rdmacc_key_append_hash(StringInfo out, Oid type, Oid collation, Datum value);

/* ---- Values out of keys' bytes: the way back, for types whose bytes hold all of the value. Not so
 * numeric (1.0 and 1.00 are one key), double precision (0 and -0), interval, character(n) and what
 * is hashed. */

/* True when rdmacc_key_decode() takes this (base) type. */
bool rdmacc_key_is_decodable(Oid type);

/* The value at the beginning of *bytes, which is moved behind it; palloc'ed where the type is
 * passed by reference. `inverted`: of a descending column. */
Datum rdmacc_key_decode(Oid type, bool inverted, BridgeBytes* bytes);
}
