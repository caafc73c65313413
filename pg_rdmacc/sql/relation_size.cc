/* rdmacc.relation_size(): PostgreSQL's own functions look at files, which are empty. */
#include "pg_rdmacc/index/secondary_indexes.h"
#include "pg_rdmacc/relation/access_method.h"
#include "pg_rdmacc/relation/engine_table.h"
#include "pg_rdmacc/relation/pending_tables.h"
#include "pg_rdmacc/server/error.h"
#include "pg_rdmacc/xact/xact.h"

extern "C" {
#include "access/relation.h"
#include "fmgr.h"

PGDLLEXPORT Datum rdmacc_sql_relation_size(PG_FUNCTION_ARGS);
PG_FUNCTION_INFO_V1(rdmacc_sql_relation_size);
}

namespace {

/* RDMACC_NO_TABLE for a primary key without an order: the table's own index is of it. */
uint32 engine_table(Relation relation) {
  const bool table = relation->rd_rel->relkind != RELKIND_INDEX;
  return table ? rdmacc_table(relation)->id : rdmacc_find_index(relation);
}

bool is_ours(Relation relation) {
  switch (relation->rd_rel->relkind) {
    case RELKIND_RELATION:
    case RELKIND_MATVIEW:
      return rdmacc_is_ours(relation);
    case RELKIND_INDEX:
      return rdmacc_relation_is_ours(relation->rd_index->indrelid);
    default:
      return false;
  }
}

}  // namespace

Datum rdmacc_sql_relation_size(PG_FUNCTION_ARGS) {
  Relation relation = try_relation_open(PG_GETARG_OID(0), AccessShareLock);
  if (relation == nullptr) PG_RETURN_NULL(); /* gone meanwhile, as for pg_relation_size() */
  if (!is_ours(relation)) {
    ereport(ERROR, (errcode(ERRCODE_WRONG_OBJECT_TYPE),
                    errmsg("\"%s\" is neither an rdmacc table nor an index of one",
                           RelationGetRelationName(relation)),
                    errhint("Use pg_relation_size().")));
  }
  const uint32 id = engine_table(relation);
  static uint64 bytes; /* outlives an error that ends the command */
  bytes = 0;
  if (id != RDMACC_NO_TABLE) {
    bridge_start_table_size(id, &bytes);
    rdmacc_pump();
    rdmacc_check("could not measure", RelationGetRelationName(relation));
  }
  relation_close(relation, AccessShareLock);
  PG_RETURN_INT64(static_cast<int64>(bytes));
}
