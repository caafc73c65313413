#pragma once
#include "engine/txn/stages/scan_work.h"

namespace rdmacc {

// Reads the overflow blocks that a record or a group's tuples refer to, in one round. A block is
// immutable, so that its bytes belong to the record's version whenever they are read within the
// transaction. kCorrupt when a reference leaves the region.
Status read_overflow(StageContext& context, ScanWork& group);

// Checks one reference and adds its READ; `record` then views the copy in the context's arena.
Status add_overflow_read(StageContext& context, NodeId node, uint64_t overflow,
                         std::string_view& record, DoorbellBatch& batch);

}  // namespace rdmacc
