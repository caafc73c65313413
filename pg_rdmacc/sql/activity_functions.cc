/* SQL functions behind rdmacc.locks, gate and gate_sessions: what goes on in the cluster now. Each
 * node is asked in turn, so that what they show is not of one moment. */
#include <inttypes.h>

#include "pg_rdmacc/server/attach.h"
#include "pg_rdmacc/server/error.h"
#include "pg_rdmacc/server/shmem.h"
#include "pg_rdmacc/sql/result_rows.h"
#include "pg_rdmacc/xact/xact.h"

extern "C" {
#include "utils/builtins.h"
#include "utils/timestamp.h"

PGDLLEXPORT Datum rdmacc_locks(PG_FUNCTION_ARGS);
PGDLLEXPORT Datum rdmacc_gate(PG_FUNCTION_ARGS);
PGDLLEXPORT Datum rdmacc_gate_sessions(PG_FUNCTION_ARGS);
PG_FUNCTION_INFO_V1(rdmacc_locks);
PG_FUNCTION_INFO_V1(rdmacc_gate);
PG_FUNCTION_INFO_V1(rdmacc_gate_sessions);
}

namespace {

/* Columns of the functions, in the order of the install script. */
enum LocksColumn {
  kLockNode,
  kLockDatabase,
  kLockRelfilenode,
  kLockTable,
  kLockHeader,
  kLockKeyHash,
  kLockMode,
  kLockGranted,
  kLockHolders,
  kLockWorker,
  kLockPid,
  kLockSince,
  kLockColumnCount
};
enum GateColumn {
  kGateOpen,
  kGateNext,
  kGateInside,
  kGateWaiting,
  kGateSwitches,
  kGateMeanUs,
  kGateMaxUs,
  kGateExclusive,
  kGateEntries,
  kGateColumnCount
};
enum GateSessionColumn {
  kSessionWorker,
  kSessionPid,
  kSessionState,
  kSessionProtocol,
  kSessionWaiting,
  kSessionColumnCount
};

/* False: there is no cluster to ask yet, or none any more. */
bool begin_rows(FunctionCallInfo fcinfo, ReturnSetInfo** result) {
  *result = rdmacc_begin_rows(fcinfo);
  if (!rdmacc_cluster_serving()) return false;
  rdmacc_ensure_attached();
  return true;
}

void put_lock(ReturnSetInfo* result, int node, const BridgeLock& lock, TimestampTz now) {
  Datum values[kLockColumnCount] = {};
  bool nulls[kLockColumnCount] = {};
  const int pid = rdmacc_worker_pid(lock.worker);
  values[kLockNode] = Int32GetDatum(node);
  values[kLockDatabase] = ObjectIdGetDatum(lock.database);
  values[kLockRelfilenode] = ObjectIdGetDatum(lock.relfilenode);
  nulls[kLockDatabase] = nulls[kLockRelfilenode] = lock.database == 0;
  values[kLockTable] = rdmacc_int8_datum(lock.table);
  values[kLockHeader] = CStringGetTextDatum(lock.gap ? "gap" : "record");
  values[kLockKeyHash] = CStringGetTextDatum(psprintf("%016" PRIx64, lock.key_hash));
  values[kLockMode] = CStringGetTextDatum(lock.mode);
  values[kLockGranted] = BoolGetDatum(lock.granted);
  values[kLockHolders] = Int32GetDatum(static_cast<int32>(lock.holders));
  values[kLockWorker] = Int32GetDatum(lock.worker);
  nulls[kLockWorker] = lock.worker < 0;
  values[kLockPid] = Int32GetDatum(pid);
  nulls[kLockPid] = pid == 0;
  values[kLockSince] = TimestampTzGetDatum(now - lock.age_us);
  nulls[kLockSince] = lock.age_us < 0;
  rdmacc_put_row(result, values, nulls);
}

void put_locks_of(ReturnSetInfo* result, int node) {
  uint64 from = 0;
  do {
    CHECK_FOR_INTERRUPTS();
    bridge_start_locks(node, from);
    rdmacc_pump();
    if (bridge_error()->code != rdmacc::Code::kOk || !bridge_node_answered()) {
      const bool answered = bridge_node_answered();
      ereport(WARNING, (errmsg("rdmacc node %d does not tell its locks", node),
                        errdetail_internal(
                            "%s", answered ? bridge_error()->message : "It does not answer.")));
      return;
    }
    const BridgeLock* locks = nullptr;
    const size_t count = bridge_locks(&locks, &from);
    const TimestampTz now = GetCurrentTimestamp();
    for (size_t i = 0; i < count; ++i) put_lock(result, node, locks[i], now);
  } while (from != 0);
}

/* Not on the stack: outlives an error that ends the command. */
BridgeGate gate;

size_t ask_gate(const BridgeGateSession** sessions) {
  bridge_start_gate(&gate);
  rdmacc_pump();
  rdmacc_check("could not look at the protocol gate", nullptr);
  return bridge_gate_sessions(sessions);
}

}  // namespace

