#include "pg_rdmacc/ddl.h"

#include "pg_rdmacc/access_method.h"
#include "pg_rdmacc/error.h"
#include "pg_rdmacc/index_build.h"
#include "pg_rdmacc/rekey.h"
#include "pg_rdmacc/xact.h"

extern "C" {
#include "access/relation.h"
#include "access/xact.h"
#include "catalog/storage.h"
#include "miscadmin.h"
#include "nodes/pg_list.h"
#include "utils/memutils.h"
}

namespace {

/* An engine table to be dropped: at commit when it was replaced, at abort when it was created. */
struct PendingTable {
  uint32 id;
  int nest;
  bool created;
  bool aborted; /* created under a subtransaction that was rolled back: goes in any case */
};

/* Where the rows of a file are, if this transaction changed that. The newest note counts. */
struct LayoutNote {
  Oid relation;
  Oid relfilenode;
  uint32 id;
  int nest;
  RdmaccKeyLayout key;
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
  const MemoryContext previous = MemoryContextSwitchTo(TopTransactionContext);
  auto* copy = static_cast<Element*>(palloc(sizeof(Element)));
  *copy = element;
  list = lappend(list, copy);
  MemoryContextSwitchTo(previous);
  return list;
}

void add_pending(uint32 id, bool created) {
  pending = append(pending, PendingTable{id, GetCurrentTransactionNestLevel(), created, false});
}

void add_note(Relation relation, uint32 id, const RdmaccKeyLayout& key) {
  notes = append(notes, LayoutNote{RelationGetRelid(relation), relation->rd_node.relNode, id,
                                   GetCurrentTransactionNestLevel(), key});
  layout_epoch++;
}

const LayoutNote* find_note(Oid relfilenode) {
  for (int i = list_length(notes) - 1; i >= 0; i--) {
    const auto* note = static_cast<const LayoutNote*>(list_nth(notes, i));
    if (note->relfilenode == relfilenode) return note;
  }
  return nullptr;
}

bool is_pending_drop(uint32 id) {
  ListCell* cell;
  foreach (cell, pending) {
    const auto* table = static_cast<const PendingTable*>(lfirst(cell));
    if (table->id == id && !table->created) return true;
  }
  return false;
}

/* False when the identity is taken. */
bool create(const BridgeTableSpec* spec, uint32* id) {
  *id = RDMACC_NO_TABLE;
  bridge_start_create_table(spec, id);
  rdmacc_pump();
  if (bridge_error()->code == BRIDGE_DUPLICATE_KEY) return false;
  rdmacc_check("could not create a table in the rdmacc nodes", nullptr);
  return true;
}

/* A new engine table that goes when the transaction aborts. One that exists already was left
 * behind by a server that died between the two steps of a commit: nobody uses it. */
uint32 create_engine_table(const BridgeTableSpec* spec) {
  uint32 id = RDMACC_NO_TABLE;
  if (!create(spec, &id)) {
    const uint32 left = rdmacc_find_engine_table(spec);
    if (left != RDMACC_NO_TABLE && is_pending_drop(left)) {
      ereport(ERROR, (errcode(ERRCODE_FEATURE_NOT_SUPPORTED),
                      errmsg("cannot drop a primary key and add the same again in one transaction"),
                      errhint("Use one transaction for each.")));
    }
    if (left != RDMACC_NO_TABLE) {
      bridge_start_drop_table(left);
      rdmacc_pump();
      rdmacc_check("could not drop a table that an earlier transaction left", nullptr);
    }
    if (!create(spec, &id)) elog(ERROR, "could not create a table in the rdmacc nodes");
  }
  add_pending(id, true);
  return id;
}

/* Indexes change their files without telling us: those whose files go at commit. */
void drop_index_files(void) {
  if (!bridge_txn_active()) return;
  RelFileNode* files = nullptr;
  const int count = smgrGetPendingDeletes(true, &files);
  for (int i = 0; i < count; i++) {
    if (files[i].dbNode != MyDatabaseId) continue;
    const Oid tablespace = files[i].spcNode;
    BridgeTableSpec spec;
    rdmacc_index_spec(tablespace == MyDatabaseTableSpace ? InvalidOid : tablespace,
                      files[i].relNode, &spec);
    const uint32 id = rdmacc_find_engine_table(&spec);
    if (id != RDMACC_NO_TABLE) add_pending(id, false);
  }
}

double move_rows(Relation relation, uint32 source, const RdmaccKeyLayout& target) {
  BridgeTableSpec spec;
  rdmacc_table_spec(relation, relation->rd_node.relNode, &target, &spec);
  const uint32 id = create_engine_table(&spec);
  const double count = rdmacc_copy_rows(relation, source, id, &target);
  add_pending(source, false);
  add_note(relation, id, target);
  rdmacc_rebuild_indexes(relation);
  return count;
}

/* The engine table of the relation's present file; RDMACC_NO_TABLE when there is none. */
uint32 present_table(Relation relation) {
  const Oid relfilenode = relation->rd_node.relNode;
  const LayoutNote* note = find_note(relfilenode);
  if (note != nullptr) return note->id;
  ListCell* cell;
  foreach (cell, seen) {
    const auto* file = static_cast<const SeenFile*>(lfirst(cell));
    if (file->relfilenode == relfilenode) return file->id;
  }
  RdmaccKeyLayout layout;
  rdmacc_catalog_layout(relation, &layout);
  BridgeTableSpec spec;
  rdmacc_table_spec(relation, relfilenode, &layout, &spec);
  return rdmacc_find_engine_table(&spec);
}

void settle(Relation relation) {
  const LayoutNote* note = find_note(relation->rd_node.relNode);
  if (note == nullptr || note->key.number == 0) return;
  RdmaccKeyLayout layout;
  rdmacc_catalog_layout(relation, &layout);
  if (layout.number == 0) move_rows(relation, note->id, layout);
}

bool has_pending(void) { return pending != NIL; }

/* Re-keys what has lost its primary key; finds the engine tables of index files that go. */
void before_commit(void) {
  /* Settling adds notes, so the list is walked by number. */
  const int count = list_length(notes);
  for (int i = 0; i < count; i++) {
    const LayoutNote note = *static_cast<const LayoutNote*>(list_nth(notes, i));
    if (note.key.number == 0) continue;
    Relation relation = try_relation_open(note.relation, AccessShareLock);
    if (relation == nullptr) continue;
    if (rdmacc_is_ours(relation) && relation->rd_node.relNode == note.relfilenode) {
      settle(relation);
    }
    relation_close(relation, NoLock);
  }
  drop_index_files();
}

/* Drops engine tables. */
void finish(bool committed) {
  ListCell* cell;
  foreach (cell, pending) {
    const auto* table = static_cast<const PendingTable*>(lfirst(cell));
    const bool goes = committed ? !table->created || table->aborted : table->created;
    if (!goes) continue;
    bridge_start_drop_table(table->id);
    if (!rdmacc_pump_uninterrupted()) break;
    const int code = bridge_error()->code;
    if (code != BRIDGE_OK && code != BRIDGE_NOT_FOUND) {
      ereport(LOG, (errmsg("could not drop table %u in the rdmacc nodes: %s", table->id,
                           bridge_error()->message)));
    }
  }
  pending = NIL;
}

void forget(void) {
  /* The lists' memory goes with the transaction's. */
  if (notes != NIL) layout_epoch++;
  pending = notes = seen = NIL;
}

void committed_sub(int nest) {
  ListCell* cell;
  foreach (cell, pending) {
    auto* table = static_cast<PendingTable*>(lfirst(cell));
    if (table->nest >= nest) table->nest = nest - 1;
  }
  foreach (cell, notes) {
    auto* note = static_cast<LayoutNote*>(lfirst(cell));
    if (note->nest >= nest) note->nest = nest - 1;
  }
}

void aborted_sub(int nest) {
  ListCell* cell;
  foreach (cell, pending) {
    auto* table = static_cast<PendingTable*>(lfirst(cell));
    if (table->nest < nest) continue;
    if (table->created) {
      /* The engine's transaction may have read it, so it stays until that has ended. */
      table->aborted = true;
      table->nest = 1;
    } else {
      pending = foreach_delete_current(pending, cell);
    }
  }
  foreach (cell, notes) {
    if (static_cast<const LayoutNote*>(lfirst(cell))->nest < nest) continue;
    notes = foreach_delete_current(notes, cell);
    layout_epoch++;
  }
}

}  // namespace

