#include "pg_rdmacc/ddl/taken_away.h"

#include "pg_rdmacc/relation/engine_table.h"
#include "pg_rdmacc/relation/pending_tables.h"
#include "pg_rdmacc/row/scan_rows.h"
#include "pg_rdmacc/server/error.h"
#include "pg_rdmacc/xact/current_reads.h"
#include "pg_rdmacc/xact/pump.h"

extern "C" {
#include "access/genam.h"
#include "access/xact.h"
#include "utils/lsyscache.h"
}

namespace {

void lose_if_used(uint32 id, const char* name) {
  if (id == RDMACC_NO_TABLE) return;
  bridge_start_lose_if_used(id);
  rdmacc_pump();
  rdmacc_check("could not take away", name);
}

/* What an ALTER TABLE copies are the newest rows, and they stay. */
bool is_rewritten(Relation relation) {
  const Oid of = relation->rd_rel->relrewrite;
  return OidIsValid(of) && get_rel_relkind(of) != RELKIND_MATVIEW;
}

}  // namespace

void rdmacc_check_unused(Relation relation, uint32 id) {
  const bool own = relation->rd_createSubid != InvalidSubTransactionId ||
                   relation->rd_newRelfilenodeSubid != InvalidSubTransactionId ||
                   rdmacc_created_by_transaction(id);
  if (own || is_rewritten(relation) || !bridge_txn_touched()) return;
  if (!bridge_reads_as_of_time(bridge_txn_protocol())) return rdmacc_need_current_reads();
  rdmacc_rows_settle(relation); /* splits leave stamps, too */
  const char* name = RelationGetRelationName(relation);
  lose_if_used(id, name);
  ListCell* cell;
  foreach (cell, RelationGetIndexList(relation)) {
    Relation index = index_open(lfirst_oid(cell), NoLock);
    lose_if_used(rdmacc_find_index_file(index->rd_rel->reltablespace, index->rd_node.relNode),
                 name);
    index_close(index, NoLock);
  }
}
