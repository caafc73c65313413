#include "pg_rdmacc/relation/rewritten_table.h"

#include "pg_rdmacc/relation/access_method.h"
#include "pg_rdmacc/relation/pending_tables.h"

extern "C" {
#include "access/table.h"
}

namespace {

/* PostgreSQL makes the new table after the old one's catalog entries, which say already what it
 * will be; and so does the primary key's index, which waits for the rows. */
void check_columns(Relation transient, Relation before, const RdmaccKeyLayout* layout) {
  TupleDesc now = RelationGetDescr(transient);
  TupleDesc then = RelationGetDescr(before);
  CHECK(now->natts == then->natts);
  for (int i = 0; i < layout->column_count; i++) {
    const AttrNumber attno = layout->columns[i].attno;
    CHECK(attno > 0 && attno <= now->natts);
    CHECK(TupleDescAttr(now, attno - 1)->atttypid == TupleDescAttr(then, attno - 1)->atttypid);
  }
}

}  // namespace

void rdmacc_key_as_before(Relation transient) {
  CHECK(rdmacc_is_ours(transient));
  if (!OidIsValid(transient->rd_rel->relrewrite)) return;
  const Oid file = transient->rd_node.relNode;
  const RdmaccLayoutNote* note = rdmacc_find_layout_note(file);
  if (note == nullptr || note->key.number != 0 || rdmacc_loaded_rows(note->id) > 0) return;
  const uint32 without_key = note->id;
  Relation before = table_open(transient->rd_rel->relrewrite, NoLock); /* its rewriter's */
  RdmaccKeyLayout layout = {};
  if (rdmacc_is_ours(before)) rdmacc_catalog_layout(before, &layout);
  rdmacc::TableSpec spec;
  if (layout.number != 0) {
    check_columns(transient, before, &layout);
    rdmacc_rewritten_table_spec(transient, before, file, &layout, &spec);
  }
  table_close(before, NoLock);
  if (layout.number == 0) return;
  const uint32 id = rdmacc_create_engine_table(&spec);
  rdmacc_drop_at_commit(without_key);
  rdmacc_note_layout(transient, file, id, &layout);
}
