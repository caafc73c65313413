#include "pg_rdmacc/relation/pending_tables.h"

#include "pg_rdmacc/server/error.h"
#include "pg_rdmacc/wal/commit_log.h"
#include "pg_rdmacc/xact/xact.h"

extern "C" {
#include "access/xact.h"
#include "nodes/pg_list.h"
#include "utils/memutils.h"
}

namespace {

enum class Fate : uint8 {
  kCreated,  /* it goes at abort */
  kReplaced, /* it goes at commit */
  kTaken     /* it does not, though it was to go: rows have come back to it */
};

/* What becomes of an engine table. The newest entry of one counts. */
struct PendingTable {
  uint32 id;
  int nest;
  Fate fate;
  bool aborted;  /* created under a subtransaction that was rolled back: goes in any case */
  uint64 loaded; /* rows that have been put in place */
};

struct SeenFile {
  Oid relfilenode;
  uint32 id;
};

/* Lists of palloc'ed structs in TopTransactionContext, newest last. */
List* pending;
List* notes;
List* seen;
uint32 layout_epoch = 1;

template <typename Element>
List* append(List* list, const Element& element) {
  CHECK(TopTransactionContext != nullptr); /* which the lists go with */
  const MemoryContext previous = MemoryContextSwitchTo(TopTransactionContext);
  auto* copy = static_cast<Element*>(palloc(sizeof(Element)));
  *copy = element;
  list = lappend(list, copy);
  MemoryContextSwitchTo(previous);
  return list;
}

void add_pending(uint32 id, Fate fate) {
  CHECK(id != RDMACC_NO_TABLE);
  pending = append(pending, PendingTable{.id = id,
                                         .nest = GetCurrentTransactionNestLevel(),
                                         .fate = fate,
                                         .aborted = false,
                                         .loaded = 0});
}

const PendingTable* newest_of(uint32 id) {
  for (int i = list_length(pending) - 1; i >= 0; i--) {
    const auto* table = static_cast<const PendingTable*>(list_nth(pending, i));
    if (table->id == id) return table;
  }
  return nullptr;
}

bool goes_at_commit(const PendingTable* table) {
  return table != nullptr && (table->aborted || table->fate == Fate::kReplaced);
}

PendingTable* find_created(uint32 id) {
  ListCell* cell;
  foreach (cell, pending) {
    auto* table = static_cast<PendingTable*>(lfirst(cell));
    if (table->id == id && table->fate == Fate::kCreated && !table->aborted) return table;
  }
  return nullptr;
}

void start_drop(uint32 id) {
  rdmacc::ListedTable table = {};
  table.id = id;
  rdmacc_log_table(RDMACC_REDO_DROP, &table);
  bridge_start_drop_table(id);
}

void drop_now(uint32 id) {
  start_drop(id);
  rdmacc_pump();
  rdmacc_check("could not drop a table that is not in use", nullptr);
}

/* False when the identity is taken. No cancel ends it half way: nothing would know the table. */
bool create(const rdmacc::TableSpec* spec, uint32* id) {
  *id = RDMACC_NO_TABLE;
  bridge_start_create_table(spec, id);
  rdmacc_pump_whole();
  if (bridge_error()->code == rdmacc::Code::kDuplicateKey) return false;
  rdmacc_check("could not create a table in the rdmacc nodes", nullptr);
  CHECK(*id != RDMACC_NO_TABLE);
  const rdmacc::ListedTable table = {.id = *id,
                                     .system_id = spec->system_id,
                                     .database = spec->database,
                                     .relfilenode = spec->relfilenode,
                                     .record_size = spec->record_size,
                                     .history = spec->history,
                                     .has_distribution_key = spec->has_distribution_key};
  rdmacc_log_table(RDMACC_REDO_CREATE, &table);
  return true;
}

/* A new engine table that goes when the transaction aborts. One that exists already was left
 * behind by a server that died between the two steps of a commit: it is not in use. Or it goes with
 * this transaction, which may have read it, and so it stays: RDMACC_NO_TABLE then, and its id. */
uint32 create_engine_table(const rdmacc::TableSpec* spec, uint32* in_use) {
  uint32 id = RDMACC_NO_TABLE;
  if (!create(spec, &id)) {
    *in_use = rdmacc_find_engine_table(spec);
    if (*in_use != RDMACC_NO_TABLE && goes_at_commit(newest_of(*in_use))) return RDMACC_NO_TABLE;
    if (*in_use != RDMACC_NO_TABLE) drop_now(*in_use);
    if (!create(spec, &id)) elog(ERROR, "could not create a table in the rdmacc nodes");
  }
  add_pending(id, Fate::kCreated);
  return id;
}

bool has_pending(void) { return pending != NIL; }

/* Drops engine tables. */
void finish(bool committed) {
  ListCell* cell;
  foreach (cell, pending) {
    const auto* table = static_cast<const PendingTable*>(lfirst(cell));
    CHECK(!committed || table->nest == 1); /* subtransactions have handed on what is theirs */
    const bool goes = committed ? goes_at_commit(table) && newest_of(table->id) == table
                                : table->fate == Fate::kCreated;
    if (!goes) continue;
    start_drop(table->id);
    if (!rdmacc_pump_uninterrupted()) break;
    const rdmacc::Code code = bridge_error()->code;
    if (code != rdmacc::Code::kOk && code != rdmacc::Code::kNotFound) {
      ereport(LOG, (errmsg("could not drop table %u in the rdmacc nodes: %s", table->id,
                           bridge_error()->message)));
    }
  }
  pending = NIL;
}

void forget(void) {
  /* The lists' memory goes with the transaction's. */
  if (notes != NIL) layout_epoch++;
  CHECK(pending == NIL || !bridge_attached()); /* finish() has dropped them */
  pending = notes = seen = NIL;
}

void subtransaction_committed(int nest) {
  ListCell* cell;
  foreach (cell, pending) {
    auto* table = static_cast<PendingTable*>(lfirst(cell));
    CHECK(table->nest <= nest);
    if (table->nest >= nest) table->nest = nest - 1;
  }
  foreach (cell, notes) {
    auto* note = static_cast<RdmaccLayoutNote*>(lfirst(cell));
    CHECK(note->nest <= nest);
    if (note->nest >= nest) note->nest = nest - 1;
  }
}

/* What the catalog says is another table's again. */
void forget_seen(uint32 id) {
  ListCell* cell;
  foreach (cell, seen) {
    if (static_cast<const SeenFile*>(lfirst(cell))->id == id) {
      seen = foreach_delete_current(seen, cell);
    }
  }
}

void subtransaction_aborted(int nest) {
  ListCell* cell;
  foreach (cell, pending) {
    auto* table = static_cast<PendingTable*>(lfirst(cell));
    if (table->nest < nest) continue;
    if (table->fate == Fate::kCreated) {
      /* The engine's transaction may have read it, so it stays until that has ended. */
      table->aborted = true;
      table->nest = 1;
      forget_seen(table->id);
    } else {
      pending = foreach_delete_current(pending, cell);
    }
  }
  foreach (cell, notes) {
    if (static_cast<const RdmaccLayoutNote*>(lfirst(cell))->nest < nest) continue;
    notes = foreach_delete_current(notes, cell);
    layout_epoch++;
  }
}

}  // namespace

