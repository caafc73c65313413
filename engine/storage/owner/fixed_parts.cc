#include "engine/storage/owner/fixed_parts.h"

namespace rdmacc {

namespace {
constexpr uint64_t kRingHeadBytes = 64;
}

Status FixedParts::back_part(uint64_t begin, uint64_t end) {
  CHECK(begin < end && end <= layout_.pages);
  RDMACC_RETURN_IF_ERROR(endpoint_.back_region(begin, end - begin));
  backed_bytes_ += end - begin;
  return Status();
}

Status FixedParts::back() {
  RDMACC_RETURN_IF_ERROR(back_part(0, layout_.log_rings));
  RDMACC_RETURN_IF_ERROR(back_part(layout_.order, layout_.pages));
  for (WorkerId worker = 0; worker < rings_.size(); ++worker) {
    const uint64_t head = layout_.log_ring(worker);
    RDMACC_RETURN_IF_ERROR(back_part(head, head + kRingHeadBytes));
    // The incarnation of the worker that has it, or has had it.
    if (region_.load(head + 8) != 0) RDMACC_RETURN_IF_ERROR(back_log_ring(worker));
  }
  return Status();
}

Status FixedParts::back_log_ring(WorkerId worker) {
  if (worker >= rings_.size()) return Status(Code::kInvalidArgument, "no such worker");
  if (rings_[worker]) return Status();
  const uint64_t head = layout_.log_ring(worker);
  RDMACC_RETURN_IF_ERROR(back_part(head + kRingHeadBytes, layout_.log_ring(worker + 1)));
  rings_[worker] = true;
  return Status();
}

}  // namespace rdmacc
