// TIMESTAMP: timestamp ordering on one version, without cascading aborts (RCBench §6.2.2). As under
// MVCC everything that a transaction does happens at its ctts. But there is no version but the
// newest: what comes too late for it aborts, reader or writer.
//
//   Read     READ header | READ record | READ header                   wts < ctts, else too late
//            while rts < ctts: CAS rts -> ctts | READ header
//   Lock     CAS lock 0 or early -> ctts | READ header                 W1: ctts > wts, ctts >= rts
//   early    CAS lock 0 -> early ctts | READ header                    W1, and again at Lock
//   Log      the whole transaction to every backup
//   Commit   WRITE wts = ctts | WRITE length | WRITE record | WRITE lock = 0
//   Release  WRITE lock = 0 for exactly the locks that this attempt got
//
// A write is hidden until its commit, and the lock is what the paper calls its pre-write: younger
// readers wait for it, older ones read on. So no transaction has read what another takes back. The
// paper's lists of transactions that wait are not needed: each looks for itself.
//
// A gap header is a record like any other: an insert or delete in a group makes older readers of
// absent keys there come too late, and a delete leaves nothing behind.

#include "engine/protocols/locks.h"
#include "engine/protocols/protocols.h"
#include "engine/txn/stages/lock_in_place.h"
#include "engine/txn/stages/scan_in_place.h"

namespace rdmacc {
namespace {

Step read(const Access& /*access*/, const HeaderSnapshot* seen, const TxnStamps& txn) {
  if (seen == nullptr) return Step::attempt(kUntornRead);
  const Header& before = seen->pre_read;
  if (before.wts > txn.ctts) return Step::abort(AbortReason::kTooLate);
  const bool looked = (seen->posted.verbs & kPreRead) != 0;
  if (looked && !passes_at_ctts(before.lock, txn)) return Step::again(kUntornRead);
  return accept_newest(*seen, txn);
}

Step read_gap(const Header& before, const Header& after, const TxnStamps& txn) {
  const bool late = before.wts > txn.ctts || after.wts > txn.ctts;
  return late ? Step::abort(AbortReason::kTooLate) : read_gap_at_ctts(before, after, txn);
}

Step lock(const Access& access, const HeaderSnapshot* seen, const TxnStamps& txn) {
  return if_in_time(take_lock(access, seen, txn, kPreRead), seen, txn);
}

Step lock_early(const Access& access, const HeaderSnapshot* seen, const TxnStamps& txn) {
  return if_in_time(take_early_lock(access, seen, txn), seen, txn);
}

}  // namespace

const ProtocolRules kTimestampRules = {
    .protocol = Protocol::kTimestamp,
    .stages = kCommonStages | static_cast<uint16_t>(Stage::kRead),
    .reads_at_ctts = true,
    .keeps_one_version = true,
    .strictly_serializable = false,
    .read = scanned_by<read, 2>,
    .read_gap = read_gap,
    .lock = locked_by<lock>,
    .lock_early = driven_by<lock_early>,
    .may_take_slot = may_take_slot_at_ctts,
    .effects = kInPlaceEffects,
};

}  // namespace rdmacc
