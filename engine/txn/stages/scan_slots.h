#pragma once
#include <span>

#include "engine/txn/driver/engine_context.h"
#include "engine/txn/stages/scan_work.h"

namespace rdmacc {

// Reads the rows of a table in blocks of slots (ScanWork::Part::kSlots), as they lie in memory, by
// rules that validate what they have read and change nothing as they read. Carried out in place.
//
// That no row is missed is for gap headers to say, all of which were read before: a row that was
// linked in its group then is still in the slot that it was in, and in a page that was there, since
// rows do not move and pages with rows become nothing else. One that was linked or unlinked later
// has changed its gap header, which is validated like any that a scan has read.
//
// A page without rows may become anything at any time, with bytes that look like a row. So its word
// is looked at before it is looked for rows, and after: what was found is none if that is another.
Status scan_slots(StageContext& context, std::span<ScanWork> blocks);

// Validates blocks that a scan has read, after all locks and after the gap headers of the scan:
// they have the same rows in the same versions, and no other transaction is about to change one.
Status check_blocks(StageContext& context, TableId table, std::span<const ReadBlock> blocks);

}  // namespace rdmacc