Datum rdmacc_locks(PG_FUNCTION_ARGS) {
  ReturnSetInfo* result = nullptr;
  if (!begin_rows(fcinfo, &result)) return static_cast<Datum>(0);
  const int nodes = bridge_node_count();
  for (int node = 0; node < nodes; ++node) put_locks_of(result, node);
  return static_cast<Datum>(0);
}

Datum rdmacc_gate(PG_FUNCTION_ARGS) {
  ReturnSetInfo* result = nullptr;
  if (!begin_rows(fcinfo, &result)) return static_cast<Datum>(0);
  const BridgeGateSession* sessions = nullptr;
  const size_t count = ask_gate(&sessions);
  int inside = 0;
  for (size_t i = 0; i < count; ++i) inside += sessions[i].inside ? 1 : 0;
  Datum values[kGateColumnCount] = {};
  bool nulls[kGateColumnCount] = {};
  values[kGateOpen] = CStringGetTextDatum(bridge_protocol_name(gate.open));
  nulls[kGateOpen] = gate.open < 0;
  values[kGateNext] = CStringGetTextDatum(bridge_protocol_name(gate.next));
  nulls[kGateNext] = gate.next < 0;
  values[kGateInside] = Int32GetDatum(inside);
  values[kGateWaiting] = Int32GetDatum(static_cast<int32>(count) - inside);
  values[kGateSwitches] = rdmacc_int8_datum(gate.switches);
  const auto switches = static_cast<double>(Max(gate.switches, 1));
  values[kGateMeanUs] = Float8GetDatum(static_cast<double>(gate.switch_us_sum) / switches);
  values[kGateMaxUs] = rdmacc_int8_datum(gate.switch_us_max);
  nulls[kGateMeanUs] = nulls[kGateMaxUs] = gate.switches == 0;
  values[kGateExclusive] = Int32GetDatum(gate.exclusive_worker);
  nulls[kGateExclusive] = gate.exclusive_worker < 0;
  values[kGateEntries] = rdmacc_int8_datum(gate.exclusive_entries);
  rdmacc_put_row(result, values, nulls);
  return static_cast<Datum>(0);
}

Datum rdmacc_gate_sessions(PG_FUNCTION_ARGS) {
  ReturnSetInfo* result = nullptr;
  if (!begin_rows(fcinfo, &result)) return static_cast<Datum>(0);
  const BridgeGateSession* sessions = nullptr;
  const size_t count = ask_gate(&sessions);
  for (size_t i = 0; i < count; ++i) {
    const BridgeGateSession& session = sessions[i];
    const int pid = rdmacc_worker_pid(session.worker);
    Interval waiting = {.time = session.waiting_us, .day = 0, .month = 0};
    Datum values[kSessionColumnCount] = {};
    bool nulls[kSessionColumnCount] = {};
    values[kSessionWorker] = Int32GetDatum(session.worker);
    values[kSessionPid] = Int32GetDatum(pid);
    nulls[kSessionPid] = pid == 0;
    values[kSessionState] = CStringGetTextDatum(session.inside ? "inside" : "waiting");
    values[kSessionProtocol] = CStringGetTextDatum(bridge_protocol_name(session.protocol));
    values[kSessionWaiting] = IntervalPGetDatum(&waiting);
    nulls[kSessionWaiting] = session.inside;
    rdmacc_put_row(result, values, nulls);
  }
  return static_cast<Datum>(0);
}
