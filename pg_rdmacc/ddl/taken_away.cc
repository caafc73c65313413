#include "pg_rdmacc/ddl/taken_away.h"

#include "pg_rdmacc/relation/engine_table.h"
#include "pg_rdmacc/relation/pending_tables.h"
#include "pg_rdmacc/row/scan_rows.h"
#include "pg_rdmacc/server/error.h"
#include "pg_rdmacc/xact/current_reads.h"
#include "pg_rdmacc/xact/pump.h"
#include "pg_rdmacc/xact/xact.h"

extern "C" {
#include "access/xact.h"
#include "utils/lsyscache.h"
#include "utils/relcache.h"
}

namespace {

void lose_if_used(uint32 id, const char* name) {
  if (id == RDMACC_NO_TABLE) return;
  bridge_start_lose_if_used(id);
  rdmacc_pump();
  rdmacc_check("could not take away", name);
}

/* The engine table of an index. */
uint32 file_of(Oid id) {
  Relation index = RelationIdGetRelation(id);
  if (!RelationIsValid(index)) return RDMACC_NO_TABLE;
  const uint32 file = rdmacc_find_index_file(index->rd_rel->reltablespace, index->rd_node.relNode);
  RelationClose(index);
  return file;
}

bool is_own(Relation relation, uint32 id) {
  return relation->rd_createSubid != InvalidSubTransactionId ||
         relation->rd_newRelfilenodeSubid != InvalidSubTransactionId ||
         rdmacc_created_by_transaction(id);
}

/* What an ALTER TABLE copies are the newest rows, and they stay. */
bool is_rewritten(Relation relation) {
  const Oid of = relation->rd_rel->relrewrite;
  return OidIsValid(of) && get_rel_relkind(of) != RELKIND_MATVIEW;
}

}  // namespace

void rdmacc_check_unused(Relation relation, uint32 id) {
  if (is_own(relation, id) || is_rewritten(relation) || !bridge_txn_touched()) return;
  if (!bridge_reads_as_of_time(bridge_txn_protocol())) return rdmacc_need_current_reads();
  rdmacc_rows_settle(relation); /* splits leave stamps, too */
  const char* name = RelationGetRelationName(relation);
  lose_if_used(id, name);
  ListCell* cell;
  foreach (cell, RelationGetIndexList(relation)) lose_if_used(file_of(lfirst_oid(cell)), name);
}

bool rdmacc_is_read_by_others(Relation relation, uint32 id) {
  CHECK(rdmacc_is_quiet(relation) && id != RDMACC_NO_TABLE);
  if (is_own(relation, id)) return false;
  List* indexes = RelationGetIndexList(relation);
  auto* ids = static_cast<uint32*>(palloc(sizeof(uint32) * (1 + list_length(indexes))));
  size_t count = 0;
  ids[count++] = id;
  ListCell* cell;
  foreach (cell, indexes) {
    const uint32 file = file_of(lfirst_oid(cell));
    if (file != RDMACC_NO_TABLE) ids[count++] = file;
  }
  rdmacc_enter();
  bool locked = false;
  bridge_start_locked_by_others(ids, count, &locked);
  rdmacc_pump();
  rdmacc_check("could not look for locks in", RelationGetRelationName(relation));
  pfree(ids);
  return locked;
}

void rdmacc_check_unread(Relation relation, uint32 id) {
  if (!rdmacc_is_read_by_others(relation, id)) return;
  BridgeError error = {};
  error.code = rdmacc::Code::kAborted;
  strlcpy(error.reason, "lock_held", sizeof(error.reason));
  const int protocol = Max(bridge_txn_protocol(), 0); /* it may not have begun */
  const Oid of = relation->rd_rel->relrewrite;        /* of what has taken the place of this */
  rdmacc_raise(&error, protocol, "could not take away",
               OidIsValid(of) ? get_rel_name(of) : RelationGetRelationName(relation));
}
