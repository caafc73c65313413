// NOWAIT: two-phase locking that aborts at the first lock it cannot have (RCC §4.1). Every record
// that is read or written, and the gap header of every absent key, insert, unlink and scan, stays
// locked until the transaction has ended: exclusively by its ctts, or, where shared locks are
// asked for, counted in the lock word while it is only read.
//
//   Read, Lock   CAS lock 0 -> ctts | READ header, record              one batch
//   Read shared  READ header => CAS lock n -> n+1 | READ header, record
//   Lock shared  CAS lock own count -> ctts | READ header, record
//   Log          the whole transaction to every backup
//   Commit       WRITE wts | WRITE length | WRITE record | WRITE lock = 0
//   Release      WRITE lock = 0 for exactly the locks that this attempt got; counts by FAA
//
// The READ of both stands behind the CAS in the batch: under the lock header and record are stable,
// so that one is an untorn read, and a failed CAS makes it worthless. There is nothing to validate:
// no other transaction changes what is locked. What was only read is released in the batch of
// Commit, if both stages are one-sided. A node's cleaning lock
// (engine/storage/layout/tuple.h) is no transaction's, and is waited for instead, in every protocol
// that begins with take_lock() (locks.h).

#include "engine/protocols/locks.h"
#include "engine/protocols/protocols.h"
#include "engine/txn/stages/look_in_place.h"

namespace rdmacc {
namespace {

constexpr int kVerbs = kPreRead | kReadRecord;

Step lock(const Access& access, const HeaderSnapshot* seen, const TxnStamps& txn) {
  return take_lock(access, seen, txn, kVerbs);
}

Step share(const Access& access, const HeaderSnapshot* seen, const TxnStamps& txn) {
  if (seen == nullptr) return Step::attempt(access.held() ? kVerbs : kPreRead);
  if (access.held()) return Step::done();
  const uint64_t word = lock_seen(*seen);
  // Locked by an earlier operation of the transaction: the CAS changes nothing but proves it.
  if (word == txn.ctts) return Step::cas(kVerbs, kOffsetOfLock, txn.ctts, txn.ctts);
  return share_lock(word, kVerbs);
}

const ProtocolRules kShared = {
    .protocol = Protocol::kNowait,
    .lock_mode = LockMode::kShared,
    .stages = kCommonStages,
    .read = read_by<share, 2>,
    .lock = driven_by<lock>,
    .effects = kInPlaceEffects,
};

}  // namespace

const ProtocolRules kNowaitRules = {
    .protocol = Protocol::kNowait,
    .with_shared_locks = &kShared,
    .stages = kCommonStages,
    .read = read_by<lock>,
    .lock = driven_by<lock>,
    .effects = kInPlaceEffects,
};

}  // namespace rdmacc
