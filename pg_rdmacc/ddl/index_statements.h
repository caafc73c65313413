/* Statements about indexes that mean something else on rdmacc tables. */
#pragma once
#include "pg_rdmacc/server/pg_rdmacc.h"

extern "C" {
#include "nodes/plannodes.h"
#include "tcop/utility.h"
#include "utils/rel.h"

/* CREATE and DROP INDEX CONCURRENTLY take several transactions, so that a table in a file can be
 * written meanwhile, and leave an invalid index behind when one of them fails. Here each becomes
 * the plain statement, which is one transaction. So does REFRESH MATERIALIZED VIEW CONCURRENTLY,
 * which would need a temporary table of ours. A statement in the cache is copied first. */
PlannedStmt* rdmacc_without_concurrently(PlannedStmt* statement, bool read_only,
                                         ProcessUtilityContext context);

/* Raises 0A000 for what would take an index's entries away from it. */
void rdmacc_check_index_statement(const Node* statement);

/* ---- Which indexes an rdmacc table may have. */

/* Raises 0A000 for an index that the engine cannot keep. */
void rdmacc_check_index(Relation relation, Relation index);
}
