#pragma once
#include "rdma/base/status.h"

namespace rdmacc {

// Why a transaction was aborted by concurrency control. Travels as the detail() of a Status with
// Code::kAborted; counted by the statistics and shown to SQL users.
enum class AbortReason : uint16_t {
  kNone = 0,
  kLockHeld,             // a lock that this protocol does not wait for
  kVersionChanged,       // read before, written by another before this transaction's lock
  kValidationFailed,     // a record of the read set changed or is locked
  kReadUnstable,         // an atomic read met writers too often
  kGapChanged,           // a phantom: an absent key or a scanned range changed
  kStaleLocation,        // a record moved during the search; the next try looks again
  kNodeRestarted,        // a node died or restarted under the transaction
  kIndexMoved,           // the group was split during the search
  kDied,                 // an older transaction holds the lock or waits for it (WAITDIE)
  kWaitedTooLong,        // for a lock whose holder does not end
  kTooLate,              // read or written by a transaction with a larger timestamp
  kNoVersion,            // no version is old enough (MVCC)
  kLeaseLost,            // the lease could not be renewed (SUNDIAL, TICTOC, MAAT)
  kReconnaissanceStale,  // what it had read was changed before its place in the order (CALVIN)
  kWounded,              // an older transaction waits for a lock of this one (WOUND_WAIT)
  kOutOfTime,            // others have left it no time at which it could commit (MAAT)
  kCount
};

const char* abort_reason_name(AbortReason reason);  // "lock_held"

inline Status aborted(AbortReason reason) {
  return Status::with_detail(Code::kAborted, static_cast<uint16_t>(reason));
}
inline AbortReason reason_of(const Status& status) {
  return status.code() == Code::kAborted ? static_cast<AbortReason>(status.detail())
                                         : AbortReason::kNone;
}

}  // namespace rdmacc
