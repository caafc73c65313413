/* rdmacc.bench_report(), and what else runs the native drivers from SQL (script/7_bench.sql). */
#include "pg_rdmacc/server/attach.h"
#include "pg_rdmacc/server/shmem.h"
#include "pg_rdmacc/workload/bench_process.h"

extern "C" {
#include "fmgr.h"
#include "miscadmin.h"
#include "utils/builtins.h"
#include "utils/guc.h"
#include "utils/timestamp.h"

PGDLLEXPORT Datum rdmacc_bench_report(PG_FUNCTION_ARGS);
PG_FUNCTION_INFO_V1(rdmacc_bench_report);
}

namespace {

enum Argument {
  kWorkload,
  kProtocol,
  kStages,
  kDuration,
  kThreads,
  kCoroutines,
  kSettings,
  kLockMode,
  kSeed,
  kEnumerate,
  kPreset
};
constexpr const char* kNames[] = {"workload", "protocol",   "stages",   "duration",
                                  "threads",  "coroutines", "settings", "lock_mode",
                                  "seed",     "enumerate",  "preset"};

void check_arguments(FunctionCallInfo fcinfo) {
  static_assert(lengthof(kNames) == kPreset + 1);
  for (int i = 0; i <= kPreset; i++) {
    const bool has_default = i == kProtocol || i == kStages || i == kLockMode || i == kPreset;
    if (!PG_ARGISNULL(i) || has_default) continue;
    ereport(ERROR, (errcode(ERRCODE_NULL_VALUE_NOT_ALLOWED),
                    errmsg("argument \"%s\" must not be null", kNames[i])));
  }
  if (!bridge_txn_touched()) return;
  ereport(ERROR, (errcode(ERRCODE_ACTIVE_SQL_TRANSACTION),
                  errmsg("this transaction has used rdmacc tables already"),
                  errdetail("Its place in the protocol gate would be in the way of the run."),
                  errhint("Run benchmarks outside of transaction blocks.")));
}

/* Of the program's options none takes an empty text. */
char* text_argument(FunctionCallInfo fcinfo, Argument argument) {
  char* given = text_to_cstring(PG_GETARG_TEXT_PP(argument));
  if (given[0] != '\0' || argument == kSettings) return given;
  ereport(ERROR, (errcode(ERRCODE_INVALID_PARAMETER_VALUE),
                  errmsg("argument \"%s\" must not be empty", kNames[argument])));
}

/* Neither an option nor another command. */
char* workload_of(FunctionCallInfo fcinfo) {
  char* name = text_argument(fcinfo, kWorkload);
  if (strspn(name, "abcdefghijklmnopqrstuvwxyz") == strlen(name) && strcmp(name, "limits") != 0) {
    return name;
  }
  ereport(ERROR,
          (errcode(ERRCODE_INVALID_PARAMETER_VALUE), errmsg("there is no workload \"%s\"", name)));
}

/* As SHOW has it, which is the preset's where one is set. NULL where the run has a preset of its
 * own, which says it. */
const char* or_setting(FunctionCallInfo fcinfo, Argument argument, const char* setting) {
  if (!PG_ARGISNULL(argument)) return text_argument(fcinfo, argument);
  return PG_ARGISNULL(kPreset) ? GetConfigOptionByName(setting, nullptr, false) : nullptr;
}

/* The program would run several, one after the other. */
const char* protocol_of(FunctionCallInfo fcinfo) {
  const char* protocol = or_setting(fcinfo, kProtocol, "rdmacc.protocol");
  if (protocol == nullptr || strchr(protocol, ',') == nullptr) return protocol;
  ereport(ERROR,
          (errcode(ERRCODE_INVALID_PARAMETER_VALUE),
           errmsg("there is no protocol \"%s\"", protocol), errhint("A run has one protocol.")));
}

/* The program would describe them, and run nothing. */
const char* preset_of(FunctionCallInfo fcinfo) {
  const char* preset = text_argument(fcinfo, kPreset);
  if (strcmp(preset, "help") != 0) return preset;
  ereport(ERROR,
          (errcode(ERRCODE_INVALID_PARAMETER_VALUE), errmsg("there is no preset \"%s\"", preset)));
}

double seconds_of(const Interval* duration) {
  constexpr double kDaysPerMonth = 30;
  return static_cast<double>(duration->time) / USECS_PER_SEC +
         (duration->day + duration->month * kDaysPerMonth) * SECS_PER_DAY;
}

}  // namespace

Datum rdmacc_bench_report(PG_FUNCTION_ARGS) {
  rdmacc_require_preload();
  check_arguments(fcinfo);
  RdmaccBenchRun run = {};
  run.workload = workload_of(fcinfo);
  run.protocol = protocol_of(fcinfo);
  run.enumerate = PG_GETARG_BOOL(kEnumerate);
  if (!run.enumerate) run.stages = or_setting(fcinfo, kStages, "rdmacc.stages");
  if (!PG_ARGISNULL(kLockMode)) run.lock_mode = text_argument(fcinfo, kLockMode);
  if (!PG_ARGISNULL(kPreset)) run.preset = preset_of(fcinfo);
  run.settings = text_argument(fcinfo, kSettings);
  run.seconds = seconds_of(PG_GETARG_INTERVAL_P(kDuration));
  run.threads = PG_GETARG_INT32(kThreads);
  run.coroutines = PG_GETARG_INT32(kCoroutines);
  run.seed = PG_GETARG_INT64(kSeed);
  rdmacc_ensure_attached();
  return DirectFunctionCall1(jsonb_in, CStringGetDatum(rdmacc_run_bench(&run)));
}
