#include "engine/txn/stages/overflow_read.h"

#include "engine/storage/layout/overflow.h"
#include "rdma/base/check.h"

namespace rdmacc {

Status add_overflow_read(StageContext& context, NodeId node, uint64_t overflow,
                         std::string_view& record, DoorbellBatch& batch) {
  CHECK(node < context.engine.topology.nodes);
  const uint64_t bytes = round_up(record.size(), 8);
  if (bytes > kOverflowBytesMax || overflow % 8 != 0 ||
      overflow + sizeof(OverflowHeader) + bytes > context.engine.layout.region_bytes) {
    return Status(Code::kCorrupt, "a record's overflow address");
  }
  std::byte* copy = context.arena.allocate(bytes);
  if (copy == nullptr) return out_of_registered_memory();
  batch.read(GlobalAddress::make(node, overflow + sizeof(OverflowHeader)), copy, bytes);
  record = std::string_view(reinterpret_cast<const char*>(copy), record.size());
  return Status();
}

Status read_overflow(StageContext& context, ScanWork& group) {
  CHECK(group.node < context.engine.topology.nodes);
  DoorbellBatch batch = context.batch();
  for (ScannedTuple& tuple : group.tuples) {
    if ((tuple.flags & kFlagOverflow) == 0) continue;
    tuple.record = tuple.record.substr(0, record_bytes_wanted(group, tuple.record.size()));
    RDMACC_RETURN_IF_ERROR(
        add_overflow_read(context, group.node, tuple.overflow, tuple.record, batch));
  }
  return batch.execute();
}

}  // namespace rdmacc
