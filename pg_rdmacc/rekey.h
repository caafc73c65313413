/* Copying a relation's rows from one engine table into another that is keyed differently. */
#pragma once
#include "pg_rdmacc/engine_table.h"

extern "C" {

/* The number of rows. Raises 23505 when two rows have one key, 23502 when a key column is null. */
double rdmacc_copy_rows(Relation relation, uint32 source, uint32 target,
                        const RdmaccKeyLayout* layout);
}