uint32 rdmacc_find_engine_table(const BridgeTableSpec* spec) {
  uint32 id = RDMACC_NO_TABLE;
  rdmacc_enter();
  bridge_start_find_table(spec, &id);
  rdmacc_pump();
  if (bridge_error()->code == BRIDGE_NOT_FOUND) return RDMACC_NO_TABLE;
  rdmacc_check("could not find a table in the rdmacc nodes", nullptr);
  return id;
}

uint32 rdmacc_create_lost_engine_table(const BridgeTableSpec* spec) {
  uint32 id = RDMACC_NO_TABLE;
  if (!create(spec, &id)) id = rdmacc_find_engine_table(spec);
  if (id == RDMACC_NO_TABLE) elog(ERROR, "could not create a table in the rdmacc nodes");
  return id;
}

uint32 rdmacc_create_engine_table(const BridgeTableSpec* spec) {
  rdmacc_enter();
  return create_engine_table(spec);
}

bool rdmacc_created_by_transaction(uint32 id) {
  ListCell* cell;
  foreach (cell, pending) {
    const auto* table = static_cast<const PendingTable*>(lfirst(cell));
    if (table->id == id && table->created && !table->aborted) return true;
  }
  return false;
}

void rdmacc_new_file(Relation relation, const RelFileNode* file) {
  if (IsBinaryUpgrade) return;
  rdmacc_enter();
  if (relation->rd_node.relNode != file->relNode) rdmacc_drop_file(relation);
  RdmaccKeyLayout layout = {};
  BridgeTableSpec spec;
  rdmacc_table_spec(relation, file->relNode, &layout, &spec);
  const uint32 id = create_engine_table(&spec);
  notes = append(notes, LayoutNote{RelationGetRelid(relation), file->relNode, id,
                                   GetCurrentTransactionNestLevel(), layout});
  layout_epoch++;
}

