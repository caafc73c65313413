/* How many bytes of its slot a row of a table is given, where no option says it. Longer rows are
 * kept in a block beside the slot, and take another READ; what shorter ones leave of the slot is
 * unused. */
#pragma once
#include "pg_rdmacc/relation/key_layout.h"

extern "C" {

uint32 rdmacc_record_size(Relation relation, const RdmaccKeyLayout* layout, uint32 history);
}
