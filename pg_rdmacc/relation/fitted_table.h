/* How long rows are is a guess as long as there are none (record_size.h). The first ones that a
 * load brings tell it, and until then the table of their own transaction can be another one. */
#pragma once
#include "pg_rdmacc/relation/key_layout.h"

extern "C" {
#include "utils/rel.h"

/* The engine table that takes the place of `id`, which this transaction has made and put nothing
 * into, where records of so many bytes have no room in their slots; otherwise `id`. Not of a table
 * whose option says its record_size. The caller forgets `id`, in what rdmacc_table() has returned,
 * too. */
uint32 rdmacc_fit_table(Relation relation, uint32 id, const RdmaccKeyLayout* layout,
                        uint32 record_bytes);
}
