/* What a function that reads and writes the engine itself looks up by something else than a whole
 * primary key: a statement of its own, planned once. It is run before the function's call begins
 * (rdmacc_native_call), because it makes commands of its own. */
#pragma once
#include "pg_rdmacc/server/pg_rdmacc.h"

extern "C" {
#include "executor/spi.h"

#define RDMACC_NATIVE_QUERY_ARGUMENTS_MAX 3

/* Static storage. */
typedef struct RdmaccNativeQuery {
  const char* text; /* a SELECT of an int that is not null */
  int argument_count;
  Oid types[RDMACC_NATIVE_QUERY_ARGUMENTS_MAX];
  SPIPlanPtr plan; /* NULL at first */
} RdmaccNativeQuery;

/* The number in the middle row, the only one's where there is one; false where there is none. */
bool rdmacc_native_find(RdmaccNativeQuery* query, const Datum* arguments, int32* number);
}