uint32 rdmacc_find_engine_table(const rdmacc::TableSpec* spec, uint64* made_us) {
  uint32 id = RDMACC_NO_TABLE;
  rdmacc_enter();
  bridge_start_find_table(spec, &id, made_us);
  rdmacc_pump();
  if (bridge_error()->code == rdmacc::Code::kNotFound) return RDMACC_NO_TABLE;
  rdmacc_check("could not find a table in the rdmacc nodes", nullptr);
  return id;
}

uint32 rdmacc_create_lost_engine_table(const rdmacc::TableSpec* spec) {
  uint32 id = RDMACC_NO_TABLE;
  if (!create(spec, &id)) id = rdmacc_find_engine_table(spec);
  if (id == RDMACC_NO_TABLE) elog(ERROR, "could not create a table in the rdmacc nodes");
  return id;
}

uint32 rdmacc_create_engine_table(const rdmacc::TableSpec* spec) {
  rdmacc_enter();
  uint32 in_use = RDMACC_NO_TABLE;
  const uint32 id = create_engine_table(spec, &in_use);
  if (id == RDMACC_NO_TABLE) elog(ERROR, "table %u of the rdmacc nodes is in use", in_use);
  return id;
}

uint32 rdmacc_create_or_take_engine_table(const rdmacc::TableSpec* spec, bool* taken) {
  rdmacc_enter();
  uint32 in_use = RDMACC_NO_TABLE;
  const uint32 id = create_engine_table(spec, &in_use);
  *taken = id == RDMACC_NO_TABLE;
  if (!*taken) return id;
  add_pending(in_use, Fate::kTaken);
  return in_use;
}

