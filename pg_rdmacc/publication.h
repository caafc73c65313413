/* Publications: changes of rdmacc rows are not in the write-ahead log. */
#pragma once
#include "pg_rdmacc/pg_rdmacc.h"

extern "C" {
#include "nodes/parsenodes.h"

/* CREATE PUBLICATION and ALTER PUBLICATION: 0A000 when a table of ours is named, a WARNING when
 * some are among all tables, or those of a schema. */
void rdmacc_check_publication(const Node* statement);
}
