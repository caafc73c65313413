#include "pg_rdmacc/relation/engine_table.h"

#include "pg_rdmacc/relation/access_method.h"
#include "pg_rdmacc/relation/pending_tables.h"
#include "pg_rdmacc/relation/record_size.h"
#include "pg_rdmacc/relation/table_options.h"
#include "pg_rdmacc/server/attach.h"
#include "pg_rdmacc/server/remote_nodes.h"
#include "pg_rdmacc/server/standby.h"
#include "pg_rdmacc/xact/newer_tables.h"
#include "pg_rdmacc/xact/own_tables.h"
#include "pg_rdmacc/xact/xact.h"

extern "C" {
#include "common/hashfn.h"
#include "miscadmin.h"
#include "utils/memutils.h"
}

namespace {

constexpr uint32 kIndexHistory = 3;

const RdmaccTableHooks* hooks;

/* Files of two tablespaces may have one number. */
uint64 tablespace_variant(Oid tablespace) {
  return OidIsValid(tablespace) ? hash_combine64(0, tablespace) : 0;
}

}  // namespace

void rdmacc_set_table_hooks(const RdmaccTableHooks* table_hooks) {
  CHECK(hooks == nullptr && table_hooks != nullptr);
  hooks = table_hooks;
}

void rdmacc_index_spec(Oid tablespace, Oid relfilenode, rdmacc::TableSpec* spec) {
  CHECK(OidIsValid(MyDatabaseId) && OidIsValid(relfilenode));
  spec->system_id = rdmacc_system_name(tablespace_variant(tablespace));
  spec->database = MyDatabaseId;
  spec->relfilenode = relfilenode;
  spec->record_size = rdmacc::kRecordInlineMax;
  spec->history = kIndexHistory;
  spec->has_distribution_key = false;
}

void rdmacc_table_spec(Relation relation, Oid relfilenode, const RdmaccKeyLayout* layout,
                       rdmacc::TableSpec* spec) {
  rdmacc_rewritten_table_spec(relation, relation, relfilenode, layout, spec);
}

void rdmacc_rewritten_table_spec(Relation relation, Relation before, Oid relfilenode,
                                 const RdmaccKeyLayout* layout, rdmacc::TableSpec* spec) {
  CHECK(OidIsValid(MyDatabaseId) && OidIsValid(relfilenode));
  uint64 variant = tablespace_variant(relation->rd_rel->reltablespace);
  if (layout->number != 0) variant = hash_combine64(variant, layout->number);
  spec->system_id = rdmacc_system_name(variant);
  spec->database = MyDatabaseId;
  spec->relfilenode = relfilenode;
  RdmaccTableOptions options;
  rdmacc_table_options(before, &options);
  spec->history = static_cast<uint32>(options.history);
  spec->record_size = options.record_size > 0 ? static_cast<uint32>(options.record_size)
                                              : rdmacc_record_size(relation, layout, spec->history);
  spec->has_distribution_key = layout->distribution_columns > 0;
}

uint32 rdmacc_find_index_file(Oid tablespace, Oid relfilenode) {
  rdmacc::TableSpec spec;
  rdmacc_index_spec(tablespace == MyDatabaseTableSpace ? InvalidOid : tablespace, relfilenode,
                    &spec);
  return rdmacc_find_engine_table(&spec);
}

uint32 rdmacc_find_to_use(Relation relation, const rdmacc::TableSpec* spec) {
  uint64 made_us = 0;
  uint32 found = rdmacc_find_engine_table(spec, &made_us);
  if (found == RDMACC_NO_TABLE && rdmacc_on_standby()) {
    rdmacc_await_tables();
    found = rdmacc_find_engine_table(spec, &made_us);
  }
  if (found == RDMACC_NO_TABLE || rdmacc_created_by_transaction(found)) return found;
  rdmacc_check_age(RelationGetRelid(relation), RelationGetRelationName(relation), made_us);
  return found;
}

uint32 rdmacc_committed_table(Relation relation, const RdmaccKeyLayout* layout) {
  rdmacc::TableSpec spec;
  rdmacc_table_spec(relation, relation->rd_node.relNode, layout, &spec);
  const uint32 found = rdmacc_find_to_use(relation, &spec);
  if (found != RDMACC_NO_TABLE) return found;
  if (rdmacc_on_standby()) rdmacc_raise_not_applied(RelationGetRelationName(relation));
  if (!rdmacc_remote_rows_are_gone()) {
    ereport(ERROR, (errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
                    errmsg("the rdmacc nodes do not have the rows of table \"%s\"",
                           RelationGetRelationName(relation)),
                    errhint("TRUNCATE the table to use it again.")));
  }
  CHECK(hooks != nullptr);
  hooks->create_lost_indexes(relation);
  return rdmacc_create_lost_engine_table(&spec);
}

RdmaccTable* rdmacc_table(Relation relation) {
  rdmacc_enter();
  CHECK(rdmacc_is_ours(relation)); /* rd_amcache is the access method's */
  auto* cached = static_cast<RdmaccTable*>(relation->rd_amcache);
  if (cached != nullptr && cached->layout_epoch == rdmacc_layout_epoch() &&
      cached->attach_epoch == rdmacc_attach_epoch()) {
    if (cached->transaction != rdmacc_transaction_number()) {
      cached->transaction = rdmacc_transaction_number();
      rdmacc_note_seen(cached->relfilenode, cached->id);
    }
    return cached;
  }
  RdmaccTable table = {};
  table.layout_epoch = rdmacc_layout_epoch();
  table.attach_epoch = rdmacc_attach_epoch();
  table.transaction = rdmacc_transaction_number();
  table.relation = RelationGetRelid(relation);
  table.relfilenode = relation->rd_node.relNode;
  rdmacc_catalog_layout(relation, &table.key);
  if (!rdmacc_transaction_layout(relation, &table)) {
    table.id = rdmacc_committed_table(relation, &table.key);
  }
  rdmacc_note_seen(table.relfilenode, table.id);
  /* Finding the table may have served an invalidation, so look at the cache again. */
  if (relation->rd_amcache == nullptr) {
    relation->rd_amcache = MemoryContextAlloc(CacheMemoryContext, sizeof(RdmaccTable));
  }
  cached = static_cast<RdmaccTable*>(relation->rd_amcache);
  *cached = table;
  return cached;
}

RdmaccTable* rdmacc_table_to_write(Relation relation) {
  RdmaccTable* table = rdmacc_table(relation);
  if (!table->unsettled) return table;
  CHECK(hooks != nullptr);
  hooks->settle_layout(relation);
  return rdmacc_table(relation);
}
