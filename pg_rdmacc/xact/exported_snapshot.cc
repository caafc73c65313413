#include "pg_rdmacc/xact/exported_snapshot.h"

#include "pg_rdmacc/server/attach.h"
#include "pg_rdmacc/server/error.h"
#include "pg_rdmacc/server/fabric.h"
#include "pg_rdmacc/server/shared_piece.h"
#include "pg_rdmacc/server/shmem.h"
#include "pg_rdmacc/xact/pump.h"

extern "C" {
#include "access/xact.h"
#include "access/xlog.h"
#include "catalog/pg_am.h"
#include "catalog/pg_authid.h"
#include "miscadmin.h"
#include "storage/backendid.h"
#include "storage/lock.h"
#include "storage/proc.h"
#include "storage/shmem.h"
#include "utils/acl.h"
#include "utils/resowner.h"
}

namespace {

constexpr long kLookUs = 50'000;
/* For how long a session that has gone may be dealt with; see the resolver's own times. */
constexpr int64 kResolvedUsMax = 20'000'000;
constexpr int64 kResolvedRemoteUsMax = 120'000'000;

/* By BackendId: the local id of the transaction that keeps writers out; 0: none does. */
pg_atomic_uint32* exporters;

/* Of this transaction. */
struct Shared {
  bool imported; /* and PostgreSQL's rows are as another transaction saw them */
  bool exported;
  bool may_write; /* the writers' lock is held */
  /* The transaction that keeps writers out for this one, or is this one; InvalidBackendId: none. */
  BackendId backend;
  LocalTransactionId transaction;
};
Shared shared = {false, false, false, InvalidBackendId, InvalidLocalTransactionId};

Size exporters_bytes(void) {
  return mul_size(sizeof(pg_atomic_uint32), add_size(static_cast<Size>(MaxBackends), 1));
}

void attach_exporters(void* memory, bool found) {
  exporters = static_cast<pg_atomic_uint32*>(memory);
  for (int i = 0; i <= MaxBackends && !found; i++) pg_atomic_init_u32(&exporters[i], 0);
}

const RdmaccSharedPiece piece = {"rdmacc exported snapshots", nullptr, exporters_bytes,
                                 attach_exporters};

/* Of the database, until the transaction has ended, whatever becomes of its subtransactions. As a
 * lock on a relation: writers then have it by PostgreSQL's fast path, without the shared table of
 * locks. Nothing else asks for a strong lock on pg_am but VACUUM and the like. */
void take_writers_lock(LOCKMODE mode) {
  LOCKTAG tag;
  SET_LOCKTAG_RELATION(tag, MyDatabaseId, AccessMethodRelationId);
  const ResourceOwner owner = CurrentResourceOwner;
  CurrentResourceOwner = TopTransactionResourceOwner;
  LockAcquire(&tag, mode, false, false);
  CurrentResourceOwner = owner;
}

/* A role that has no business with the whole database keeps no other from writing. */
bool role_may_keep_writers_out(void) {
  return has_privs_of_role(GetUserId(), ROLE_PG_READ_ALL_DATA) ||
         pg_database_ownercheck(MyDatabaseId, GetUserId());
}

bool exporter_lives(void) {
  CHECK(exporters != nullptr && shared.backend > 0 && shared.backend <= MaxBackends);
  pg_memory_barrier(); /* after what was read (S2) */
  return pg_atomic_read_u32(&exporters[shared.backend]) == shared.transaction;
}

/* Are there transactions of sessions that have gone which nodes may still have to install? */
bool is_unresolved(void) {
  if (pg_atomic_read_u32(&rdmacc_control->doubts) != 0) return true;
  bridge_start_in_doubt();
  rdmacc_pump();
  rdmacc_check("could not ask for transactions in doubt", nullptr);
  const BridgeInDoubt* found = nullptr;
  uint64_t unresolved = 0;
  const size_t count = bridge_in_doubt(&found, &unresolved);
  bool ours = false; /* other servers have their own tables */
  for (size_t i = 0; i < count; i++) ours |= found[i].system_id == GetSystemIdentifier();
  return ours || unresolved > 0;
}

void await_resolution(void) {
  const int64 us_max = rdmacc_nodes_are_remote() ? kResolvedRemoteUsMax : kResolvedUsMax;
  const int64 since_us = rdmacc_now_us();
  while (is_unresolved()) {
    CHECK_FOR_INTERRUPTS();
    if (rdmacc_now_us() - since_us > us_max) {
      ereport(ERROR, (errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
                      errmsg("cannot read rdmacc tables under an exported snapshot now"),
                      errdetail("Transactions of sessions that have ended are not resolved yet."),
                      errhint("See rdmacc.in_doubt, and try again later.")));
    }
    pg_usleep(kLookUs);
  }
}

[[noreturn]] void refuse_snapshot(void) {
  if (RecoveryInProgress()) {
    ereport(ERROR, (errcode(ERRCODE_FEATURE_NOT_SUPPORTED),
                    errmsg("rdmacc tables cannot be read under a shared snapshot on a standby"),
                    errhint("Use one session, as pg_dump without --jobs does.")));
  }
  ereport(ERROR,
          (errcode(ERRCODE_FEATURE_NOT_SUPPORTED),
           errmsg("rdmacc tables cannot be read under this snapshot"),
           errdetail("The transaction that exported it lets others write rdmacc tables, so that "
                     "their rows would be those of another moment."),
           errhint("Export it in a transaction that is READ ONLY, and REPEATABLE READ or "
                   "SERIALIZABLE, as a member of pg_read_all_data or the database's owner.")));
}

}  // namespace

