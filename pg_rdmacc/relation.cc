#include "pg_rdmacc/relation.h"

#include "pg_rdmacc/attach.h"
#include "pg_rdmacc/ddl.h"
#include "pg_rdmacc/key_codec.h"
#include "pg_rdmacc/own_tables.h"
#include "pg_rdmacc/remote_nodes.h"
#include "pg_rdmacc/secondary_indexes.h"
#include "pg_rdmacc/shmem.h"
#include "pg_rdmacc/table_options.h"
#include "pg_rdmacc/tableam.h"
#include "pg_rdmacc/xact.h"

extern "C" {
#include "access/htup_details.h"
#include "access/tupmacs.h"
#include "access/xact.h"
#include "access/xlog.h"
#include "catalog/pg_type.h"
#include "commands/defrem.h"
#include "common/hashfn.h"
#include "miscadmin.h"
#include "pgstat.h"
#include "storage/proc.h"
#include "utils/lsyscache.h"
#include "utils/memutils.h"
#include "utils/syscache.h"
#include "utils/timestamp.h"
}

namespace {

constexpr int32 kRecordBytesMin = 32;
constexpr int32 kRecordBytesMax = 512;
constexpr int32 kRecordHeaderBytes = 4;
constexpr int32 kRecordAlignment = 8;
constexpr int32 kHiddenKeyBytes = 16;
constexpr int32 kRowHeaderBytes = 26; /* stamp, tuple header, time */
constexpr uint32 kIndexHistory = 3;

/* Hidden row ids: 64 random bits of this backend, then a counter that starts at the time of day.
 * No other backend, now or after a restart, has both. */
uint64 hidden_prefix;
uint64 hidden_counter;

void append_hidden_key(StringInfo key) {
  if (hidden_counter == 0) {
    if (!pg_strong_random(&hidden_prefix, sizeof(hidden_prefix))) {
      ereport(ERROR, (errcode(ERRCODE_INTERNAL_ERROR), errmsg("could not get random bytes")));
    }
    hidden_counter = static_cast<uint64>(GetCurrentTimestamp());
  }
  hidden_counter++;
  appendBinaryStringInfo(key, reinterpret_cast<const char*>(&hidden_prefix), sizeof(hidden_prefix));
  appendBinaryStringInfo(key, reinterpret_cast<const char*>(&hidden_counter),
                         sizeof(hidden_counter));
}

uint32 layout_number(const RdmaccKeyLayout* layout) {
  uint32 number = 0;
  for (int i = 0; i < layout->column_count; i++) {
    const RdmaccKeyColumn* column = &layout->columns[i];
    const RdmaccKeyKind kind = rdmacc_key_kind(column->type);
    const uint32 parts[] = {static_cast<uint32>(column->attno), static_cast<uint32>(kind),
                            kind == RDMACC_KEY_HASH ? column->type : 0};
    number = hash_combine(number,
                          hash_bytes(reinterpret_cast<const unsigned char*>(parts), sizeof(parts)));
  }
  if (layout->place_columns > 0) {
    number = hash_combine(number, static_cast<uint32>(layout->place_columns));
  }
  return number == 0 ? 1 : number;
}

int32 estimated_record_bytes(Relation relation, const RdmaccKeyLayout* layout) {
  int32 bytes = kRecordHeaderBytes + kRowHeaderBytes;
  if (layout->number == 0) bytes += kHiddenKeyBytes;
  TupleDesc descriptor = RelationGetDescr(relation);
  for (int i = 0; i < descriptor->natts; i++) {
    const FormData_pg_attribute* attribute = TupleDescAttr(descriptor, i);
    if (attribute->attisdropped) continue;
    int32 width = get_typavgwidth(attribute->atttypid, attribute->atttypmod);
    for (int k = 0; k < layout->column_count; k++) {
      if (layout->columns[k].attno == attribute->attnum) width += Max(width, 8);
    }
    bytes += width;
    if (bytes >= kRecordBytesMax) return kRecordBytesMax;
  }
  bytes = (bytes + kRecordAlignment - 1) / kRecordAlignment * kRecordAlignment;
  return Max(bytes, kRecordBytesMin);
}

/* Files of two tablespaces may have one number. */
uint64 tablespace_variant(Oid tablespace) {
  return OidIsValid(tablespace) ? hash_combine64(0, tablespace) : 0;
}

/* Rows that this session has added, or removed, and not reported yet. */
double pending_rows(Relation relation) {
  if (!pgstat_should_count_relation(relation)) return 0;
  const PgStat_TableStatus* status = relation->pgstat_info;
  auto rows = static_cast<double>(status->t_counts.t_delta_live_tuples);
  for (const PgStat_TableXactStatus* level = status->trans; level != nullptr;
       level = level->upper) {
    rows += static_cast<double>(level->tuples_inserted - level->tuples_deleted);
  }
  return rows;
}

/* What VACUUM or ANALYZE is about to report of a table. Until it has, in the same command, neither
 * this session nor PostgreSQL's statistics count those rows. */
struct Reported {
  Oid relation;
  LocalTransactionId transaction;
  CommandId command;
  double rows;
};

Reported reported;

}  // namespace