void rdmacc_drop_file(Relation relation) {
  if (IsBinaryUpgrade) return;
  rdmacc_enter();
  const uint32 id = present_table(relation);
  if (id != RDMACC_NO_TABLE) add_pending(id, false);
}

double rdmacc_key_by_index(Relation relation, Relation index) {
  const double unchanged = Max(relation->rd_rel->reltuples, 0.0);
  if (IsBinaryUpgrade) return unchanged;
  RdmaccKeyLayout target = {};
  rdmacc_index_layout(relation, index, &target);
  const LayoutNote* note = find_note(relation->rd_node.relNode);
  /* An index that is older than the transaction is only built anew: rows have its keys. */
  if (note == nullptr && index->rd_createSubid == InvalidSubTransactionId) return unchanged;
  rdmacc_enter();
  if (note != nullptr && note->key.number == target.number) {
    add_note(relation, note->id, target);
    return unchanged;
  }
  const RdmaccKeyLayout hidden = {};
  const uint32 source = note != nullptr ? note->id : rdmacc_committed_table(relation, &hidden);
  return move_rows(relation, source, target);
}

void rdmacc_keep_layout(Oid relation_id) {
  if (IsBinaryUpgrade) return;
  rdmacc_enter();
  Relation relation = relation_open(relation_id, NoLock);
  if (find_note(relation->rd_node.relNode) == nullptr) {
    /* A table that the nodes do not know (of a database made from a template, say) can be dropped.
     */
    RdmaccKeyLayout layout;
    rdmacc_catalog_layout(relation, &layout);
    const uint32 id = present_table(relation);
    if (id != RDMACC_NO_TABLE) add_note(relation, id, layout);
  }
  relation_close(relation, NoLock);
}

bool rdmacc_transaction_layout(Relation relation, RdmaccTable* table) {
  const LayoutNote* note = find_note(relation->rd_node.relNode);
  if (note == nullptr) return false;
  table->id = note->id;
  /* The same columns, perhaps under a new index. */
  if (note->key.number != table->key.number) {
    table->unsettled = table->key.number == 0;
    table->key = note->key;
  }
  return true;
}

void rdmacc_settle_layout(Relation relation) { settle(relation); }

uint32 rdmacc_layout_epoch(void) { return layout_epoch; }

void rdmacc_note_seen(Oid relfilenode, uint32 table_id) {
  ListCell* cell;
  foreach (cell, seen) {
    if (static_cast<const SeenFile*>(lfirst(cell))->relfilenode == relfilenode) return;
  }
  seen = append(seen, SeenFile{relfilenode, table_id});
}

const RdmaccTransactionPart rdmacc_engine_tables_part = {.pending = has_pending,
                                                         .before_commit = before_commit,
                                                         .finish = finish,
                                                         .subtransaction_committed = committed_sub,
                                                         .subtransaction_aborted = aborted_sub,
                                                         .forget = forget};
