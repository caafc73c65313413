/* A workload's table for functions that read and write the engine themselves: found by its name in
 * the caller's search path once, and again when the catalog or the path changes.
 *
 * Such a function is a statement's part like any other: it reads what the transaction has written
 * before, and writes as UPDATE and INSERT do, index entries included. What it does without is the
 * executor, hence it takes plain tables alone: nothing that would have to run for each row. */
#pragma once
#include "pg_rdmacc/relation/engine_table.h"
#include "pg_rdmacc/workload/native_shape.h"

extern "C" {
#include "nodes/parsenodes.h"
#include "utils/rel.h"

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

/* The same call, for a table that it has other uses for. */
RdmaccNativeCall rdmacc_native_call_for(const RdmaccNativeCall* call, AclMode rights);

/* While one function uses it. */
typedef struct RdmaccNativeAccess {
  Relation relation;
  RdmaccTable table;
  CommandId command;
  int nullable_attribute; /* the shape's */
} RdmaccNativeAccess;

/* Looks the table up, locks it as a statement would until the transaction ends, and enters the
 * engine. Errors: 42P01, 42501, and 0A000 where it is no plain rdmacc table of the shape. */
void rdmacc_native_open(RdmaccNativeTable* native, const RdmaccNativeCall* call,
                        RdmaccNativeAccess* access);
void rdmacc_native_close(RdmaccNativeAccess* access);
}

constexpr RdmaccNativeTable rdmacc_native_table_of(const RdmaccNativeShape* shape) {
  return {.shape = shape, .relation = InvalidOid, .epoch = 0, .path = nullptr};
}