void rdmacc_exported_snapshot_init(void) {
  CHECK(exporters == nullptr);
  rdmacc_add_shared_piece(&piece);
}

void rdmacc_snapshot_is_exported(void) {
  if (exporters == nullptr || shared.exported || shared.imported || shared.may_write) return;
  if (GetCurrentTransactionNestLevel() > 1 || RecoveryInProgress()) return;
  if (!XactReadOnly || !IsolationUsesXactSnapshot() || !role_may_keep_writers_out()) return;
  take_writers_lock(ShareLock);
  CHECK(MyBackendId > 0 && MyBackendId <= MaxBackends);
  pg_memory_barrier();
  pg_atomic_write_u32(&exporters[MyBackendId], MyProc->lxid);
  shared.exported = true;
  /* What the transaction has read by its protocol until now it goes on to read so. */
  if (bridge_txn_active()) return;
  shared.backend = MyBackendId;
  shared.transaction = MyProc->lxid;
}

void rdmacc_snapshot_is_imported(const char* name) {
  shared.imported = true;
  unsigned int backend = 0;
  unsigned int transaction = 0;
  if (exporters == nullptr || sscanf(name, "%X-%X-", &backend, &transaction) != 2) return;
  if (backend == 0 || backend > static_cast<unsigned int>(MaxBackends) || transaction == 0) return;
  shared.backend = static_cast<BackendId>(backend);
  shared.transaction = transaction;
  if (!exporter_lives()) shared.backend = InvalidBackendId;
}

void rdmacc_await_leave_to_write(void) {
  if (shared.may_write) return;
  if (shared.imported || shared.exported) {
    ereport(ERROR, (errcode(ERRCODE_READ_ONLY_SQL_TRANSACTION),
                    errmsg("cannot write rdmacc tables in a transaction that shares a snapshot"),
                    errhint("Use a transaction without SET TRANSACTION SNAPSHOT.")));
  }
  take_writers_lock(RowExclusiveLock);
  shared.may_write = true;
}

bool rdmacc_reads_as_stored(void) { return shared.backend != InvalidBackendId; }

void rdmacc_check_reads_by_key(void) {
  if (!rdmacc_reads_as_stored()) return;
  ereport(ERROR, (errcode(ERRCODE_FEATURE_NOT_SUPPORTED),
                  errmsg("rdmacc tables are read by scans alone under an exported snapshot"),
                  errdetail("The statement was planned before, with an index."),
                  errhint("DISCARD PLANS before the transaction begins.")));
}

void rdmacc_check_snapshot(void) {
  CHECK(!bridge_txn_active());
  if (shared.imported && !rdmacc_reads_as_stored()) refuse_snapshot();
  if (!rdmacc_reads_as_stored()) return;
  rdmacc_ensure_attached();
  await_resolution();
}

void rdmacc_check_exporter_lives(void) {
  CHECK(rdmacc_reads_as_stored());
  if (exporter_lives()) return;
  ereport(ERROR,
          (errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
           errmsg("the transaction that exported the snapshot has ended"),
           errdetail("Others may write rdmacc tables again."),
           errhint("Let the exporting transaction go on for as long as its snapshot is used.")));
}

void rdmacc_forget_snapshot(void) {
  if (shared.exported) {
    CHECK(exporters != nullptr && MyBackendId > 0);
    pg_atomic_write_u32(&exporters[MyBackendId], 0);
    pg_memory_barrier(); /* before the lock goes (S2) */
  }
  shared = {false, false, false, InvalidBackendId, InvalidLocalTransactionId};
}
