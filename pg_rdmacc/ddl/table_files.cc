#include "pg_rdmacc/ddl/table_files.h"

#include "pg_rdmacc/ddl/taken_away.h"
#include "pg_rdmacc/index/index_build.h"
#include "pg_rdmacc/relation/access_method.h"
#include "pg_rdmacc/relation/engine_table.h"
#include "pg_rdmacc/relation/key_layout.h"
#include "pg_rdmacc/relation/pending_tables.h"
#include "pg_rdmacc/row/duplicate_key.h"
#include "pg_rdmacc/row/row_load.h"
#include "pg_rdmacc/row/scan_rows.h"
#include "pg_rdmacc/row/slot.h"
#include "pg_rdmacc/server/error.h"
#include "pg_rdmacc/xact/xact.h"

extern "C" {
#include "access/relation.h"
#include "access/xact.h"
#include "catalog/pg_class.h"
#include "catalog/storage.h"
#include "miscadmin.h"
#include "utils/lsyscache.h"
#include "utils/memutils.h"
#include "utils/snapmgr.h"
}

namespace {

/* ---- Other keys for the rows of a table */

void check_no_nulls(Relation relation, const RdmaccKeyLayout* layout, TupleTableSlot* slot) {
  for (int i = 0; i < layout->column_count; i++) {
    const AttrNumber attno = layout->columns[i].attno;
    if (!slot_attisnull(slot, attno)) continue;
    ereport(ERROR, (errcode(ERRCODE_NOT_NULL_VIOLATION),
                    errmsg("column \"%s\" of relation \"%s\" contains null values",
                           NameStr(TupleDescAttr(RelationGetDescr(relation), attno - 1)->attname),
                           RelationGetRelationName(relation)),
                    errtablecol(relation, attno)));
  }
}

bool add_row(Relation relation, const BridgeRow* row, const RdmaccKeyLayout* layout,
             TupleTableSlot* slot, RdmaccRowLoad* load) {
  StringInfoData key;
  initStringInfo(&key);
  rdmacc_slot_store(slot, relation, row, nullptr);
  check_no_nulls(relation, layout, slot);
  rdmacc_table_key(layout, slot, &key);
  return rdmacc_load_add(load, {key.data, static_cast<size_t>(key.len)}, row->row);
}

void raise_of_row(Relation relation, const void* layout, const RdmaccLoadedTwice* row) {
  rdmacc_raise_duplicate_in_build(relation, static_cast<const RdmaccKeyLayout*>(layout), row->slot);
}

void flush(RdmaccRowLoad* load, CommandId command) {
  rdmacc_load_fit(load, static_cast<const RdmaccKeyLayout*>(load->context));
  rdmacc_load_flush(load, command);
  rdmacc_load_reset(load);
}

/* The rows of one engine table into another one, keyed by the layout; how many there were. What
 * takes that one's place once they are known is the target. */
double copy_rows(Relation relation, uint32 source, uint32* target, const RdmaccKeyLayout* layout,
                 CommandId command) {
  double count = 0;
  TupleTableSlot* slot = MakeSingleTupleTableSlot(RelationGetDescr(relation), &TTSOpsHeapTuple);
  MemoryContext workspace =
      AllocSetContextCreate(CurrentMemoryContext, "rdmacc re-key", ALLOCSET_DEFAULT_SIZES);
  rdmacc_rows_settle(relation);
  RdmaccLoadTarget where;
  rdmacc_load_target(*target, layout, &where);
  auto* load = static_cast<RdmaccRowLoad*>(palloc(sizeof(RdmaccRowLoad)));
  rdmacc_load_begin(load, relation, &where, raise_of_row, layout);
  RdmaccRows rows;
  rdmacc_rows_begin(&rows, source, RDMACC_EVERY_COMMAND);
  rows.quiet = rdmacc_is_quiet(relation);
  for (const BridgeRow* row = rdmacc_rows_next(&rows, relation); row != nullptr;
       row = rdmacc_rows_next(&rows, relation)) {
    CHECK_FOR_INTERRUPTS();
    const MemoryContext previous = MemoryContextSwitchTo(workspace);
    const bool full = add_row(relation, row, layout, slot, load);
    ExecClearTuple(slot);
    MemoryContextSwitchTo(previous);
    MemoryContextReset(workspace);
    if (full) flush(load, command);
    count += 1;
  }
  rdmacc_rows_end(&rows);
  flush(load, command);
  *target = load->target.table;
  rdmacc_load_end(load);
  pfree(load);
  ExecDropSingleTupleTableSlot(slot);
  MemoryContextDelete(workspace);
  return count;
}

/* Indexes change their files without telling us: those whose files go at commit. */
void drop_index_files(void) {
  if (!bridge_txn_active()) return;
  RelFileNode* files = nullptr;
  const int count = smgrGetPendingDeletes(true, &files);
  for (int i = 0; i < count; i++) {
    if (files[i].dbNode != MyDatabaseId) continue;
    const uint32 id = rdmacc_find_index_file(files[i].spcNode, files[i].relNode);
    if (id != RDMACC_NO_TABLE) rdmacc_drop_at_commit(id);
  }
}

/* Of a table that was to go: no entries of indexes refer to them. */
void remove_rows(Relation relation, uint32 id, CommandId command) {
  rdmacc_rows_settle(relation);
  RdmaccRows rows;
  rdmacc_rows_begin(&rows, id, RDMACC_EVERY_COMMAND);
  for (const BridgeRow* row = rdmacc_rows_next(&rows, relation); row != nullptr;
       row = rdmacc_rows_next(&rows, relation)) {
    CHECK_FOR_INTERRUPTS();
    rdmacc_enter_write(command);
    bridge_start_remove(id, row->key);
    rdmacc_pump();
    rdmacc_check("could not remove a row", RelationGetRelationName(relation));
  }
  rdmacc_rows_end(&rows);
}

double move_rows(Relation relation, uint32 source, const RdmaccKeyLayout& target,
                 CommandId command) {
  rdmacc::TableSpec spec;
  rdmacc_table_spec(relation, relation->rd_node.relNode, &target, &spec);
  bool taken = false;
  uint32 id = rdmacc_create_or_take_engine_table(&spec, &taken);
  CHECK(id != source); /* its rows would be gone */
  if (taken) remove_rows(relation, id, command);
  const double count = copy_rows(relation, source, &id, &target, command);
  rdmacc_drop_at_commit(source);
  rdmacc_note_layout(relation, relation->rd_node.relNode, id, &target);
  rdmacc_rebuild_indexes(relation, command);
  return count;
}

/* The engine table of the relation's present file; RDMACC_NO_TABLE when there is none. */
uint32 present_table(Relation relation) {
  const Oid relfilenode = relation->rd_node.relNode;
  const RdmaccLayoutNote* note = rdmacc_find_layout_note(relfilenode);
  if (note != nullptr) return note->id;
  const uint32 seen = rdmacc_seen_table(relfilenode);
  if (seen != RDMACC_NO_TABLE) return seen;
  RdmaccKeyLayout layout;
  rdmacc_catalog_layout(relation, &layout);
  rdmacc::TableSpec spec;
  rdmacc_table_spec(relation, relfilenode, &layout, &spec);
  return rdmacc_find_engine_table(&spec);
}

void drop(Relation relation, uint32 id) {
  if (id == RDMACC_NO_TABLE) return;
  rdmacc_check_unused(relation, id);
  /* What REFRESH has put in its place has other rows. */
  const Oid of = relation->rd_rel->relrewrite;
  if (OidIsValid(of) && get_rel_relkind(of) == RELKIND_MATVIEW) rdmacc_check_unread(relation, id);
  rdmacc_drop_at_commit(id);
}

void settle(Relation relation) {
  const RdmaccLayoutNote* note = rdmacc_find_layout_note(relation->rd_node.relNode);
  if (note == nullptr || note->key.number == 0) return;
  if (OidIsValid(relation->rd_rel->relrewrite)) return; /* its index comes with the rows */
  RdmaccKeyLayout layout;
  rdmacc_catalog_layout(relation, &layout);
  /* For a statement that is about to change the rows: to it they have always been there. */
  if (layout.number == 0) move_rows(relation, note->id, layout, FirstCommandId);
}

/* No statement is under way whose snapshot functions of its indexes could use. */
void settle_at_commit(Relation relation) {
  PushActiveSnapshot(GetTransactionSnapshot());
  settle(relation);
  PopActiveSnapshot();
}

/* Re-keys what has lost its primary key; finds the engine tables of index files that go. */
void before_commit(void) {
  /* Settling adds notes, so the list is walked by number. */
  const int count = rdmacc_layout_note_count();
  for (int i = 0; i < count; i++) {
    const RdmaccLayoutNote note = *rdmacc_layout_note(i);
    if (note.key.number == 0) continue;
    Relation relation = try_relation_open(note.relation, AccessShareLock);
    if (relation == nullptr) continue;
    if (rdmacc_is_ours(relation) && relation->rd_node.relNode == note.relfilenode) {
      settle_at_commit(relation);
    }
    relation_close(relation, NoLock);
  }
  drop_index_files();
}

}  // namespace

