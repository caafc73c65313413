/* Arithmetic of numeric values outside of an expression. */
#pragma once
#include "pg_rdmacc/server/pg_rdmacc.h"

extern "C" {
#include "fmgr.h"
#include "utils/builtins.h"
#include "utils/numeric.h"
}

inline Datum rdmacc_numeric_of(int64 value) { return NumericGetDatum(int64_to_numeric(value)); }

inline Datum rdmacc_numeric_add(Datum a, Datum b) {
  return NumericGetDatum(numeric_add_opt_error(DatumGetNumeric(a), DatumGetNumeric(b), nullptr));
}

inline Datum rdmacc_numeric_subtract(Datum a, Datum b) {
  return NumericGetDatum(numeric_sub_opt_error(DatumGetNumeric(a), DatumGetNumeric(b), nullptr));
}

inline Datum rdmacc_numeric_multiply(Datum a, Datum b) {
  return NumericGetDatum(numeric_mul_opt_error(DatumGetNumeric(a), DatumGetNumeric(b), nullptr));
}
