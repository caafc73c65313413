#include "pg_rdmacc/xact/gate_deadlock.h"

#include "pg_rdmacc/server/error.h"
#include "pg_rdmacc/server/shmem.h"
#include "pg_rdmacc/server/standby.h"
#include "pg_rdmacc/server/standstill.h"
#include "pg_rdmacc/xact/entry.h"

extern "C" {
#include "catalog/pg_type_d.h"
#include "miscadmin.h"
#include "nodes/pg_list.h"
#include "utils/array.h"
#include "utils/builtins.h"
#include "utils/memutils.h"
}

namespace {

/* Sessions of this server that this one waits for at the gate, and that wait for a lock. */
List* those_that_wait(void) {
  List* pids = NIL;
  const uint16_t* workers = nullptr;
  const size_t count = bridge_waited_for_at_gate(&workers);
  CHECK(count == 0 || workers != nullptr);
  for (size_t i = 0; i < count; i++) {
    if (rdmacc_standstill_of(workers[i]) != rdmacc::Standstill::kForLock) continue;
    const int pid = rdmacc_worker_pid(workers[i]);
    if (pid != 0) pids = list_append_unique_int(pids, pid);
  }
  return pids;
}

/* What any of them waits for, or any that it waits for, is this session's. */
bool wait_for_this_session(List* pids) {
  for (int i = 0; i < list_length(pids); i++) { /* it grows */
    const Datum found = DirectFunctionCall1(pg_blocking_pids, Int32GetDatum(list_nth_int(pids, i)));
    const ArrayType* blockers = DatumGetArrayTypeP(found);
    CHECK(ARR_ELEMTYPE(blockers) == INT4OID && !ARR_HASNULL(blockers));
    const auto* pid = reinterpret_cast<const int32*>(ARR_DATA_PTR(blockers));
    const int count = ArrayGetNItems(ARR_NDIM(blockers), ARR_DIMS(blockers));
    for (int j = 0; j < count; j++) {
      if (pid[j] == MyProcPid) return true;
      if (pid[j] != 0) pids = list_append_unique_int(pids, pid[j]);
    }
  }
  return false;
}

}  // namespace

void rdmacc_check_gate_deadlock(void) {
  MemoryContext workspace =
      AllocSetContextCreate(CurrentMemoryContext, "rdmacc gate deadlock", ALLOCSET_SMALL_SIZES);
  const MemoryContext previous = MemoryContextSwitchTo(workspace);
  const bool found = wait_for_this_session(those_that_wait());
  MemoryContextSwitchTo(previous);
  MemoryContextDelete(workspace);
  if (!found) return;
  rdmacc_note_conflict(Max(rdmacc_protocol_to_begin(rdmacc_on_standby()), 0));
  ereport(
      ERROR,
      (errcode(ERRCODE_T_R_DEADLOCK_DETECTED), errmsg("deadlock detected"),
       errdetail("This transaction waits for those of another protocol, of which one waits for a "
                 "lock that it holds."),
       errhint("See rdmacc.protocol, and the view rdmacc.gate_sessions.")));
}