Oid rdmacc_access_method(void) { return get_table_am_oid(RDMACC_ACCESS_METHOD, true); }

bool rdmacc_is_ours(Relation relation) { return relation->rd_tableam == &rdmacc_routine; }

bool rdmacc_relation_is_ours(Oid relation) {
  const Oid access_method = rdmacc_access_method();
  if (!OidIsValid(access_method)) return false;
  HeapTuple tuple = SearchSysCache1(RELOID, ObjectIdGetDatum(relation));
  if (!HeapTupleIsValid(tuple)) return false;
  const auto* form = reinterpret_cast<Form_pg_class>(GETSTRUCT(tuple));
  const bool ours = form->relam == access_method;
  ReleaseSysCache(tuple);
  return ours;
}

Oid rdmacc_key_column_type(Oid operator_class_type, Oid attribute_type) {
  return IsPolymorphicType(operator_class_type) || operator_class_type == RECORDOID
             ? getBaseType(attribute_type)
             : operator_class_type;
}

Oid rdmacc_index_column_type(Relation relation, Relation index, int number) {
  const AttrNumber attno = index->rd_index->indkey.values[number];
  return attno != 0 ? TupleDescAttr(RelationGetDescr(relation), attno - 1)->atttypid
                    : TupleDescAttr(RelationGetDescr(index), number)->atttypid;
}

void rdmacc_index_layout(Relation relation, Relation index, RdmaccKeyLayout* layout) {
  layout->index = RelationGetRelid(index);
  layout->column_count = IndexRelationGetNumberOfKeyAttributes(index);
  for (int i = 0; i < layout->column_count; i++) {
    RdmaccKeyColumn* column = &layout->columns[i];
    column->attno = index->rd_index->indkey.values[i];
    column->collation = index->rd_indcollation[i];
    column->type = rdmacc_key_column_type(index->rd_opcintype[i],
                                          rdmacc_index_column_type(relation, index, i));
  }
  RdmaccTableOptions options;
  rdmacc_table_options(relation, &options);
  layout->place_columns = Min(options.partition_by, layout->column_count);
  layout->number = layout_number(layout);
}

void rdmacc_catalog_layout(Relation relation, RdmaccKeyLayout* layout) {
  memset(layout, 0, sizeof(*layout));
  if (!relation->rd_rel->relhasindex) return;
  list_free(RelationGetIndexList(relation)); /* makes rd_pkindex valid */
  if (!OidIsValid(relation->rd_pkindex)) return;
  Relation index = RelationIdGetRelation(relation->rd_pkindex);
  if (!RelationIsValid(index)) {
    elog(ERROR, "could not open the primary key of \"%s\"", RelationGetRelationName(relation));
  }
  rdmacc_index_layout(relation, index, layout);
  RelationClose(index);
}

void rdmacc_index_spec(Oid tablespace, Oid relfilenode, BridgeTableSpec* spec) {
  spec->system_id = rdmacc_system_name(tablespace_variant(tablespace));
  spec->database = MyDatabaseId;
  spec->relfilenode = relfilenode;
  spec->record_size = kRecordBytesMax;
  spec->history = kIndexHistory;
  spec->placed = false;
}

