/* Which indexes an rdmacc table may have. */
#pragma once
#include "pg_rdmacc/pg_rdmacc.h"

extern "C" {
#include "utils/rel.h"

/* Raises 0A000 for an index that the engine cannot keep. */
void rdmacc_check_index(Relation relation, Relation index);
}
