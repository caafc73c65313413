/* SQL functions behind rdmacc.stat_stages, stat_aborts and stat_plans: what the transactions of all
 * sessions of this server have measured, those that have ended included. */
#include "pg_rdmacc/supervisor.h"

extern "C" {
#include "fmgr.h"
#include "funcapi.h"
#include "miscadmin.h"
#include "utils/builtins.h"

PGDLLEXPORT Datum rdmacc_stat_stages(PG_FUNCTION_ARGS);
PGDLLEXPORT Datum rdmacc_stat_aborts(PG_FUNCTION_ARGS);
PGDLLEXPORT Datum rdmacc_stat_plans(PG_FUNCTION_ARGS);
PGDLLEXPORT Datum rdmacc_stat_reset(PG_FUNCTION_ARGS);
PG_FUNCTION_INFO_V1(rdmacc_stat_stages);
PG_FUNCTION_INFO_V1(rdmacc_stat_aborts);
PG_FUNCTION_INFO_V1(rdmacc_stat_plans);
PG_FUNCTION_INFO_V1(rdmacc_stat_reset);
}

namespace {

constexpr size_t kStagesTextBytes = 256;

Datum int8_datum(uint64 value) { return Int64GetDatum(static_cast<int64>(value)); }

template <typename Row>
Row* palloc_rows(size_t count) {
  return static_cast<Row*>(palloc(count * sizeof(Row)));
}

ReturnSetInfo* begin_rows(FunctionCallInfo fcinfo) {
  rdmacc_require_preload();
  InitMaterializedSRF(fcinfo, 0);
  return reinterpret_cast<ReturnSetInfo*>(fcinfo->resultinfo);
}

void put_row(ReturnSetInfo* result, Datum* values, bool* nulls) {
  tuplestore_putvalues(result->setResult, result->setDesc, values, nulls);
}

}  // namespace

Datum rdmacc_stat_stages(PG_FUNCTION_ARGS) {
  ReturnSetInfo* result = begin_rows(fcinfo);
  auto* rows = palloc_rows<BridgeStageStat>(BRIDGE_STAT_STAGES_MAX);
  const size_t count = bridge_stat_stages(rows, BRIDGE_STAT_STAGES_MAX);
  for (size_t i = 0; i < count; ++i) {
    const BridgeStageStat& row = rows[i];
    Datum values[] = {CStringGetTextDatum(bridge_protocol_name(row.protocol)),
                      CStringGetTextDatum(row.stage),
                      CStringGetTextDatum(row.primitive),
                      int8_datum(row.count),
                      Float8GetDatum(row.mean_us),
                      Float8GetDatum(row.p50_us),
                      Float8GetDatum(row.p99_us)};
    const bool none = row.count == 0;
    bool nulls[] = {false, false, false, false, none, none, none};
    put_row(result, values, nulls);
  }
  return static_cast<Datum>(0);
}

Datum rdmacc_stat_aborts(PG_FUNCTION_ARGS) {
  ReturnSetInfo* result = begin_rows(fcinfo);
  auto* rows = palloc_rows<BridgeAbortStat>(BRIDGE_STAT_ABORTS_MAX);
  const size_t count = bridge_stat_aborts(rows, BRIDGE_STAT_ABORTS_MAX);
  for (size_t i = 0; i < count; ++i) {
    Datum values[] = {CStringGetTextDatum(bridge_protocol_name(rows[i].protocol)),
                      CStringGetTextDatum(rows[i].reason), int8_datum(rows[i].count)};
    bool nulls[] = {false, false, false};
    put_row(result, values, nulls);
  }
  return static_cast<Datum>(0);
}

Datum rdmacc_stat_plans(PG_FUNCTION_ARGS) {
  ReturnSetInfo* result = begin_rows(fcinfo);
  auto* rows = palloc_rows<BridgePlanStat>(BRIDGE_STAT_PLANS_MAX);
  const size_t count = bridge_stat_plans(rows, BRIDGE_STAT_PLANS_MAX);
  for (size_t i = 0; i < count; ++i) {
    const BridgePlanStat& row = rows[i];
    char stages[kStagesTextBytes];
    bridge_stages_text(row.protocol, row.code, stages, sizeof(stages));
    Datum values[] = {CStringGetTextDatum(bridge_protocol_name(row.protocol)),
                      CStringGetTextDatum(stages),
                      Int32GetDatum(row.code),
                      int8_datum(row.transactions),
                      int8_datum(row.committed),
                      int8_datum(row.explored)};
    bool nulls[] = {false, false, false, false, false, false};
    put_row(result, values, nulls);
  }
  return static_cast<Datum>(0);
}

Datum rdmacc_stat_reset(PG_FUNCTION_ARGS) {
  static_cast<void>(fcinfo);
  rdmacc_require_preload();
  bridge_stats_reset();
  PG_RETURN_VOID();
}
