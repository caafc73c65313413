#include "pg_rdmacc/ddl/exclusive_table.h"

#include "pg_rdmacc/ddl/taken_away.h"
#include "pg_rdmacc/relation/access_method.h"
#include "pg_rdmacc/relation/engine_table.h"
#include "pg_rdmacc/row/scan_rows.h"

extern "C" {
#include "access/table.h"
#include "access/xact.h"
#include "access/xlog.h"
#include "catalog/index.h"
#include "catalog/pg_class.h"
#include "miscadmin.h"
#include "pgstat.h"
#include "replication/walsender.h"
#include "replication/walsender_private.h"
#include "storage/lmgr.h"
#include "utils/acl.h"
#include "utils/relcache.h"
}

namespace {

/* Where a hot standby replays the lock it waits for readers of the table, with all that follows,
 * and ends them after max_standby_streaming_delay. */
bool is_followed_by_standby(void) {
  for (int i = 0; i < max_wal_senders; i++) {
    const WalSnd* sender = &WalSndCtl->walsnds[i];
    if (sender->pid != 0) return true; /* a word: as good without its lock */
  }
  return false;
}

bool may_have_new_file(Relation relation, RdmaccMayBeginAnew may, void* context) {
  /* A cursor that the session has left open is none of this transaction, and has read its rows. */
  if (relation->rd_refcnt != 1 || !rdmacc_may_have_alone(relation)) return false;
  CHECK(rdmacc_is_quiet(relation));
  return !rdmacc_is_read_by_others(relation, rdmacc_table(relation)->id) && may(relation, context);
}

void give_new_file(Oid id) {
  Relation relation = table_open(id, NoLock);
  RelationSetNewRelfilenode(relation, relation->rd_rel->relpersistence);
  pgstat_count_truncate(relation);
  table_close(relation, NoLock);
  ReindexParams params = {};
  reindex_relation(id, REINDEX_REL_PROCESS_TOAST, &params);
}

}  // namespace

bool rdmacc_may_have_tables_alone(void) {
  /* Readers that share their locks would not be seen. */
  const bool shares = rdmacc_lock_mode == static_cast<int>(rdmacc::LockMode::kShared);
  return !shares && !XactReadOnly && !RecoveryInProgress() && OidIsValid(rdmacc_access_method()) &&
         !is_followed_by_standby();
}

bool rdmacc_may_have_alone(Relation relation) {
  if (!rdmacc_is_ours(relation) || relation->rd_rel->relkind != RELKIND_RELATION) return false;
  /* The lock is one that LOCK TABLE would give to those that may TRUNCATE it. */
  return pg_class_aclcheck(RelationGetRelid(relation), GetUserId(), ACL_TRUNCATE) == ACLCHECK_OK;
}

bool rdmacc_begin_anew(Oid table, RdmaccMayBeginAnew may, void* context) {
  if (!ConditionalLockRelationOid(table, AccessExclusiveLock)) return false;
  Relation relation = table_open(table, NoLock);
  const bool begins = may_have_new_file(relation, may, context);
  table_close(relation, NoLock);
  if (begins) {
    give_new_file(table);
  } else {
    UnlockRelationOid(table, AccessExclusiveLock);
  }
  return begins;
}
