#include "pg_rdmacc/workload/native_table.h"

#include "pg_rdmacc/index/index_write.h"
#include "pg_rdmacc/index/shadow_index.h"
#include "pg_rdmacc/xact/exported_snapshot.h"
#include "pg_rdmacc/xact/xact.h"

extern "C" {
#include "access/table.h"
#include "access/xact.h"
#include "catalog/namespace.h"
#include "miscadmin.h"
#include "nodes/makefuncs.h"
#include "storage/lmgr.h"
#include "tcop/utility.h"
#include "utils/acl.h"
#include "utils/memutils.h"
}

namespace {

bool is_known(const RdmaccNativeTable* native) {
  return native->epoch != 0 && native->epoch == rdmacc_index_epoch() &&
         OverrideSearchPathMatchesCurrent(native->path);
}

void look_up(RdmaccNativeTable* native, LOCKMODE mode) {
  const uint64 epoch = rdmacc_index_epoch();
  native->epoch = 0;
  RangeVar* name = makeRangeVar(nullptr, pstrdup(native->shape->table), -1);
  native->relation = RangeVarGetRelid(name, mode, true);
  if (!OidIsValid(native->relation)) {
    ereport(ERROR, (errcode(ERRCODE_UNDEFINED_TABLE),
                    errmsg("relation \"%s\" does not exist", native->shape->table),
                    errhint("CALL rdmacc.%s() makes the workload's tables in the first schema of "
                            "search_path.",
                            native->shape->procedure)));
  }
  Relation relation = table_open(native->relation, NoLock);
  rdmacc_native_check_shape(native->shape, relation);
  table_close(relation, NoLock);
  if (native->path != nullptr) {
    list_free(native->path->schemas);
    pfree(native->path);
    native->path = nullptr;
  }
  native->path = GetOverrideSearchPath(TopMemoryContext);
  native->epoch = epoch; /* changes that came meanwhile are looked at by the next call */
}

void check_rights(Relation relation, AclMode wanted) {
  const Oid oid = RelationGetRelid(relation);
  if (pg_class_aclmask(oid, GetUserId(), wanted, ACLMASK_ALL) == wanted) return;
  aclcheck_error(ACLCHECK_NO_PRIV, OBJECT_TABLE, RelationGetRelationName(relation));
}

}  // namespace

RdmaccNativeCall rdmacc_native_call(AclMode rights) {
  const bool writes = rights != ACL_SELECT;
  if (writes) {
    PreventCommandIfReadOnly("a transaction of a workload");
    rdmacc_await_leave_to_write();
  }
  CommandCounterIncrement();
  return {.rights = rights, .command = GetCurrentCommandId(writes)};
}

RdmaccNativeCall rdmacc_native_call_for(const RdmaccNativeCall* call, AclMode rights) {
  return {.rights = rights, .command = call->command};
}

void rdmacc_native_open(RdmaccNativeTable* native, const RdmaccNativeCall* call,
                        RdmaccNativeAccess* access) {
  const bool writes = call->rights != ACL_SELECT;
  const LOCKMODE mode = writes ? RowExclusiveLock : AccessShareLock;
  if (is_known(native)) LockRelationOid(native->relation, mode);
  if (!is_known(native)) look_up(native, mode);
  access->relation = table_open(native->relation, NoLock);
  check_rights(access->relation, call->rights);
  if (writes) rdmacc_override_indexes(access->relation, rdmacc_table_to_write(access->relation));
  access->table = *rdmacc_table(access->relation);
  access->command = call->command;
  access->nullable_attribute = native->shape->nullable_attribute;
  CHECK((access->table.key.number != 0) == (native->shape->key_columns > 0));
}

void rdmacc_native_close(RdmaccNativeAccess* access) { table_close(access->relation, NoLock); }
