/* SQL functions behind rdmacc.in_doubt, and rdmacc.resolve(). */
#include <inttypes.h>

#include "pg_rdmacc/server/attach.h"
#include "pg_rdmacc/server/error.h"
#include "pg_rdmacc/server/shmem.h"
#include "pg_rdmacc/sql/result_rows.h"
#include "pg_rdmacc/xact/two_phase.h"
#include "pg_rdmacc/xact/xact.h"

extern "C" {
#include "access/xlog.h"
#include "utils/builtins.h"
#include "utils/timestamp.h"
#include "utils/xid8.h"

PGDLLEXPORT Datum rdmacc_in_doubt(PG_FUNCTION_ARGS);
PGDLLEXPORT Datum rdmacc_resolve(PG_FUNCTION_ARGS);
PG_FUNCTION_INFO_V1(rdmacc_in_doubt);
PG_FUNCTION_INFO_V1(rdmacc_resolve);
}

namespace {

constexpr int kResolveLooks = 100;
constexpr long kResolveLookUs = 100'000;

/* Columns, in the order of the install script. */
enum Column { kGtid, kXid, kSince, kNode, kState, kWorker, kColumnCount };

char* gtid_text(const BridgeInDoubt& doubt) {
  return psprintf("%" PRIu64 ":%" PRIu64, doubt.system_id, doubt.xid);
}

size_t ask(const BridgeInDoubt** found) {
  rdmacc_ensure_attached();
  bridge_start_in_doubt();
  rdmacc_pump();
  rdmacc_check("could not ask for transactions in doubt", nullptr);
  uint64_t unresolved = 0;
  return bridge_in_doubt(found, &unresolved);
}

void put_transaction(ReturnSetInfo* result, const BridgeInDoubt& doubt) {
  Datum values[kColumnCount] = {};
  bool nulls[kColumnCount] = {};
  values[kGtid] = CStringGetTextDatum(gtid_text(doubt));
  values[kXid] = FullTransactionIdGetDatum(FullTransactionIdFromU64(doubt.xid));
  nulls[kXid] = doubt.system_id != GetSystemIdentifier();
  values[kSince] = TimestampTzGetDatum(GetCurrentTimestamp() - doubt.age_us);
  nulls[kSince] = doubt.age_us < 0;
  values[kNode] = Int32GetDatum(doubt.node);
  values[kState] = CStringGetTextDatum(doubt.decided ? "decided" : "in doubt");
  values[kWorker] = Int32GetDatum(doubt.worker);
  rdmacc_put_row(result, values, nulls);
}

void parse_gtid(const char* gtid, BridgeInDoubt* parsed) {
  int end = 0;
  const int fields =
      sscanf(gtid, "%" SCNu64 ":%" SCNu64 "%n", &parsed->system_id, &parsed->xid, &end);
  if (fields == 2 && gtid[end] == '\0' && gtid[0] >= '0' && gtid[0] <= '9') return;
  ereport(ERROR,
          (errcode(ERRCODE_INVALID_PARAMETER_VALUE), errmsg("\"%s\" names no transaction", gtid),
           errhint("See the column gtid of rdmacc.in_doubt.")));
}

/* Of this server's own transactions pg_xact knows better. */
void check_decision(const BridgeInDoubt& wanted, bool commit) {
  if (wanted.system_id != GetSystemIdentifier()) return;
  const RdmaccOutcome outcome = rdmacc_outcome_of(wanted.xid);
  if (outcome == RDMACC_OUTCOME_UNKNOWN) return;
  if (outcome == (commit ? RDMACC_OUTCOME_COMMITTED : RDMACC_OUTCOME_ABORTED)) return;
  ereport(ERROR, (errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
                  errmsg("transaction " UINT64_FORMAT " %s in this server", wanted.xid,
                         outcome == RDMACC_OUTCOME_OPEN        ? "is in progress"
                         : outcome == RDMACC_OUTCOME_COMMITTED ? "is committed"
                                                               : "was aborted")));
}

bool is_listed(const BridgeInDoubt& wanted) {
  const BridgeInDoubt* found = nullptr;
  const size_t count = ask(&found);
  for (size_t i = 0; i < count; i++) {
    if (found[i].system_id == wanted.system_id && found[i].xid == wanted.xid) return true;
  }
  return false;
}

}  // namespace

Datum rdmacc_in_doubt(PG_FUNCTION_ARGS) {
  ReturnSetInfo* result = rdmacc_begin_rows(fcinfo);
  if (!rdmacc_cluster_serving()) return static_cast<Datum>(0);
  const BridgeInDoubt* found = nullptr;
  const size_t count = ask(&found);
  for (size_t i = 0; i < count; i++) put_transaction(result, found[i]);
  return static_cast<Datum>(0);
}

Datum rdmacc_resolve(PG_FUNCTION_ARGS) {
  rdmacc_require_preload();
  if (!superuser()) {
    ereport(ERROR, (errcode(ERRCODE_INSUFFICIENT_PRIVILEGE),
                    errmsg("must be superuser to decide a transaction in doubt")));
  }
  const char* gtid = text_to_cstring(PG_GETARG_TEXT_PP(0));
  const bool commit = PG_GETARG_BOOL(1);
  BridgeInDoubt wanted = {};
  parse_gtid(gtid, &wanted);
  check_decision(wanted, commit);
  rdmacc_ensure_attached();
  bridge_start_decide(wanted.system_id, wanted.xid, commit);
  rdmacc_pump();
  if (bridge_error()->code == rdmacc::Code::kNotFound) {
    ereport(ERROR, (errcode(ERRCODE_UNDEFINED_OBJECT),
                    errmsg("transaction \"%s\" is not in doubt", gtid)));
  }
  rdmacc_check("could not decide a transaction in doubt", nullptr);
  for (int i = 0; i < kResolveLooks; i++) {
    if (!is_listed(wanted)) break;
    CHECK_FOR_INTERRUPTS();
    pg_usleep(kResolveLookUs);
  }
  PG_RETURN_VOID();
}
