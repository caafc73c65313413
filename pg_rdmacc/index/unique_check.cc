#include "pg_rdmacc/index/unique_check.h"

#include "pg_rdmacc/index/index_row.h"
#include "pg_rdmacc/index/secondary_indexes.h"
#include "pg_rdmacc/relation/engine_table.h"
#include "pg_rdmacc/row/duplicate_key.h"
#include "pg_rdmacc/row/fetch.h"
#include "pg_rdmacc/row/slot.h"
#include "pg_rdmacc/server/error.h"
#include "pg_rdmacc/xact/running_query.h"
#include "pg_rdmacc/xact/savepoint.h"
#include "pg_rdmacc/xact/xact.h"

extern "C" {
#include "access/genam.h"
#include "access/xact.h"
#include "executor/executor.h"
#include "utils/memutils.h"
#include "utils/resowner.h"
#include "utils/typcache.h"
}

namespace {

/* Columns that two rows had for a moment. */
struct LaterCheck {
  Oid relation;
  Oid index;
  const QueryDesc* query; /* that wrote; NULL: at the end of the transaction */
  SubTransactionId subtransaction;
  BridgeBytes columns;
};

List* later;      /* of LaterCheck */
uint64 forgotten; /* so many were in lists before */
MemoryContext memory;

BridgeBytes copy_bytes(BridgeBytes bytes) {
  auto* copy = static_cast<char*>(palloc(Max(bytes.size, 1)));
  memcpy(copy, bytes.data, bytes.size);
  return {copy, bytes.size};
}

void fetch_row(Relation relation, BridgeBytes key, TupleTableSlot* slot) {
  BridgeRow row = {};
  rdmacc_enter();
  bridge_start_get(rdmacc_table(relation)->id, key, RDMACC_EVERY_COMMAND, &row);
  rdmacc_pump();
  rdmacc_check("could not read a row", RelationGetRelationName(relation));
  if (!row.found) {
    rdmacc_note_conflict(bridge_txn_protocol());
    ereport(ERROR, (errcode(ERRCODE_T_R_SERIALIZATION_FAILURE),
                    errmsg("could not serialize access due to a conflict with another transaction"),
                    errhint("The transaction might succeed if retried.")));
  }
  rdmacc_slot_store(slot, relation, &row, nullptr);
}

/* What an index has of a row. */
struct Values {
  Datum values[INDEX_MAX_KEYS];
  bool nulls[INDEX_MAX_KEYS];
};

bool columns_equal(const RdmaccIndex* index, const Values* one, const Values* other) {
  for (int i = 0; i < index->column_count; i++) {
    const RdmaccIndexColumn* column = &index->columns[i];
    if (one->nulls[i] || other->nulls[i]) {
      if (one->nulls[i] != other->nulls[i]) return false;
      continue;
    }
    TypeCacheEntry* entry = lookup_type_cache(column->type, TYPECACHE_EQ_OPR_FINFO);
    if (!DatumGetBool(FunctionCall2Coll(&entry->eq_opr_finfo, column->collation, one->values[i],
                                        other->values[i]))) {
      return false;
    }
  }
  return true;
}

[[noreturn]] void raise_violation(Relation relation, Relation index, const char* description,
                                  bool building) {
  if (building) {
    ereport(ERROR, (errcode(ERRCODE_UNIQUE_VIOLATION),
                    errmsg("could not create unique index \"%s\"", RelationGetRelationName(index)),
                    description != nullptr ? errdetail("Key %s is duplicated.", description)
                                           : errdetail("Duplicate keys exist."),
                    errtableconstraint(relation, RelationGetRelationName(index))));
  }
  rdmacc_leave_out_line_of_copy(relation);
  ereport(ERROR, (errcode(ERRCODE_UNIQUE_VIOLATION),
                  errmsg("duplicate key value violates unique constraint \"%s\"",
                         RelationGetRelationName(index)),
                  description != nullptr ? errdetail("Key %s already exists.", description) : 0,
                  errtableconstraint(relation, RelationGetRelationName(index))));
}

void check(const LaterCheck* wanted) {
  CHECK(OidIsValid(wanted->relation) && OidIsValid(wanted->index));
  Relation relation = RelationIdGetRelation(wanted->relation);
  if (!RelationIsValid(relation)) return; /* dropped meanwhile */
  Relation index_relation = RelationIdGetRelation(wanted->index);
  if (RelationIsValid(index_relation)) {
    const RdmaccIndex* index = rdmacc_secondary_index(relation, index_relation);
    BridgeBytes first = {};
    BridgeBytes second = {};
    const BridgeBytes no_key = {"", 0};
    if (index != nullptr &&
        rdmacc_find_other_entry(relation, index, wanted->columns, no_key, &first) &&
        rdmacc_find_other_entry(relation, index, wanted->columns, first, &second)) {
      rdmacc_raise_index_duplicate(relation, index, first, second, false);
    }
    RelationClose(index_relation);
  }
  RelationClose(relation);
}

void forget(void) {
  if (memory != nullptr) MemoryContextDelete(memory);
  memory = nullptr;
  forgotten += static_cast<uint64>(list_length(later));
  later = NIL;
}

/* Those of the query that ends, or all of them: NULL; from the one of this number on. */
void check_those_of(const QueryDesc* query, int from) {
  for (int i = from; i < list_length(later); i++) {
    auto* wanted = static_cast<LaterCheck*>(list_nth(later, i));
    if (wanted->relation == InvalidOid) continue; /* done */
    if (query != nullptr && wanted->query != query) continue;
    const LaterCheck now = *wanted;
    wanted->relation = InvalidOid;
    if (!rdmacc_subtransaction_aborted(now.subtransaction)) check(&now);
  }
}

bool all_done(void) {
  ListCell* cell;
  foreach (cell, later) {
    if (OidIsValid(static_cast<const LaterCheck*>(lfirst(cell))->relation)) return false;
  }
  return true;
}

void check_everything(void) { rdmacc_check_unique(nullptr); }

/* With the transaction, whose memory it was. */
void forget_all(void) {
  memory = nullptr;
  later = NIL;
}

}  // namespace

