/* Rows of a workload's table for functions that read and write the engine themselves. */
#pragma once
#include "pg_rdmacc/workload/native_table.h"

extern "C" {

typedef struct RdmaccNativeRow {
  bool found; /* else there are no values */
  BridgeBytes key;
  Datum values[RDMACC_NATIVE_ATTRIBUTES_MAX];
} RdmaccNativeRow;

/* The key with the values of all of its columns, palloc'ed. */
BridgeBytes rdmacc_native_key(const RdmaccNativeAccess* access, const Datum* values);

/* Rows by their keys, all in one round. */
void rdmacc_native_read(const RdmaccNativeAccess* access, const BridgeBytes* keys, size_t count,
                        BridgeRow* rows);

/* The values of a row that was found; those passed by reference are palloc'ed. */
void rdmacc_native_values(const RdmaccNativeAccess* access, const BridgeRow* row, Datum* values);

/* Both: of each row the values of its key's columns, one row's after another's. */
void rdmacc_native_read_rows(const RdmaccNativeAccess* access, const Datum* keys, size_t count,
                             RdmaccNativeRow* rows);

/* One row, P0002 where there is none. */
void rdmacc_native_read_row(const RdmaccNativeAccess* access, const Datum* key,
                            RdmaccNativeRow* row);

[[noreturn]] void rdmacc_native_lacks_row(const RdmaccNativeAccess* access);

/* Values, none of which is null, as the text of a record. `output` is zero at first, and the
 * caller's own for each kind of record, whose columns it knows then. */
Datum rdmacc_native_text(TupleDesc descriptor, const Datum* values, FmgrInfo* output);

/* The value as an assignment to the column makes it: rounded, padded, or refused. */
Datum rdmacc_native_assigned(const RdmaccNativeAccess* access, int column, Datum value);

/* Writes the row of a key that was read; no value is null. */
void rdmacc_native_update(const RdmaccNativeAccess* access, BridgeBytes key, const Datum* values);

/* nulls: NULL for none. */
void rdmacc_native_insert(const RdmaccNativeAccess* access, const Datum* values, const bool* nulls);

/* Of a key that the call has read and not found: a row that has come since is a conflict (40001),
 * and no duplicate. No value is null. */
void rdmacc_native_insert_absent(const RdmaccNativeAccess* access, const Datum* values);

/* Removes the row of a key that was read. */
void rdmacc_native_delete(const RdmaccNativeAccess* access, BridgeBytes key);
}
