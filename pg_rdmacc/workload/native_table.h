/* A workload's table for functions that read and write the engine themselves: found by its name in
 * the caller's search path once, and again when the catalog or the path changes.
 *
 * Such a function is a statement's part like any other: it reads what the transaction has written
 * before, and writes as UPDATE and INSERT do, index entries included. What it does without is the
 * executor, hence it takes plain tables alone: nothing that would have to run for each row. */
#pragma once
#include "pg_rdmacc/relation/engine_table.h"

extern "C" {
#include "nodes/parsenodes.h"
#include "utils/rel.h"

typedef struct RdmaccNativeColumn {
  const char* name; /* numbered from 1 where there are several */
  Oid type;
  int count;
} RdmaccNativeColumn;

/* The columns of a table, no more and no less, the primary key's first. */
typedef struct RdmaccNativeShape {
  const char* table;
  const char* procedure; /* that makes it */
  const RdmaccNativeColumn* columns;
  int column_count;
  int key_columns;
} RdmaccNativeShape;

#define RDMACC_NATIVE_ATTRIBUTES_MAX 32

/* What a session knows of one. Static storage, zero at first but for the shape. */
typedef struct RdmaccNativeTable {
  const RdmaccNativeShape* shape;
  Oid relation;
  uint64 epoch; /* of the relcache that it was looked up in; 0: never was */
  struct OverrideSearchPath* path;
} RdmaccNativeTable;

/* One call of a function. */
typedef struct RdmaccNativeCall {
  AclMode rights; /* to its tables: ACL_SELECT, ACL_UPDATE, ACL_INSERT */
  CommandId command;
} RdmaccNativeCall;

/* A function called again by the same statement sees what it has written. */
RdmaccNativeCall rdmacc_native_call(AclMode rights);

/* While one function uses it. */
typedef struct RdmaccNativeAccess {
  Relation relation;
  RdmaccTable table;
  CommandId command;
} RdmaccNativeAccess;

/* Looks the table up, locks it as a statement would until the transaction ends, and enters the
 * engine. Errors: 42P01, 42501, and 0A000 where it is no plain rdmacc table of the shape. */
void rdmacc_native_open(RdmaccNativeTable* native, const RdmaccNativeCall* call,
                        RdmaccNativeAccess* access);
void rdmacc_native_close(RdmaccNativeAccess* access);

/* The key with one column, palloc'ed. */
BridgeBytes rdmacc_native_key(const RdmaccNativeAccess* access, Datum value);

/* Rows by their keys, all in one round. */
void rdmacc_native_read(const RdmaccNativeAccess* access, const BridgeBytes* keys, size_t count,
                        BridgeRow* rows);

/* The values of a row that was found; those passed by reference are palloc'ed. */
void rdmacc_native_values(const RdmaccNativeAccess* access, const BridgeRow* row, Datum* values);

/* Writes the row of a key that was read; no value is null. */
void rdmacc_native_update(const RdmaccNativeAccess* access, BridgeBytes key, const Datum* values);
void rdmacc_native_insert(const RdmaccNativeAccess* access, const Datum* values);
}