void rdmacc_table_spec(Relation relation, Oid relfilenode, const RdmaccKeyLayout* layout,
                       BridgeTableSpec* spec) {
  uint64 variant = tablespace_variant(relation->rd_rel->reltablespace);
  if (layout->number != 0) variant = hash_combine64(variant, layout->number);
  spec->system_id = rdmacc_system_name(variant);
  spec->database = MyDatabaseId;
  spec->relfilenode = relfilenode;
  RdmaccTableOptions options;
  rdmacc_table_options(relation, &options);
  spec->record_size = static_cast<uint32>(
      options.record_size > 0 ? options.record_size : estimated_record_bytes(relation, layout));
  spec->history = static_cast<uint32>(options.history);
  spec->placed = layout->place_columns > 0;
}

uint32 rdmacc_committed_table(Relation relation, const RdmaccKeyLayout* layout) {
  BridgeTableSpec spec;
  rdmacc_table_spec(relation, relation->rd_node.relNode, layout, &spec);
  const uint32 found = rdmacc_find_engine_table(&spec);
  if (found != RDMACC_NO_TABLE) return found;
  if (!rdmacc_remote_rows_are_gone()) {
    ereport(ERROR, (errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
                    errmsg("the rdmacc nodes do not have the rows of table \"%s\"",
                           RelationGetRelationName(relation)),
                    errhint("TRUNCATE the table to use it again.")));
  }
  rdmacc_create_lost_indexes(relation);
  return rdmacc_create_lost_engine_table(&spec);
}

RdmaccTable* rdmacc_table(Relation relation) {
  rdmacc_enter();
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
  rdmacc_settle_layout(relation);
  return rdmacc_table(relation);
}

void rdmacc_append_key_column(const RdmaccKeyLayout* layout, int column, Oid type, Datum value,
                              StringInfo key) {
  const bool placed = layout->place_columns > 0;
  if (placed && column == 0) appendStringInfoSpaces(key, BRIDGE_PLACE_LENGTH_BYTES);
  rdmacc_key_append(key, type, layout->columns[column].collation, value);
  if (!placed || column + 1 != layout->place_columns) return;
  const int length = key->len - BRIDGE_PLACE_LENGTH_BYTES;
  key->data[0] = static_cast<char>(length);
  key->data[1] = static_cast<char>(length >> 8);
}

void rdmacc_table_key(const RdmaccKeyLayout* layout, TupleTableSlot* slot, StringInfo key) {
  if (layout->number == 0) {
    append_hidden_key(key);
    return;
  }
  for (int i = 0; i < layout->column_count; i++) {
    const RdmaccKeyColumn* column = &layout->columns[i];
    bool is_null = false;
    const Datum value = slot_getattr(slot, column->attno, &is_null);
    if (is_null) {
      ereport(ERROR, (errcode(ERRCODE_NOT_NULL_VIOLATION),
                      errmsg("null value in primary key column number %d", column->attno)));
    }
    rdmacc_append_key_column(layout, i, column->type, value, key);
  }
  rdmacc_key_check_size(key);
}

double rdmacc_estimated_rows(Relation relation) {
  if (reported.relation == RelationGetRelid(relation) && reported.transaction == MyProc->lxid &&
      reported.command == GetCurrentCommandId(false)) {
    return reported.rows;
  }
  const PgStat_StatTabEntry* statistics = pgstat_fetch_stat_tabentry(RelationGetRelid(relation));
  const double pending = pending_rows(relation);
  /* After a crash PostgreSQL's statistics begin anew. */
  const bool known =
      statistics != nullptr && (statistics->n_live_tuples > 0 || statistics->tuples_inserted > 0 ||
                                statistics->tuples_deleted > 0 || statistics->vacuum_count > 0 ||
                                statistics->analyze_count > 0);
  if (!known) return Max(Max(relation->rd_rel->reltuples, pending), 0.0);
  return Max(static_cast<double>(statistics->n_live_tuples) + pending, 0.0);
}

void rdmacc_rows_reported(Relation relation) {
  const double rows = rdmacc_estimated_rows(relation);
  if (!pgstat_should_count_relation(relation)) return;
  reported = {RelationGetRelid(relation), MyProc->lxid, GetCurrentCommandId(false), rows};
  relation->pgstat_info->t_counts.t_delta_live_tuples = 0;
}
