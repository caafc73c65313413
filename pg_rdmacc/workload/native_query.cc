#include "pg_rdmacc/workload/native_query.h"

extern "C" {
#include "utils/datum.h"
}

namespace {

void plan(RdmaccNativeQuery* query) {
  SPIPlanPtr made = SPI_prepare(query->text, query->argument_count, query->types);
  if (made == nullptr || SPI_keepplan(made) != 0) elog(ERROR, "could not keep a plan");
  query->plan = made;
}

void check_columns(const RdmaccNativeQuery* query) {
  TupleDesc descriptor = SPI_tuptable->tupdesc;
  CHECK(descriptor->natts == query->column_count); /* the text says how many */
  for (int i = 0; i < descriptor->natts; i++) {
    if (SPI_gettypeid(descriptor, i + 1) == query->column_types[i]) continue;
    ereport(ERROR, (errcode(ERRCODE_FEATURE_NOT_SUPPORTED),
                    errmsg("column \"%s\" has another type than the engine's own path takes",
                           NameStr(TupleDescAttr(descriptor, i)->attname)),
                    errhint("Call the function of the same name that ends in _sql.")));
  }
}

/* Behind SPI_connect(): how many rows there are. */
uint64 run(RdmaccNativeQuery* query, const Datum* arguments) {
  CHECK(query->argument_count <= RDMACC_NATIVE_QUERY_ARGUMENTS_MAX);
  if (query->plan == nullptr) plan(query);
  if (SPI_execute_plan(query->plan, const_cast<Datum*>(arguments), nullptr, false, 0) !=
      SPI_OK_SELECT) {
    elog(ERROR, "could not look up a row");
  }
  check_columns(query);
  return SPI_processed;
}

Datum value_of(uint64 row, int column) {
  bool is_null = false;
  const Datum value =
      SPI_getbinval(SPI_tuptable->vals[row], SPI_tuptable->tupdesc, column + 1, &is_null);
  if (is_null) {
    ereport(ERROR, (errcode(ERRCODE_NULL_VALUE_NOT_ALLOWED),
                    errmsg("column \"%s\" has a null value",
                           NameStr(TupleDescAttr(SPI_tuptable->tupdesc, column)->attname))));
  }
  return value;
}

}  // namespace

bool rdmacc_native_find(RdmaccNativeQuery* query, const Datum* arguments, int32* number) {
  SPI_connect();
  const uint64 count = run(query, arguments);
  if (count > 0) *number = DatumGetInt32(value_of((count + 1) / 2 - 1, 0));
  SPI_finish();
  return count > 0;
}

size_t rdmacc_native_find_rows(RdmaccNativeQuery* query, const Datum* arguments, Datum** values) {
  const MemoryContext caller = CurrentMemoryContext;
  SPI_connect();
  const uint64 count = run(query, arguments);
  TupleDesc descriptor = SPI_tuptable->tupdesc;
  const auto columns = static_cast<size_t>(descriptor->natts);
  MemoryContextSwitchTo(caller);
  auto* copies = static_cast<Datum*>(palloc(sizeof(Datum) * columns * count));
  for (uint64 row = 0; row < count; row++) {
    for (int i = 0; i < descriptor->natts; i++) {
      const FormData_pg_attribute* attribute = TupleDescAttr(descriptor, i);
      copies[row * columns + static_cast<size_t>(i)] =
          datumCopy(value_of(row, i), attribute->attbyval, attribute->attlen);
    }
  }
  SPI_finish();
  *values = copies;
  return count;
}
