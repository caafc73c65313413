#include "pg_rdmacc/query/gone_parents.h"

#include "pg_rdmacc/relation/access_method.h"
#include "pg_rdmacc/relation/foreign_keys.h"
#include "pg_rdmacc/xact/current_reads.h"

extern "C" {
#include "commands/trigger.h"
#include "executor/executor.h"
#include "nodes/execnodes.h"
}

namespace {

/* As far as triggers before it let the statement say. */
bool may_take_keys_away(const QueryDesc* query, ResultRelInfo* result) {
  const Relation relation = result->ri_RelationDesc;
  const bool updates = query->operation == CMD_UPDATE || query->operation == CMD_INSERT;
  if (!updates || relation->trigdesc->trig_update_before_row) return true;
  Bitmapset* keys = RelationGetIndexAttrBitmap(relation, INDEX_ATTR_BITMAP_KEY);
  return bms_overlap(keys, ExecGetAllUpdatedCols(result, query->estate));
}

}  // namespace

void rdmacc_note_gone_parents(const QueryDesc* query) {
  ListCell* cell;
  foreach (cell, query->estate->es_opened_result_relations) {
    auto* result = static_cast<ResultRelInfo*>(lfirst(cell));
    const Relation relation = result->ri_RelationDesc;
    if (relation == nullptr || relation->trigdesc == nullptr || rdmacc_is_ours(relation)) continue;
    if (may_take_keys_away(query, result) && rdmacc_own_refer_to(relation)) {
      rdmacc_need_current_reads();
    }
  }
}
