/* The rows that a SQL function returns as a set. */
#pragma once
#include "pg_rdmacc/server/shmem.h"

extern "C" {
#include "fmgr.h"
#include "funcapi.h"
#include "miscadmin.h"
}

/* Where the rows go. Raises 55000 unless the library is preloaded. */
inline ReturnSetInfo* rdmacc_begin_rows(FunctionCallInfo fcinfo) {
  rdmacc_require_preload();
  InitMaterializedSRF(fcinfo, 0);
  return reinterpret_cast<ReturnSetInfo*>(fcinfo->resultinfo);
}

inline void rdmacc_put_row(ReturnSetInfo* result, Datum* values, bool* nulls) {
  tuplestore_putvalues(result->setResult, result->setDesc, values, nulls);
}

inline Datum rdmacc_int8_datum(uint64 value) { return Int64GetDatum(static_cast<int64>(value)); }
