/* Which indexes an rdmacc table may have. */
#pragma once
#include "pg_rdmacc/engine_table.h"

extern "C" {

/* Raises 0A000 for an index that the engine cannot keep. */
void rdmacc_check_index(Relation relation, Relation index);
}
