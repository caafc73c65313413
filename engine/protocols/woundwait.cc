// WOUND_WAIT: two-phase locking in which the older transaction wounds and the younger waits
// (RCBench §6.2.1). A wound is a request to give way: the transaction that finds its own while it
// waits for a lock aborts, and comes back with its age. One that waits for nothing commits, wounded
// or not, and gives its locks back soon anyway.
//
//   Read, Lock   CAS lock 0 -> ctts | READ header | READ record                 one batch
//   held by an   READ header | READ own wound, back off, and again; then the CAS
//   older one
//   held by a    the same, with a WRITE of the holder's wound
//   younger one
//   Log, Commit, Release   as NOWAIT
//
// No deadlock: around a circle of transactions that wait, one waits for a younger one, which is
// wounded and, waiting too, finds its wound. The lock word names its holder, so that what is
// wounded is what holds the lock: the paper writes owner and lock apart, and between the two a
// wound meets the owner before. Nor does a commit have to look: its CAS from "running" to
// "committed" protects a holder whose lock is taken away, and here none is.

#include "engine/protocols/protocols.h"
#include "engine/txn/stages/look_in_place.h"

namespace rdmacc {
namespace {

constexpr int kVerbs = kPreRead | kReadRecord;
constexpr int kWait = kPreRead | kReadWound;
// As WAITDIE's: the time that a client takes to end its transaction has no bound.
constexpr int kLooksMax = 3000;

Step lock(const Access& access, const HeaderSnapshot* seen, const TxnStamps& txn) {
  if (seen == nullptr) {
    return access.locked ? Step::attempt(kVerbs) : Step::cas(kVerbs, kOffsetOfLock, 0, txn.ctts);
  }
  if (access.locked) return Step::done();
  const bool waited = (seen->posted.verbs & kReadWound) != 0;
  if (waited && seen->wound == txn.ctts) return Step::abort(AbortReason::kWounded);
  const uint64_t holder = waited ? seen->pre_read.lock : seen->cas_seen;
  // Free, or taken by an earlier operation of the transaction: the CAS then changes nothing but
  // proves it.
  if (holder == 0 || holder == txn.ctts) return Step::cas(kVerbs, kOffsetOfLock, holder, txn.ctts);
  const bool younger = holder > txn.ctts && !is_cleaning_lock(holder);
  return younger ? Step::wound(kWait, holder) : Step::again(kWait);
}

}  // namespace

const ProtocolRules kWoundwaitRules = {
    .protocol = Protocol::kWoundwait,
    .stages = kCommonStages,
    .keeps_age = true,
    .looks_max = kLooksMax,
    .read = read_by<lock>,
    .lock = driven_by<lock>,
    .effects = kInPlaceEffects,
};

}  // namespace rdmacc
