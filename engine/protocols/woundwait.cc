// WOUND_WAIT: two-phase locking in which the older transaction wounds and the younger waits
// (RCBench §6.2.1). A wound is a request to give way: the transaction that finds its own while it
// waits for a lock aborts, and comes back with its age. One that waits for nothing commits, wounded
// or not, and gives its locks back soon anyway.
//
//   Read, Lock   CAS lock 0 -> ctts | READ header, record                        one batch
//   held by an   READ header | READ own wound, back off, and again; then the CAS
//   older one
//   held by a    the same, with a WRITE of the holder's wound
//   younger one
//   Read shared  READ header => CAS lock n -> n+1 | READ header, record
//   Lock shared  CAS lock own count -> ctts | READ header, record
//   shared by    CAS waiter -> ctts | READ header | READ own wound, back off, and again
//   others
//   Log, Commit, Release   as NOWAIT
//
// No deadlock: around a circle of transactions that wait, one waits for a younger one, which is
// wounded and, waiting too, finds its wound. The lock word names its holder, so that what is
// wounded is what holds the lock: the paper writes owner and lock apart, and between the two a
// wound meets the owner before. Nor does a commit have to look: its CAS from "running" to
// "committed" protects a holder whose lock is taken away, and here none is.
//
// A reader count names no one, so readers cannot be wounded. One that wants to write waits for them
// with its ctts in the waiter word, of which the oldest stays: younger readers that come later wait
// behind it, and a younger sharer that wants to write, too, gives way. Of longer circles that pass
// through a share no word tells: there a wait is bounded by a few looks, where shares may be
// held, and that ends the circle (docs/protocols.md §3.7).

#include "engine/protocols/protocols.h"
#include "engine/txn/stages/look_in_place.h"

namespace rdmacc {
namespace {

constexpr int kVerbs = kPreRead | kReadRecord;
constexpr int kWait = kPreRead | kReadWound;
// As WAITDIE's: the time that a client takes to end its transaction has no bound.
constexpr int kLooksMax = 3000;

bool was_wounded(const HeaderSnapshot& seen, const TxnStamps& txn) {
  return (seen.posted.verbs & kReadWound) != 0 && seen.wound == txn.ctts;
}

// Held exclusively, by another.
Step wait(uint64_t holder, const TxnStamps& txn) {
  const bool younger = holder > txn.ctts && !is_cleaning_lock(holder);
  return younger ? Step::wound(kWait, holder) : Step::again(kWait);
}

Step lock(const Access& access, const HeaderSnapshot* seen, const TxnStamps& txn) {
  const uint64_t own = access.reader_count;
  if (seen == nullptr) {
    return access.locked ? Step::attempt(kVerbs) : Step::cas(kVerbs, kOffsetOfLock, own, txn.ctts);
  }
  if (access.locked) return Step::done();
  if (was_wounded(*seen, txn)) return Step::abort(AbortReason::kWounded);
  const bool waited = (seen->posted.verbs & kReadWound) != 0;
  const uint64_t holder = waited ? seen->pre_read.lock : seen->cas_seen;
  // Free but for own shares, or taken by an earlier operation of the transaction: the CAS then
  // changes nothing but proves it.
  if (holder == own || holder == txn.ctts) {
    return Step::cas(kVerbs, kOffsetOfLock, holder, txn.ctts);
  }
  if (locked_exclusively(holder)) return wait(holder, txn);
  const uint64_t waiter = seen->pre_read.waiter;
  if (waiter != 0 && waiter < txn.ctts) {
    // What the older one waits for is this one's share, too.
    return own > 0 ? Step::abort(AbortReason::kWounded) : Step::again(kWait);
  }
  if (waiter == txn.ctts) return Step::again(kWait);
  return Step::cas(kWait, kOffsetOfWaiter, waiter, txn.ctts);
}

Step share(const Access& access, const HeaderSnapshot* seen, const TxnStamps& txn) {
  if (seen == nullptr) return Step::attempt(access.held() ? kVerbs : kPreRead);
  if (access.held()) return Step::done();
  if (was_wounded(*seen, txn)) return Step::abort(AbortReason::kWounded);
  const uint64_t word = seen->pre_read.lock, waiter = seen->pre_read.waiter;
  if (word == txn.ctts) return Step::cas(kVerbs, kOffsetOfLock, txn.ctts, txn.ctts);
  if (locked_exclusively(word)) return wait(word, txn);
  if ((waiter != 0 && waiter < txn.ctts) || word == kReadersMax) return Step::again(kWait);
  return Step::cas(kVerbs, kOffsetOfLock, word, word + 1);
}

const ProtocolRules kShared = {
    .protocol = Protocol::kWoundwait,
    .lock_mode = LockMode::kShared,
    .stages = kCommonStages,
    .keeps_age = true,
    .looks_max = kLooksMaxBesideShares,
    .read = read_by<share, 2>,
    .lock = driven_by<lock>,
    .effects = kInPlaceEffects,
};

}  // namespace

const ProtocolRules kWoundwaitRules = {
    .protocol = Protocol::kWoundwait,
    .with_shared_locks = &kShared,
    .stages = kCommonStages,
    .keeps_age = true,
    .looks_max = kLooksMax,
    .read = read_by<lock>,
    .lock = driven_by<lock>,
    .effects = kInPlaceEffects,
};

}  // namespace rdmacc
