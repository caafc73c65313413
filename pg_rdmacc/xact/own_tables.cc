#include "pg_rdmacc/xact/own_tables.h"

#include "pg_rdmacc/server/attach.h"
#include "pg_rdmacc/server/remote_nodes.h"
#include "pg_rdmacc/server/short_worker.h"
#include "pg_rdmacc/wal/commit_log.h"
#include "pg_rdmacc/xact/xact.h"

extern "C" {
#include "access/heapam.h"
#include "access/htup_details.h"
#include "access/table.h"
#include "access/tableam.h"
#include "access/xact.h"
#include "access/xlog.h"
#include "catalog/pg_class.h"
#include "catalog/pg_database.h"
#include "commands/dbcommands.h"
#include "commands/defrem.h"
#include "common/hashfn.h"
#include "miscadmin.h"
#include "pgstat.h"
#include "postmaster/bgworker.h"
#include "storage/lock.h"
#include "storage/procarray.h"
#include "tcop/tcopprot.h"
#include "utils/memutils.h"

PGDLLEXPORT void rdmacc_orphans_main(Datum database);
}

namespace {

constexpr const char* kDefaultTemplate = "template1";

const char* template_of(const CreatedbStmt* statement) {
  ListCell* cell;
  foreach (cell, statement->options) {
    auto* option = static_cast<DefElem*>(lfirst(cell));
    if (strcmp(option->defname, "template") == 0 && option->arg != nullptr) {
      return defGetString(option);
    }
  }
  return kDefaultTemplate;
}

}  // namespace

/* Server in the upper half, so that it can be told which server made a table. */
uint64 rdmacc_system_name(uint64 variant) {
  const uint64 system = GetSystemIdentifier();
  const uint32 server =
      hash_combine(static_cast<uint32>(system), static_cast<uint32>(system >> 32));
  const uint32 folded = static_cast<uint32>(variant) ^ static_cast<uint32>(variant >> 32);
  return static_cast<uint64>(server) << 32 | (variant != 0 && folded == 0 ? 1 : folded);
}

bool rdmacc_is_own_name(uint64 system_name) {
  return system_name >> 32 == rdmacc_system_name(0) >> 32;
}

int rdmacc_own_tables(rdmacc::ListedTable** own) {
  CHECK(own != nullptr);
  rdmacc_ensure_attached();
  bridge_start_list_tables(rdmacc::TableList::kWithParts);
  rdmacc_pump();
  if (bridge_error()->code != rdmacc::Code::kOk) return -1;
  const rdmacc::ListedTable* all = nullptr;
  const size_t count = bridge_tables(&all);
  *own = static_cast<rdmacc::ListedTable*>(palloc(sizeof(rdmacc::ListedTable) * (count + 1)));
  int own_count = 0;
  for (size_t i = 0; i < count; i++) {
    if (rdmacc_is_own_name(all[i].system_id)) (*own)[own_count++] = all[i];
  }
  return own_count;
}

void rdmacc_check_template(const CreatedbStmt* statement) {
  const char* name = template_of(statement);
  const Oid database = get_database_oid(name, true);
  /* template0 has no tables of users. While nodes are away, no database waits for them. */
  if (!OidIsValid(database) || strcmp(name, "template0") == 0 || !rdmacc_all_nodes_serve()) return;
  rdmacc::ListedTable* tables = nullptr;
  const int count = rdmacc_own_tables(&tables);
  for (int i = 0; i < count; i++) {
    if (tables[i].database != database) continue;
    ereport(ERROR, (errcode(ERRCODE_FEATURE_NOT_SUPPORTED),
                    errmsg("cannot make a copy of database \"%s\", which has rdmacc tables", name),
                    errdetail("Their rows are not in files."),
                    errhint("Use TEMPLATE template0, and pg_dump and pg_restore.")));
  }
}

/* ---- Those that no catalog knows. Tables of the engine are made and dropped at once, beside
 * PostgreSQL's transaction, so a crash may leave one too many, or a part of one; never one too few.
 *
 * A table is dropped only if this server made it, no relation of its database has its relfilenode,
 * and every transaction that was under way when it was listed has ended: the one that made it has
 * either committed a relation that is seen by then, or never will. */