bool rdmacc_find_other_entry(Relation relation, const RdmaccIndex* index, BridgeBytes columns,
                             BridgeBytes own_key, BridgeBytes* other) {
  CHECK(columns.size > 0 && other != nullptr);
  const char* name = RelationGetRelationName(relation);
  bool found = false;
  StringInfoData high;
  initStringInfo(&high);
  const BridgeRange range = rdmacc_prefix_range(columns, &high);
  rdmacc_enter();
  BridgeIndexScan* scan = bridge_index_scan_create(CurrentResourceOwner);
  bridge_start_index_seek(scan, index->id, &range, false, RDMACC_EVERY_COMMAND);
  for (;;) {
    rdmacc_pump();
    rdmacc_check("could not search an index", name);
    const BridgeBytes* entries = nullptr;
    const size_t count = bridge_index_entries(scan, &entries);
    for (size_t i = 0; i < count && !found; i++) {
      const BridgeBytes key = rdmacc_entry_key(entries[i]);
      found = !rdmacc_same_bytes(key, own_key);
      if (found) *other = copy_bytes(key);
    }
    if (found || count == 0) break;
    bridge_start_index_next(scan);
  }
  bridge_index_scan_free(scan);
  pfree(high.data);
  return found;
}

void rdmacc_raise_index_duplicate(Relation relation, const RdmaccIndex* index, BridgeBytes key,
                                  BridgeBytes other, bool building) {
  CHECK(index->unique && key.size > 0 && other.size > 0);
  Relation index_relation = RelationIdGetRelation(index->oid);
  if (!RelationIsValid(index_relation)) elog(ERROR, "could not open index %u", index->oid);
  TupleTableSlot* slot = MakeSingleTupleTableSlot(RelationGetDescr(relation), &TTSOpsHeapTuple);
  TupleTableSlot* second = MakeSingleTupleTableSlot(RelationGetDescr(relation), &TTSOpsHeapTuple);
  fetch_row(relation, key, slot);
  fetch_row(relation, other, second);
  /* The rows may have been read later than the entries, and not have their columns any more. */
  rdmacc_check_reads(relation);
  Values values = {};
  Values second_values = {};
  rdmacc_index_row(index, relation, slot, values.values, values.nulls);
  rdmacc_index_row(index, relation, second, second_values.values, second_values.nulls);
  if (!columns_equal(index, &values, &second_values)) {
    ereport(ERROR, (errcode(ERRCODE_PROGRAM_LIMIT_EXCEEDED),
                    errmsg("two different keys of index \"%s\" have the same hash",
                           RelationGetRelationName(index_relation)),
                    errhint("Use columns of another data type.")));
  }
  raise_violation(relation, index_relation,
                  BuildIndexValueDescription(index_relation, values.values, values.nulls),
                  building);
}

void rdmacc_check_unique(const QueryDesc* query) {
  if (later == NIL) return;
  check_those_of(query, 0);
  if (all_done()) forget();
}

uint64 rdmacc_unique_checks_noted(void) {
  return forgotten + static_cast<uint64>(list_length(later));
}

/* A function in an index may have run queries, with whose end all that was noted was forgotten. */
void rdmacc_check_noted_since(uint64 noted) {
  CHECK(noted <= rdmacc_unique_checks_noted());
  const uint64 from = Max(noted, forgotten) - forgotten;
  check_those_of(rdmacc_running_query(), static_cast<int>(from));
}

void rdmacc_check_columns_later(Relation relation, const RdmaccIndex* index, BridgeBytes columns,
                                const QueryDesc* query) {
  CHECK(index->unique && columns.size > 0);
  if (memory == nullptr) {
    memory = AllocSetContextCreate(TopTransactionContext, "rdmacc unique checks",
                                   ALLOCSET_DEFAULT_SIZES);
  }
  const MemoryContext previous = MemoryContextSwitchTo(memory);
  auto* wanted = static_cast<LaterCheck*>(palloc(sizeof(LaterCheck)));
  *wanted = {.relation = RelationGetRelid(relation),
             .index = index->oid,
             .query = query,
             .subtransaction = GetCurrentSubTransactionId(),
             .columns = copy_bytes(columns)};
  later = lappend(later, wanted);
  MemoryContextSwitchTo(previous);
}

const RdmaccTransactionPart rdmacc_unique_checks_part = {.before_commit = check_everything,
                                                         .forget = forget_all};
