/* SQL functions behind rdmacc.stat_durability, and rdmacc.checkpoint(). */
#include "pg_rdmacc/recovery/status.h"
#include "pg_rdmacc/sql/result_rows.h"

extern "C" {
#include "access/xlog.h"
#include "access/xlogrecovery.h"
#include "utils/builtins.h"
#include "utils/pg_lsn.h"
#include "utils/timestamp.h"

PGDLLEXPORT Datum rdmacc_stat_durability(PG_FUNCTION_ARGS);
PGDLLEXPORT Datum rdmacc_sql_checkpoint(PG_FUNCTION_ARGS);
PG_FUNCTION_INFO_V1(rdmacc_stat_durability);
PG_FUNCTION_INFO_V1(rdmacc_sql_checkpoint);
}

namespace {

constexpr size_t kColumns = 18;
constexpr long kPollUs = 10'000;

uint64 word(pg_atomic_uint64* value) { return pg_atomic_read_u64(value); }

Datum seconds(uint64 us) { return Float8GetDatum(static_cast<double>(us) / 1e6); }

const char* state(void) {
  switch (pg_atomic_read_u32(&rdmacc_control->recovering)) {
    case RDMACC_RECOVERING:
      return "recovering";
    case RDMACC_FOLLOWING:
      return RecoveryInProgress() ? "following" : "recovering";
    case RDMACC_RECOVERY_FAILED:
      return "failed";
    default:
      break;
  }
  return rdmacc_cluster_serving() ? "serving" : "starting";
}

/* The columns in the order of the install script. */
void fill(RdmaccDurabilityStatus* status, Datum* values, bool* nulls) {
  const bool standby = RecoveryInProgress();
  const XLogRecPtr now = standby ? GetXLogReplayRecPtr(nullptr) : GetXLogInsertRecPtr();
  const XLogRecPtr replay_end = standby ? now : word(&status->replay_end);
  XLogRecPtr replayed_until = word(&status->replayed_until);
  const bool follows = pg_atomic_read_u32(&rdmacc_control->recovering) == RDMACC_FOLLOWING;
  if (standby && follows) replayed_until = word(&rdmacc_control->applied_until);
  const XLogRecPtr redo = word(&status->redo);
  const XLogRecPtr kept_from = word(&status->kept_from);
  const auto behind = [now](XLogRecPtr from) {
    return rdmacc_int8_datum(from != InvalidXLogRecPtr && now > from ? now - from : 0);
  };
  const bool made = word(&status->made_at) != 0;
  const Datum row[kColumns] = {CStringGetTextDatum(state()),
                               LSNGetDatum(redo),
                               behind(redo),
                               behind(kept_from),
                               TimestampTzGetDatum(static_cast<int64>(word(&status->made_at))),
                               seconds(word(&status->duration_us)),
                               rdmacc_int8_datum(word(&status->tables)),
                               rdmacc_int8_datum(word(&status->rows)),
                               rdmacc_int8_datum(word(&status->bytes)),
                               rdmacc_int8_datum(word(&status->written_bytes)),
                               rdmacc_int8_datum(word(&status->checkpoints)),
                               rdmacc_int8_datum(word(&status->failures)),
                               rdmacc_int8_datum(word(&status->loaded_rows)),
                               rdmacc_int8_datum(word(&status->replayed_writes)),
                               LSNGetDatum(replayed_until),
                               LSNGetDatum(replay_end),
                               seconds(word(&status->recovery_us)),
                               BoolGetDatum(word(&status->sql_backups) > 0)};
  memcpy(values, row, sizeof(row));
  nulls[1] = nulls[2] = nulls[4] = nulls[5] = !made;
  nulls[3] = kept_from == InvalidXLogRecPtr;
  nulls[14] = replayed_until == InvalidXLogRecPtr;
  nulls[15] = replay_end == InvalidXLogRecPtr;
  nulls[16] = word(&status->recovery_us) == 0;
}

}  // namespace

Datum rdmacc_stat_durability(PG_FUNCTION_ARGS) {
  ReturnSetInfo* result = rdmacc_begin_rows(fcinfo);
  if (rdmacc_durability_status == nullptr) return static_cast<Datum>(0);
  Datum values[kColumns] = {};
  bool nulls[kColumns] = {};
  fill(rdmacc_durability_status, values, nulls);
  rdmacc_put_row(result, values, nulls);
  return static_cast<Datum>(0);
}

Datum rdmacc_sql_checkpoint(PG_FUNCTION_ARGS) {
  rdmacc_require_preload();
  RdmaccDurabilityStatus* status = rdmacc_durability_status;
  if (status == nullptr) {
    ereport(ERROR,
            (errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
             errmsg("rows of rdmacc tables are not on disk"), errhint("See rdmacc.durability.")));
  }
  const uint64 failures = word(&status->failures);
  const uint64 wanted = pg_atomic_add_fetch_u64(&status->requested, 1);
  while (word(&status->answered) < wanted) {
    CHECK_FOR_INTERRUPTS();
    pg_usleep(kPollUs);
  }
  if (word(&status->failures) != failures) {
    ereport(ERROR, (errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
                    errmsg("could not make a checkpoint of rdmacc rows"),
                    errhint("The server log says why; it is tried again.")));
  }
  PG_RETURN_LSN(word(&status->redo));
}