namespace {

constexpr int kWaitSteps = 30; /* of a tenth of a second: for transactions under way */

/* Where a list of Oids is read from a catalog's rows. */
typedef Oid (*OidOfTuple)(HeapTuple tuple);

Oid database_of(HeapTuple tuple) {
  return reinterpret_cast<Form_pg_database>(GETSTRUCT(tuple))->oid;
}

Oid relfilenode_of(HeapTuple tuple) {
  return reinterpret_cast<Form_pg_class>(GETSTRUCT(tuple))->relfilenode;
}

/* Of all rows that are committed now, in the caller's memory context. */
List* oids_in(Oid catalog_id, OidOfTuple oid_of) {
  CHECK(!IsTransactionState()); /* one of its own: rows that are committed now */
  const MemoryContext result = CurrentMemoryContext;
  List* oids = NIL;
  StartTransactionCommand();
  Relation catalog = table_open(catalog_id, AccessShareLock);
  TableScanDesc scan = table_beginscan_catalog(catalog, 0, nullptr);
  HeapTuple tuple = nullptr;
  while ((tuple = heap_getnext(scan, ForwardScanDirection)) != nullptr) {
    const MemoryContext previous = MemoryContextSwitchTo(result);
    oids = lappend_oid(oids, oid_of(tuple));
    MemoryContextSwitchTo(previous);
  }
  table_endscan(scan);
  table_close(catalog, AccessShareLock);
  CommitTransactionCommand();
  MemoryContextSwitchTo(result);
  list_sort(oids, list_oid_cmp);
  return oids;
}

bool contains(const List* sorted, Oid oid) {
  int low = 0;
  int high = list_length(sorted);
  while (low < high) {
    const int middle = low + (high - low) / 2;
    if (list_nth_oid(sorted, middle) < oid) {
      low = middle + 1;
    } else {
      high = middle;
    }
  }
  return low < list_length(sorted) && list_nth_oid(sorted, low) == oid;
}

void drop(const rdmacc::ListedTable& table) {
  CHECK(rdmacc_is_own_name(table.system_id)); /* other servers' tables are in the same nodes */
  rdmacc_log_table(RDMACC_REDO_DROP, &table);
  bridge_start_drop_table(table.id);
  rdmacc_pump();
  const rdmacc::Code code = bridge_error()->code;
  if (code == rdmacc::Code::kOk) {
    ereport(LOG, (errmsg("dropped rdmacc table %u, which no catalog knows (database %u, file %u)",
                         table.id, table.database, table.relfilenode)));
  } else if (code != rdmacc::Code::kNotFound) {
    ereport(LOG, (errmsg("could not drop rdmacc table %u, which no catalog knows: %s", table.id,
                         bridge_error()->message)));
  }
}

/* Ended within the time that this waits? */
bool ended(const VirtualTransactionId* transactions, int count) {
  int first = 0;
  for (int step = 0; step < kWaitSteps; step++) {
    while (first < count && VirtualXactLock(transactions[first], false)) first++;
    if (first == count) return true;
    pg_usleep(100 * 1000L);
    CHECK_FOR_INTERRUPTS();
  }
  return false;
}

bool transactions_have_ended(void) {
  CHECK(!IsTransactionState()); /* or it would wait for itself */
  StartTransactionCommand();
  int count = 0;
  const VirtualTransactionId* transactions =
      GetCurrentVirtualXIDs(InvalidTransactionId, false, false, 0, &count);
  const bool all = ended(transactions, count);
  CommitTransactionCommand();
  return all;
}

/* Of the tables those of this database that pg_class does not know. */
int keep_unknown(rdmacc::ListedTable* tables, int count) {
  CHECK(OidIsValid(MyDatabaseId));
  const List* known = oids_in(RelationRelationId, relfilenode_of);
  int kept = 0;
  for (int i = 0; i < count; i++) {
    if (tables[i].database != MyDatabaseId || contains(known, tables[i].relfilenode)) continue;
    tables[kept++] = tables[i];
  }
  return kept;
}

void look_in_database(Oid database) {
  BackgroundWorkerHandle* handle = rdmacc_launch_worker(
      "rdmacc_orphans_main", "rdmacc orphans check", ObjectIdGetDatum(database));
  if (handle == nullptr) {
    rdmacc_note_doubt(); /* no free worker now: later */
    return;
  }
  WaitForBackgroundWorkerShutdown(handle);
  pfree(handle);
}

}  // namespace

void rdmacc_drop_orphans(void) {
  rdmacc::ListedTable* tables = nullptr;
  const int count = rdmacc_own_tables(&tables);
  if (count < 0) rdmacc_note_doubt(); /* again, later */
  if (count <= 0) return;
  /* After the list: what it names was made in databases that were there. */
  const List* databases = oids_in(DatabaseRelationId, database_of);
  List* looked_at = NIL;
  for (int i = 0; i < count; i++) {
    const Oid database = tables[i].database;
    if (!contains(databases, database)) {
      drop(tables[i]);
    } else if (!list_member_oid(looked_at, database)) {
      looked_at = lappend_oid(looked_at, database);
      look_in_database(database);
    }
  }
}

void rdmacc_orphans_main(Datum database) {
  pqsignal(SIGTERM, die);
  BackgroundWorkerUnblockSignals();
  BackgroundWorkerInitializeConnectionByOid(DatumGetObjectId(database), InvalidOid,
                                            BGWORKER_BYPASS_ALLOWCONN);
  rdmacc::ListedTable* tables = nullptr;
  int count = Max(rdmacc_own_tables(&tables), 0);
  count = keep_unknown(tables, count);
  if (count == 0) return;
  if (!transactions_have_ended()) {
    rdmacc_note_doubt(); /* again, later */
    return;
  }
  count = keep_unknown(tables, count);
  for (int i = 0; i < count; i++) drop(tables[i]);
}
