#include "engine/txn/rule/outcome.h"

namespace rdmacc {

const char* abort_reason_name(AbortReason reason) {
  switch (reason) {
    case AbortReason::kNone:
      return "none";
    case AbortReason::kLockHeld:
      return "lock_held";
    case AbortReason::kVersionChanged:
      return "version_changed";
    case AbortReason::kValidationFailed:
      return "validation_failed";
    case AbortReason::kReadUnstable:
      return "read_unstable";
    case AbortReason::kGapChanged:
      return "gap_changed";
    case AbortReason::kStaleLocation:
      return "stale_location";
    case AbortReason::kNodeRestarted:
      return "node_restarted";
    case AbortReason::kIndexMoved:
      return "index_moved";
    case AbortReason::kDied:
      return "died";
    case AbortReason::kWaitedTooLong:
      return "waited_too_long";
    case AbortReason::kTooLate:
      return "too_late";
    case AbortReason::kNoVersion:
      return "no_version";
    case AbortReason::kLeaseLost:
      return "lease_lost";
    case AbortReason::kReconnaissanceStale:
      return "reconnaissance_stale";
    case AbortReason::kWounded:
      return "wounded";
    case AbortReason::kOutOfTime:
      return "out_of_time";
    case AbortReason::kCount:
      break;
  }
  return "unknown";
}

}  // namespace rdmacc
