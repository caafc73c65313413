#include "pg_rdmacc/recovery/backup_watch.h"

#include "pg_rdmacc/recovery/status.h"

extern "C" {
#include "catalog/objectaccess.h"
#include "catalog/pg_proc.h"
#include "replication/walsender.h"
#include "replication/walsender_private.h"
#include "storage/ipc.h"
#include "utils/fmgroids.h"
}

namespace {

object_access_hook_type previous_hook;
bool exit_registered;
bool in_backup; /* this session's pg_backup_start() */

void leave_backup(int, Datum) {
  if (!in_backup) return;
  in_backup = false;
  pg_atomic_fetch_sub_u64(&rdmacc_durability_status->sql_backups, 1);
}

/* Before the function runs. One that fails counts until its session ends, or the next stop. */
void watch_functions(ObjectAccessType access, Oid catalog, Oid object, int part, void* argument) {
  if (previous_hook != nullptr) previous_hook(access, catalog, object, part, argument);
  if (access != OAT_FUNCTION_EXECUTE || catalog != ProcedureRelationId ||
      rdmacc_durability_status == nullptr) {
    return;
  }
  if (object == F_PG_BACKUP_STOP) leave_backup(0, 0);
  if (object != F_PG_BACKUP_START || in_backup) return;
  if (!exit_registered) before_shmem_exit(leave_backup, 0);
  exit_registered = in_backup = true;
  pg_atomic_fetch_add_u64(&rdmacc_durability_status->sql_backups, 1);
}

}  // namespace

void rdmacc_backup_watch_init(void) {
  CHECK(previous_hook == nullptr);
  previous_hook = object_access_hook;
  object_access_hook = watch_functions;
}

bool rdmacc_backup_runs(void) {
  if (pg_atomic_read_u64(&rdmacc_durability_status->sql_backups) > 0) return true;
  for (int i = 0; i < max_wal_senders; i++) {
    const WalSnd* sender = &WalSndCtl->walsnds[i];
    if (sender->pid != 0 && sender->state == WALSNDSTATE_BACKUP) return true;
  }
  return false;
}
