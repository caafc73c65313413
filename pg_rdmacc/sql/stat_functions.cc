/* SQL functions behind rdmacc.stat_stages, stat_aborts, stat_plans, stat_protocols and
 * stat_retries: what the transactions of all sessions of this server have measured, those that have
 * ended included. */
#include "pg_rdmacc/bridge/bridge_stats.h"
#include "pg_rdmacc/server/shmem.h"
#include "pg_rdmacc/sql/result_rows.h"

extern "C" {
#include "utils/builtins.h"

PGDLLEXPORT Datum rdmacc_stat_stages(PG_FUNCTION_ARGS);
PGDLLEXPORT Datum rdmacc_stat_aborts(PG_FUNCTION_ARGS);
PGDLLEXPORT Datum rdmacc_stat_plans(PG_FUNCTION_ARGS);
PGDLLEXPORT Datum rdmacc_stat_protocols(PG_FUNCTION_ARGS);
PGDLLEXPORT Datum rdmacc_stat_retries(PG_FUNCTION_ARGS);
PGDLLEXPORT Datum rdmacc_stat_reset(PG_FUNCTION_ARGS);
PG_FUNCTION_INFO_V1(rdmacc_stat_stages);
PG_FUNCTION_INFO_V1(rdmacc_stat_aborts);
PG_FUNCTION_INFO_V1(rdmacc_stat_plans);
PG_FUNCTION_INFO_V1(rdmacc_stat_protocols);
PG_FUNCTION_INFO_V1(rdmacc_stat_retries);
PG_FUNCTION_INFO_V1(rdmacc_stat_reset);
}

namespace {

constexpr size_t kStagesTextBytes = 256;
constexpr size_t kColumnsMax = 13;

/* A row for each of what `read` finds. `fill` sets the columns, in the order of the install script.
 */
template <typename Stat>
Datum put_rows(FunctionCallInfo fcinfo, size_t (*read)(Stat* out, size_t max), size_t max,
               void (*fill)(const Stat& stat, Datum* values, bool* nulls)) {
  ReturnSetInfo* result = rdmacc_begin_rows(fcinfo);
  auto* stats = static_cast<Stat*>(palloc(max * sizeof(Stat)));
  const size_t count = read(stats, max);
  for (size_t i = 0; i < count; ++i) {
    Datum values[kColumnsMax] = {};
    bool nulls[kColumnsMax] = {};
    fill(stats[i], values, nulls);
    rdmacc_put_row(result, values, nulls);
  }
  return static_cast<Datum>(0);
}

void fill_stage(const BridgeStageStat& stat, Datum* values, bool* nulls) {
  values[0] = CStringGetTextDatum(bridge_protocol_name(stat.protocol));
  values[1] = CStringGetTextDatum(stat.stage);
  values[2] = CStringGetTextDatum(stat.primitive);
  values[3] = rdmacc_int8_datum(stat.count);
  values[4] = Float8GetDatum(stat.mean_us);
  values[5] = Float8GetDatum(stat.p50_us);
  values[6] = Float8GetDatum(stat.p99_us);
  nulls[4] = nulls[5] = nulls[6] = stat.count == 0;
}

void fill_abort(const BridgeAbortStat& stat, Datum* values, bool*) {
  values[0] = CStringGetTextDatum(bridge_protocol_name(stat.protocol));
  values[1] = CStringGetTextDatum(stat.reason);
  values[2] = rdmacc_int8_datum(stat.count);
}

void fill_plan(const BridgePlanStat& stat, Datum* values, bool*) {
  char stages[kStagesTextBytes];
  bridge_stages_text(stat.protocol, stat.code, stages, sizeof(stages));
  values[0] = CStringGetTextDatum(bridge_protocol_name(stat.protocol));
  values[1] = CStringGetTextDatum(stages);
  values[2] = Int32GetDatum(stat.code);
  values[3] = rdmacc_int8_datum(stat.transactions);
  values[4] = rdmacc_int8_datum(stat.committed);
  values[5] = rdmacc_int8_datum(stat.explored);
}

/* NULL where nothing has been counted that it could be a share of. */
void put_ratio(int column, double numerator, uint64_t denominator, Datum* values, bool* nulls) {
  nulls[column] = denominator == 0;
  if (denominator == 0) return;
  values[column] = Float8GetDatum(numerator / static_cast<double>(denominator));
}

void fill_protocol(const BridgeProtocolStat& stat, Datum* values, bool* nulls) {
  const rdmacc::VerbCounters& verbs = stat.verbs;
  const uint64_t all = verbs.reads + verbs.writes + verbs.atomics + verbs.messages;
  values[0] = CStringGetTextDatum(bridge_protocol_name(stat.protocol));
  values[1] = rdmacc_int8_datum(stat.transactions);
  values[2] = rdmacc_int8_datum(stat.committed);
  values[3] = rdmacc_int8_datum(verbs.reads);
  values[4] = rdmacc_int8_datum(verbs.writes);
  values[5] = rdmacc_int8_datum(verbs.atomics);
  values[6] = rdmacc_int8_datum(verbs.messages);
  values[7] = rdmacc_int8_datum(verbs.doorbells);
  values[8] = rdmacc_int8_datum(verbs.round_trips);
  put_ratio(9, static_cast<double>(all), stat.committed, values, nulls);
  put_ratio(10, static_cast<double>(verbs.round_trips), stat.committed, values, nulls);
  put_ratio(11, static_cast<double>(stat.nodes), stat.with_nodes, values, nulls);
  put_ratio(12, static_cast<double>(stat.committed_stage_ns), stat.stage_ns, values, nulls);
}

void fill_retries(const BridgeRetryStat& stat, Datum* values, bool*) {
  values[0] = CStringGetTextDatum(bridge_protocol_name(stat.protocol));
  values[1] = rdmacc_int8_datum(stat.retries);
  values[2] = rdmacc_int8_datum(stat.given_up);
  values[3] = rdmacc_int8_datum(stat.replayed_statements);
  values[4] = Float8GetDatum(static_cast<double>(stat.replay_us) / 1000);
  values[5] = rdmacc_int8_datum(stat.replays_differed);
}

}  // namespace

Datum rdmacc_stat_stages(PG_FUNCTION_ARGS) {
  return put_rows(fcinfo, bridge_stat_stages, BRIDGE_STAT_STAGES_MAX, fill_stage);
}

Datum rdmacc_stat_aborts(PG_FUNCTION_ARGS) {
  return put_rows(fcinfo, bridge_stat_aborts, BRIDGE_STAT_ABORTS_MAX, fill_abort);
}

Datum rdmacc_stat_plans(PG_FUNCTION_ARGS) {
  return put_rows(fcinfo, bridge_stat_plans, BRIDGE_STAT_PLANS_MAX, fill_plan);
}

Datum rdmacc_stat_protocols(PG_FUNCTION_ARGS) {
  return put_rows(fcinfo, bridge_stat_protocols, BRIDGE_STAT_PROTOCOLS_MAX, fill_protocol);
}

Datum rdmacc_stat_retries(PG_FUNCTION_ARGS) {
  return put_rows(fcinfo, bridge_stat_retries, BRIDGE_STAT_RETRIES_MAX, fill_retries);
}

Datum rdmacc_stat_reset(PG_FUNCTION_ARGS) {
  static_cast<void>(fcinfo);
  rdmacc_require_preload();
  bridge_stats_reset();
  PG_RETURN_VOID();
}
