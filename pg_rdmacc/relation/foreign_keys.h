/* Foreign keys between rdmacc tables and tables of other kinds. PostgreSQL's own triggers and
 * queries check them; what keeps them right is in docs/isolation.md, "Foreign keys". */
#pragma once
#include "pg_rdmacc/server/pg_rdmacc.h"

extern "C" {
#include "catalog/pg_constraint.h"
#include "utils/rel.h"

void rdmacc_foreign_keys_init(void);

/* Do tables of other kinds, partitions included, refer to rows of this rdmacc table? */
bool rdmacc_others_refer_to(Relation relation);

/* Do rdmacc tables refer to rows of this table of another kind? */
bool rdmacc_own_refer_to(Relation relation);

/* Do rows that refer to this rdmacc table, by its primary key or unique columns, follow when these
 * change (ON UPDATE CASCADE, SET NULL, SET DEFAULT)? They do so row by row: those that have
 * followed one row to its new values would follow the row that leaves these, too, so that no two
 * rows may have the same even for a moment. */
bool rdmacc_children_follow(Relation relation);

/* Do tables of both kinds take part? A partitioned table without partitions is of neither. */
bool rdmacc_mixes_tables(const FormData_pg_constraint* constraint);
}
