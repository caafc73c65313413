#include "pg_rdmacc/server/standstill.h"

#include "pg_rdmacc/server/shmem.h"

extern "C" {
#include "storage/proc.h"
#include "storage/procarray.h"
#include "utils/wait_event.h"
}

namespace {

/* Of a wait event, as wait_event.c takes it apart; of a lock the second is its kind. */
constexpr uint32 kEventClass = 0xFF000000, kEventNumber = 0x0000FFFF;

}  // namespace

using rdmacc::Standstill;

/* A process that has just ended, or its successor in the same place, is as good as any other: what
 * is asked for is a reason to wait no longer. */
Standstill rdmacc_standstill_of(uint16 worker) {
  CHECK(MyProc != nullptr);
  const int pid = rdmacc_worker_pid(worker);
  const PGPROC* process = pid != 0 ? BackendPidGetProc(pid) : nullptr;
  if (process == nullptr) return Standstill::kNone;
  const uint32 event = *static_cast<const volatile uint32*>(&process->wait_event_info);
  switch (event & kEventClass) {
    case PG_WAIT_LOCK:
      /* The holder of a row is waited for so, which gets on, or is said to stand still itself. */
      return (event & kEventNumber) != LOCKTAG_VIRTUALTRANSACTION ? Standstill::kForLock
                                                                  : Standstill::kNone;
    case PG_WAIT_CLIENT:
      return Standstill::kForClient;
    default:
      return Standstill::kNone;
  }
}
