#include "pg_rdmacc/relation/fitted_table.h"

#include "pg_rdmacc/relation/engine_table.h"
#include "pg_rdmacc/relation/pending_tables.h"
#include "pg_rdmacc/relation/table_options.h"

uint32 rdmacc_fit_table(Relation relation, uint32 id, const RdmaccKeyLayout* layout,
                        uint32 record_bytes) {
  CHECK(rdmacc_created_at_this_level(id) && rdmacc_loaded_rows(id) == 0);
  if (record_bytes > rdmacc::kRecordInlineMax) return id;
  RdmaccTableOptions options;
  rdmacc_table_options(relation, &options);
  if (options.record_size > 0) return id;
  rdmacc::TableSpec spec;
  rdmacc_table_spec(relation, relation->rd_node.relNode, layout, &spec);
  const uint32 fitting = rdmacc::record_size_of_slot(record_bytes, spec.history);
  if (fitting <= spec.record_size) return id;
  spec.record_size = fitting;
  return rdmacc_replace_engine_table(id, &spec);
}
