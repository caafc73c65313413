/* rdmacc.verify(): whether a table and its indexes are sound. The engine looks at what it keeps
 * (engine/verify), in transactions of its own; whether the indexes have just the entries that the
 * rows ask for is found out here, where rows mean something, in the caller's transaction. */
#include "pg_rdmacc/index/secondary_indexes.h"
#include "pg_rdmacc/index/sorted_entries.h"
#include "pg_rdmacc/relation/access_method.h"
#include "pg_rdmacc/row/duplicate_key.h"
#include "pg_rdmacc/server/attach.h"
#include "pg_rdmacc/server/error.h"
#include "pg_rdmacc/sql/result_rows.h"
#include "pg_rdmacc/xact/xact.h"

extern "C" {
#include "access/relation.h"
#include "utils/builtins.h"
#include "utils/guc.h"
#include "utils/resowner.h"

PGDLLEXPORT Datum rdmacc_sql_verify(PG_FUNCTION_ARGS);
PG_FUNCTION_INFO_V1(rdmacc_sql_verify);
}

namespace {

enum Column { kFinding, kRelation, kNode, kKey, kDetail, kColumnCount };

Datum bytea_of(BridgeBytes bytes) {
  auto* value = static_cast<char*>(palloc(VARHDRSZ + bytes.size));
  SET_VARSIZE(value, VARHDRSZ + bytes.size);
  memcpy(value + VARHDRSZ, bytes.data, bytes.size);
  return PointerGetDatum(value);
}

/* `node` < 0: of no single one. */
void put_finding(ReturnSetInfo* result, const char* finding, Oid relation, int node,
                 BridgeBytes key, const char* detail) {
  Datum values[kColumnCount] = {};
  bool nulls[kColumnCount] = {};
  values[kFinding] = CStringGetTextDatum(finding);
  values[kRelation] = ObjectIdGetDatum(relation);
  nulls[kRelation] = !OidIsValid(relation);
  values[kNode] = Int32GetDatum(node);
  nulls[kNode] = node < 0;
  nulls[kKey] = key.size == 0;
  if (key.size > 0) values[kKey] = bytea_of(key);
  values[kDetail] = CStringGetTextDatum(detail);
  rdmacc_put_row(result, values, nulls);
}

/* ---- What the engine keeps */

/* A table and its indexes, with the engine tables that they are in. */
struct Verified {
  int count;
  rdmacc::TableToVerify* tables;
  Oid* relations;
};

void list_tables(Relation relation, Verified* out) {
  const RdmaccIndexSet indexes = rdmacc_secondary_indexes(relation);
  const size_t most = static_cast<size_t>(indexes.count) + 1;
  out->tables = static_cast<rdmacc::TableToVerify*>(palloc(most * sizeof(rdmacc::TableToVerify)));
  out->relations = static_cast<Oid*>(palloc(most * sizeof(Oid)));
  out->tables[0] = {.table = rdmacc_table(relation)->id, .ordered_index = false};
  out->relations[0] = RelationGetRelid(relation);
  for (int i = 0; i < indexes.count; ++i) {
    out->tables[i + 1] = {.table = indexes.indexes[i].id, .ordered_index = true};
    out->relations[i + 1] = indexes.indexes[i].oid;
  }
  out->count = indexes.count + 1;
}

Oid relation_of(const Verified* verified, uint32 table) {
  for (int i = 0; i < verified->count; ++i) {
    if (verified->tables[i].table == table) return verified->relations[i];
  }
  return InvalidOid;
}

void verify_engine(ReturnSetInfo* result, Relation relation, const Verified* verified, bool units) {
  bridge_start_verify(verified->tables, static_cast<size_t>(verified->count), units);
  rdmacc_pump();
  rdmacc_check("could not verify", RelationGetRelationName(relation));
  const BridgeFinding* findings = nullptr;
  const size_t count = bridge_findings(&findings);
  for (size_t i = 0; i < count; ++i) {
    const BridgeFinding& finding = findings[i];
    put_finding(result, finding.kind, relation_of(verified, finding.table), finding.node,
                finding.key, finding.detail);
  }
}

/* ---- Whether an index has the entries that the rows ask for */

/* The entries of a scan, one by one. */
struct Entries {
  BridgeIndexScan* scan;
  const BridgeBytes* batch;
  size_t count, next;
};

void entries_begin(Entries* entries, uint32 id) {
  *entries = {};
  entries->scan = bridge_index_scan_create(CurrentResourceOwner);
  const BridgeRange all = {};
  bridge_start_index_seek(entries->scan, id, &all, false, RDMACC_EVERY_COMMAND);
  rdmacc_pump();
  rdmacc_check("could not scan an index", nullptr);
  entries->count = bridge_index_entries(entries->scan, &entries->batch);
}

/* False at the end. */
bool entries_next(Entries* entries, BridgeBytes* entry) {
  if (entries->next == entries->count && entries->count > 0) {
    CHECK_FOR_INTERRUPTS();
    bridge_start_index_next(entries->scan);
    rdmacc_pump();
    rdmacc_check("could not scan an index", nullptr);
    entries->count = bridge_index_entries(entries->scan, &entries->batch);
    entries->next = 0;
  }
  if (entries->count == 0) return false;
  *entry = entries->batch[entries->next++];
  return true;
}

int compare(BridgeBytes a, BridgeBytes b) {
  const int order = memcmp(a.data, b.data, Min(a.size, b.size));
  if (order != 0) return order;
  return a.size < b.size ? -1 : a.size > b.size ? 1 : 0;
}

/* True if anything was found. */
bool merge(ReturnSetInfo* result, RdmaccEntrySort* sorted, const RdmaccIndex* index) {
  bool found = false;
  Entries entries;
  entries_begin(&entries, index->id);
  BridgeBytes entry = {};
  RdmaccSortedEntry expected = {};
  bool more_entries = entries_next(&entries, &entry);
  bool more_expected = rdmacc_entry_sort_next(sorted, &expected);
  while (more_entries || more_expected) {
    const int order = !more_entries ? 1 : !more_expected ? -1 : compare(entry, expected.entry);
    if (order < 0) {
      put_finding(result, "no row", index->oid, -1, entry, "for an entry of the index");
    } else if (order > 0) {
      put_finding(result, "no index entry", index->oid, -1, expected.entry,
                  "for a row of the table");
    }
    found |= order != 0;
    if (order <= 0) more_entries = entries_next(&entries, &entry);
    if (order >= 0) more_expected = rdmacc_entry_sort_next(sorted, &expected);
  }
  bridge_index_scan_free(entries.scan);
  return found;
}

bool verify_entries(ReturnSetInfo* result, Relation relation, const RdmaccIndex* index) {
  RdmaccEntrySort* sorted = rdmacc_sort_entries(relation, index, nullptr);
  const bool found = merge(result, sorted, index);
  rdmacc_entry_sort_end(sorted);
  return found;
}

/* Expressions and predicates are the owner's, and run as such. */
void verify_indexes(ReturnSetInfo* result, Relation relation) {
  Oid user = InvalidOid;
  int security = 0;
  GetUserIdAndSecContext(&user, &security);
  SetUserIdAndSecContext(relation->rd_rel->relowner, security | SECURITY_RESTRICTED_OPERATION);
  const int nest_level = NewGUCNestLevel();
  const int count = rdmacc_secondary_indexes(relation).count;
  bool found = false;
  for (int i = 0; i < count; ++i) {
    const RdmaccIndexSet indexes = rdmacc_secondary_indexes(relation);
    if (i >= indexes.count) break;
    const RdmaccIndex index = indexes.indexes[i];
    if (index.valid) found |= verify_entries(result, relation, &index);
  }
  AtEOXact_GUC(false, nest_level);
  SetUserIdAndSecContext(user, security);
  /* What does not agree may be of different moments: 40001 then, as at the commit. */
  if (found) rdmacc_check_reads(relation);
}

/* How far the transaction was when its last verification ended: until it goes on, it has used no
 * table but to verify it. What it has locked then is in the way of the same table alone. */
struct Progress {
  uint64 began_us;
  uint64 uses;
  List* tables; /* Oids, in TopTransactionContext */
};
Progress progress = {};

bool has_verified_only() {
  return progress.began_us == bridge_txn_began_us() && progress.uses == bridge_txn_uses();
}

void note_verified(Oid table) {
  const bool goes_on = bridge_txn_touched() && progress.began_us == bridge_txn_began_us();
  if (!goes_on) progress.tables = NIL; /* of another transaction, with its memory */
  const MemoryContext previous = MemoryContextSwitchTo(TopTransactionContext);
  progress.tables = lappend_oid(progress.tables, table);
  MemoryContextSwitchTo(previous);
  progress.began_us = bridge_txn_began_us();
  progress.uses = bridge_txn_uses();
}

void check_may_verify(Relation relation) {
  const char kind = relation->rd_rel->relkind;
  if ((kind != RELKIND_RELATION && kind != RELKIND_MATVIEW) || !rdmacc_is_ours(relation)) {
    ereport(ERROR, (errcode(ERRCODE_WRONG_OBJECT_TYPE),
                    errmsg("\"%s\" is not an rdmacc table", RelationGetRelationName(relation)),
                    errhint("Name an rdmacc table: its indexes are verified with it.")));
  }
  const Oid table = RelationGetRelid(relation);
  if (bridge_txn_touched() && (!has_verified_only() || list_member_oid(progress.tables, table))) {
    ereport(ERROR, (errcode(ERRCODE_ACTIVE_SQL_TRANSACTION),
                    errmsg("this transaction has used rdmacc tables already"),
                    errdetail("Its own locks would be in the way of those that verify them."),
                    errhint("Call rdmacc.verify() outside of a transaction block.")));
  }
}

}  // namespace

Datum rdmacc_sql_verify(PG_FUNCTION_ARGS) {
  ReturnSetInfo* result = rdmacc_begin_rows(fcinfo);
  Relation relation = relation_open(PG_GETARG_OID(0), AccessShareLock);
  check_may_verify(relation);
  rdmacc_enter();
  Verified verified;
  list_tables(relation, &verified);
  verify_engine(result, relation, &verified, PG_GETARG_BOOL(1));
  if (verified.count > 1) verify_indexes(result, relation);
  note_verified(RelationGetRelid(relation));
  relation_close(relation, AccessShareLock);
  return static_cast<Datum>(0);
}
