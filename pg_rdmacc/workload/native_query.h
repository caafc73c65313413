/* What a function that reads and writes the engine itself looks up by something else than a whole
 * primary key: a statement of its own, planned once. It is run before the function's call begins
 * (rdmacc_native_call), because it makes commands of its own. */
#pragma once
#include "pg_rdmacc/server/pg_rdmacc.h"

extern "C" {
#include "executor/spi.h"

#define RDMACC_NATIVE_QUERY_ARGUMENTS_MAX 3
#define RDMACC_NATIVE_QUERY_COLUMNS_MAX 3

/* Static storage. Its tables are whatever search_path names: 0A000 where a column has another type,
 * 22004 where one is null. */
typedef struct RdmaccNativeQuery {
  const char* text; /* a SELECT */
  int argument_count;
  Oid types[RDMACC_NATIVE_QUERY_ARGUMENTS_MAX];
  SPIPlanPtr plan; /* NULL at first */
  int column_count;
  Oid column_types[RDMACC_NATIVE_QUERY_COLUMNS_MAX];
} RdmaccNativeQuery;

/* The number (an int) in the middle row, the only one's where there is one; false where there is
 * none. */
bool rdmacc_native_find(RdmaccNativeQuery* query, const Datum* arguments, int32* number);

/* All rows, the values of one behind another's; palloc'ed, as those that are passed by reference.
 * Their number. */
size_t rdmacc_native_find_rows(RdmaccNativeQuery* query, const Datum* arguments, Datum** values);
}
