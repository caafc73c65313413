// NOWAIT: two-phase locking that aborts at the first lock it cannot have (RCC §4.1). Every record
// that is read or written, and the gap header of every absent key, insert, unlink and scan, is
// locked exclusively by its ctts until the transaction has ended.
//
//   Read, Lock  CAS lock 0 -> ctts | READ header | READ record        one batch
//   Log         the whole transaction to every backup
//   Commit      WRITE wts | WRITE length and record | WRITE lock = 0
//   Release     WRITE lock = 0 for exactly the locks that this attempt got
//
// The READs stand behind the CAS in the batch: under the lock the header and record are stable,
// so that one look is an atomic read, and a failed CAS makes it worthless. There is nothing to
// validate: nobody changes what is locked.

#include "engine/protocols/protocols.h"

namespace rdmacc {
namespace {

Step lock(const Access& access, const Look* seen, const TxnStamps& txn) {
  const int verbs = kFirstLook | kReadRecord;
  if (seen == nullptr) {
    return access.locked ? Step::attempt(verbs) : Step::cas(verbs, 0, txn.ctts);
  }
  return holds_lock(access, *seen, txn) ? Step::done() : Step::abort(AbortReason::kLockHeld);
}

}  // namespace

const ProtocolRules kNowaitRules = {
    .protocol = Protocol::kNowait,
    .stages = static_cast<uint16_t>(Stage::kLock) | static_cast<uint16_t>(Stage::kLog) |
              static_cast<uint16_t>(Stage::kRelease) | static_cast<uint16_t>(Stage::kCommit),
    .locks_what_it_reads = true,
    .single_read_is_atomic = false,
    .read = nullptr,
    .lock = lock,
    .validate = nullptr,
};

}  // namespace rdmacc
