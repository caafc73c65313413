#include "pg_rdmacc/workload/native_query.h"

namespace {

void plan(RdmaccNativeQuery* query) {
  SPIPlanPtr made = SPI_prepare(query->text, query->argument_count, query->types);
  if (made == nullptr || SPI_keepplan(made) != 0) elog(ERROR, "could not keep a plan");
  query->plan = made;
}

}  // namespace

bool rdmacc_native_find(RdmaccNativeQuery* query, const Datum* arguments, int32* number) {
  CHECK(query->argument_count <= RDMACC_NATIVE_QUERY_ARGUMENTS_MAX);
  SPI_connect();
  if (query->plan == nullptr) plan(query);
  if (SPI_execute_plan(query->plan, const_cast<Datum*>(arguments), nullptr, false, 0) !=
      SPI_OK_SELECT) {
    elog(ERROR, "could not look up a row");
  }
  const uint64 count = SPI_processed;
  if (count > 0) {
    HeapTuple middle = SPI_tuptable->vals[(count + 1) / 2 - 1];
    bool is_null = false;
    *number = DatumGetInt32(SPI_getbinval(middle, SPI_tuptable->tupdesc, 1, &is_null));
    CHECK(!is_null);
  }
  SPI_finish();
  return count > 0;
}
