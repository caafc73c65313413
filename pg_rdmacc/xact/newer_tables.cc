#include "pg_rdmacc/xact/newer_tables.h"

#include "pg_rdmacc/server/error.h"
#include "pg_rdmacc/server/standby.h"
#include "pg_rdmacc/xact/current_reads.h"
#include "pg_rdmacc/xact/exported_snapshot.h"
#include "pg_rdmacc/xact/pump.h"

extern "C" {
#include "access/htup_details.h"
#include "access/parallel.h"
#include "access/transam.h"
#include "access/xact.h"
#include "storage/procarray.h"
#include "utils/snapmgr.h"
#include "utils/syscache.h"
}

namespace {

/* What PostgreSQL had committed when the transaction began: no later than the time as of which it
 * reads. Taken under protocols that read so; without it, as where a session joins others' protocol
 * for the first time, what is certainly older is told by PostgreSQL's own horizon. */
SnapshotData beginning = {};
bool noted;
bool joins_such; /* the protocol that the session has joined last has a time of its own */

/* May a transaction be ordered before others that have ended when it meets what they have made? */
bool has_time(int protocol) {
  return bridge_reads_as_of_time(protocol) || bridge_finds_its_time(protocol);
}

bool is_visible(TransactionId xid) {
  if (TransactionIdIsCurrentTransactionId(xid)) return true;
  return noted ? !XidInMVCCSnapshot(xid, &beginning) : TransactionIdPrecedes(xid, TransactionXmin);
}

/* The transaction that wrote the relation's entry in the catalog: its last change of nearly any
 * kind. */
bool entry_is_older(Oid relation) {
  HeapTuple entry = SearchSysCache1(RELOID, ObjectIdGetDatum(relation));
  if (!HeapTupleIsValid(entry)) return true;
  const bool older = HeapTupleHeaderXminFrozen(entry->t_data) ||
                     is_visible(HeapTupleHeaderGetRawXmin(entry->t_data));
  ReleaseSysCache(entry);
  return older;
}

}  // namespace

void rdmacc_note_begin(int protocol) {
  noted = has_time(protocol) || (protocol < 0 && joins_such);
  if (noted) GetSnapshotData(&beginning);
}

void rdmacc_check_age(Oid relation, const char* name, uint64 made_us) {
  if (IsParallelWorker()) return; /* its leader has asked */
  const int protocol = bridge_txn_protocol();
  if (protocol >= 0) joins_such = has_time(protocol);
  const bool standby = rdmacc_on_standby();
  const bool counts = standby || has_time(protocol);
  if (!counts || rdmacc_reads_as_stored()) return;
  /* Its rows' keys change with the primary key, of which its own entry does not tell. */
  const bool older =
      entry_is_older(relation) && !(bridge_txn_touched() && made_us > bridge_txn_began_us());
  if (older && !(standby && rdmacc_is_behind())) return;
  if (standby) rdmacc_await_tables();
  if (!bridge_txn_touched()) return; /* its time is still to come */
  /* What has read nothing old comes behind what it finds. */
  if (bridge_finds_its_time(protocol)) return rdmacc_need_current_reads();
  bridge_start_lose();
  rdmacc_pump();
  rdmacc_check("could not use what is newer than the transaction", name);
}

void rdmacc_raise_not_applied(const char* name) {
  ereport(ERROR, (errcode(ERRCODE_CANNOT_CONNECT_NOW),
                  errmsg("the rdmacc nodes of this standby do not have \"%s\" yet", name),
                  errhint("See rdmacc.stat_durability, and the server log.")));
}
