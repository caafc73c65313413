/* What a workload's table must look like for functions that read and write the engine themselves,
 * which take plain tables alone: nothing that would have to run, or hold, for each row. */
#pragma once
#include "pg_rdmacc/server/pg_rdmacc.h"

extern "C" {
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
  int key_columns;      /* 0: there is no primary key */
  int unique_attribute; /* may have a unique index: never written, no row is inserted; 0: none */
  int nullable_attribute = 0; /* may be null where a row is read, whose value is 0 then; 0: none */
} RdmaccNativeShape;

#define RDMACC_NATIVE_ATTRIBUTES_MAX 40

/* 0A000, with the reason, where the relation is no plain rdmacc table of the shape. */
void rdmacc_native_check_shape(const RdmaccNativeShape* shape, Relation relation);
}

struct RdmaccNativeAttributes {
  int unique = 0, nullable = 0;
};

template <int kColumns>
constexpr RdmaccNativeShape rdmacc_native_shape(const char* procedure, const char* table,
                                                const RdmaccNativeColumn (&columns)[kColumns],
                                                int key_columns,
                                                RdmaccNativeAttributes special = {}) {
  return {.table = table,
          .procedure = procedure,
          .columns = columns,
          .column_count = kColumns,
          .key_columns = key_columns,
          .unique_attribute = special.unique,
          .nullable_attribute = special.nullable};
}