uint32 rdmacc_replace_engine_table(uint32 id, const rdmacc::TableSpec* spec) {
  PendingTable* table = find_created(id);
  CHECK(table != nullptr && table->loaded == 0);
  rdmacc_enter();
  drop_now(id);
  uint32 replacement = RDMACC_NO_TABLE;
  if (!create(spec, &replacement)) elog(ERROR, "could not create a table in the rdmacc nodes");
  ListCell* cell;
  foreach (cell, pending) {
    auto* other = static_cast<PendingTable*>(lfirst(cell));
    if (other->id == id) other->id = replacement;
  }
  foreach (cell, notes) {
    auto* note = static_cast<RdmaccLayoutNote*>(lfirst(cell));
    if (note->id == id) note->id = replacement;
  }
  foreach (cell, seen) {
    auto* file = static_cast<SeenFile*>(lfirst(cell));
    if (file->id == id) file->id = replacement;
  }
  layout_epoch++;
  return replacement;
}

void rdmacc_drop_at_commit(uint32 id) { add_pending(id, Fate::kReplaced); }

bool rdmacc_created_by_transaction(uint32 id) { return find_created(id) != nullptr; }

bool rdmacc_created_at_this_level(uint32 id) {
  const PendingTable* table = find_created(id);
  return table != nullptr && table->nest == GetCurrentTransactionNestLevel();
}

void rdmacc_note_loaded(uint32 id, uint64 rows) {
  PendingTable* table = find_created(id);
  CHECK(table != nullptr && rows > 0);
  table->loaded += rows;
}

uint64 rdmacc_loaded_rows(uint32 id) {
  const PendingTable* table = find_created(id);
  return table != nullptr ? table->loaded : 0;
}

void rdmacc_note_layout(Relation relation, Oid relfilenode, uint32 id, const RdmaccKeyLayout* key) {
  CHECK(id != RDMACC_NO_TABLE && OidIsValid(relfilenode));
  notes = append(notes, RdmaccLayoutNote{RelationGetRelid(relation), relfilenode, id,
                                         GetCurrentTransactionNestLevel(), *key});
  layout_epoch++;
}

const RdmaccLayoutNote* rdmacc_find_layout_note(Oid relfilenode) {
  for (int i = list_length(notes) - 1; i >= 0; i--) {
    const auto* note = static_cast<const RdmaccLayoutNote*>(list_nth(notes, i));
    if (note->relfilenode == relfilenode) return note;
  }
  return nullptr;
}

int rdmacc_layout_note_count(void) { return list_length(notes); }

const RdmaccLayoutNote* rdmacc_layout_note(int number) {
  CHECK(number >= 0 && number < list_length(notes));
  return static_cast<const RdmaccLayoutNote*>(list_nth(notes, number));
}

bool rdmacc_transaction_layout(Relation relation, RdmaccTable* table) {
  const RdmaccLayoutNote* note = rdmacc_find_layout_note(relation->rd_node.relNode);
  if (note == nullptr) return false;
  table->id = note->id;
  /* The same columns, perhaps under a new index. */
  if (note->key.number != table->key.number) {
    table->unsettled = table->key.number == 0;
    table->key = note->key;
  }
  return true;
}

uint32 rdmacc_layout_epoch(void) { return layout_epoch; }

void rdmacc_note_seen(Oid relfilenode, uint32 table_id) {
  CHECK(table_id != RDMACC_NO_TABLE);
  ListCell* cell;
  foreach (cell, seen) {
    if (static_cast<const SeenFile*>(lfirst(cell))->relfilenode == relfilenode) return;
  }
  seen = append(seen, SeenFile{relfilenode, table_id});
}

uint32 rdmacc_seen_table(Oid relfilenode) {
  ListCell* cell;
  foreach (cell, seen) {
    const auto* file = static_cast<const SeenFile*>(lfirst(cell));
    if (file->relfilenode == relfilenode) return file->id;
  }
  return RDMACC_NO_TABLE;
}

const RdmaccTransactionPart rdmacc_pending_tables_part = {
    .pending = has_pending,
    .finish = finish,
    .subtransaction_committed = subtransaction_committed,
    .subtransaction_aborted = subtransaction_aborted,
    .forget = forget};