void rdmacc_new_file(Relation relation, const RelFileNode* file) {
  if (IsBinaryUpgrade) return;
  rdmacc_enter();
  if (relation->rd_node.relNode != file->relNode) {
    const uint32 replaced = present_table(relation);
    if (replaced != RDMACC_NO_TABLE) rdmacc_check_unread(relation, replaced);
    drop(relation, replaced);
  }
  RdmaccKeyLayout layout = {};
  rdmacc::TableSpec spec;
  rdmacc_table_spec(relation, file->relNode, &layout, &spec);
  const uint32 id = rdmacc_create_engine_table(&spec);
  rdmacc_note_layout(relation, file->relNode, id, &layout);
}

void rdmacc_drop_file(Relation relation) {
  if (IsBinaryUpgrade) return;
  rdmacc_enter();
  drop(relation, present_table(relation));
}

double rdmacc_key_by_index(Relation relation, Relation index) {
  const double unchanged = Max(relation->rd_rel->reltuples, 0.0);
  if (IsBinaryUpgrade) return unchanged;
  RdmaccKeyLayout target = {};
  rdmacc_index_layout(relation, index, &target);
  const RdmaccLayoutNote* note = rdmacc_find_layout_note(relation->rd_node.relNode);
  /* An index that is older than the transaction is only built anew: rows have its keys. */
  if (note == nullptr && index->rd_createSubid == InvalidSubTransactionId) return unchanged;
  rdmacc_enter();
  if (note != nullptr && note->key.number == target.number) {
    const auto rows = static_cast<double>(rdmacc_loaded_rows(note->id));
    rdmacc_note_layout(relation, relation->rd_node.relNode, note->id, &target);
    return Max(unchanged, rows); /* it may have been written anew, and with this key */
  }
  const RdmaccKeyLayout hidden = {};
  const uint32 source = note != nullptr ? note->id : rdmacc_committed_table(relation, &hidden);
  return move_rows(relation, source, target, GetCurrentCommandId(true));
}

void rdmacc_keep_layout(Oid relation_id) {
  if (IsBinaryUpgrade) return;
  rdmacc_enter();
  Relation relation = relation_open(relation_id, NoLock);
  if (rdmacc_find_layout_note(relation->rd_node.relNode) == nullptr) {
    /* A table that the nodes do not know (of a database made from a template, say) can be dropped.
     */
    RdmaccKeyLayout layout;
    rdmacc_catalog_layout(relation, &layout);
    const uint32 id = present_table(relation);
    if (id != RDMACC_NO_TABLE) rdmacc_note_layout(relation, relation->rd_node.relNode, id, &layout);
  }
  relation_close(relation, NoLock);
}

void rdmacc_settle_layout(Relation relation) { settle(relation); }

const RdmaccTransactionPart rdmacc_table_files_part = {.before_commit = before_commit};
