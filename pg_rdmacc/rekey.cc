#include "pg_rdmacc/rekey.h"

#include "pg_rdmacc/duplicate_key.h"
#include "pg_rdmacc/error.h"
#include "pg_rdmacc/row_codec.h"
#include "pg_rdmacc/scan_rows.h"
#include "pg_rdmacc/slot.h"
#include "pg_rdmacc/xact.h"

extern "C" {
#include "access/xact.h"
#include "miscadmin.h"
#include "utils/memutils.h"
}

namespace {

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

void copy_row(Relation relation, const BridgeRow* row, uint32 target, const RdmaccKeyLayout* layout,
              TupleTableSlot* slot) {
  StringInfoData key;
  initStringInfo(&key);
  rdmacc_slot_store(slot, relation, row, nullptr);
  check_no_nulls(relation, layout, slot);
  rdmacc_table_key(layout, slot, &key);
  rdmacc_enter_write(GetCurrentCommandId(true));
  const BridgeBytes key_bytes = {key.data, static_cast<size_t>(key.len)};
  bridge_start_insert(target, key_bytes, row->row, layout->number != 0);
  rdmacc_pump();
  if (bridge_error()->code == BRIDGE_DUPLICATE_KEY) {
    rdmacc_raise_duplicate_in_build(relation, layout, slot);
  }
  rdmacc_check("could not build the primary key", RelationGetRelationName(relation));
}

}  // namespace

double rdmacc_copy_rows(Relation relation, uint32 source, uint32 target,
                        const RdmaccKeyLayout* layout) {
  double count = 0;
  TupleTableSlot* slot = MakeSingleTupleTableSlot(RelationGetDescr(relation), &TTSOpsHeapTuple);
  MemoryContext workspace =
      AllocSetContextCreate(CurrentMemoryContext, "rdmacc re-key", ALLOCSET_DEFAULT_SIZES);
  RdmaccRows rows;
  rdmacc_rows_begin(&rows, source, RDMACC_EVERY_COMMAND);
  for (const BridgeRow* row = rdmacc_rows_next(&rows, relation); row != nullptr;
       row = rdmacc_rows_next(&rows, relation)) {
    CHECK_FOR_INTERRUPTS();
    const MemoryContext previous = MemoryContextSwitchTo(workspace);
    copy_row(relation, row, target, layout, slot);
    ExecClearTuple(slot);
    MemoryContextSwitchTo(previous);
    MemoryContextReset(workspace);
    count += 1;
  }
  rdmacc_rows_end(&rows);
  ExecDropSingleTupleTableSlot(slot);
  MemoryContextDelete(workspace);
  return count;
}
