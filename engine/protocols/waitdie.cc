// WAITDIE: two-phase locking in which the older transaction waits for a younger holder and the
// younger one dies (RCC §4.2), so that there is no deadlock; a restarted transaction keeps its
// age. What is locked, and the stages but Lock, are NOWAIT's.
//
//   Read, Lock   READ header => CAS lock 0 -> ctts | READ header, record
//                held by a younger one: CAS waiter -> ctts | READ header, back off, again
//   Read shared  READ header => CAS lock n -> n+1 | READ header, record
//   Lock shared  as Lock, with CAS lock own count -> ctts; others share it: as held by a younger
//   one
//
// The waiter word holds the oldest transaction that waits. It is READ in a round before each CAS
// on the lock, and a transaction that sees an older one there dies: without it the younger could
// pass the lock among themselves for ever. One that stops waiting, with the lock or without, clears
// its own word: the driver does.
//
// A reader count names no one, so one that wants to write cannot compare its age with readers'. It
// waits for them whatever its age. Younger readers that come later die of its waiter word, and so
// does a younger sharer that wants to write, too, which would be a deadlock. Of longer circles that
// pass through a share no word tells: there a wait is a matter of a few looks, where shares
// may be held, and that ends the circle (docs/protocols.md §3.2).

#include "engine/protocols/protocols.h"
#include "engine/txn/stages/look_in_place.h"

namespace rdmacc {
namespace {

constexpr int kVerbs = kPreRead | kReadRecord;

// Unlike the simulated time of a verb, the time that a client takes to end its transaction has
// no bound: 3,000 rounds are some 450 ms.
constexpr int kLooksMax = 3000;

// Held, by a younger one or by readers: in the waiter word, that later ones may see it.
Step wait(uint64_t waiter, const TxnStamps& txn) {
  if (waiter == txn.ctts) return Step::again(kPreRead);
  return Step::cas(kPreRead, kOffsetOfWaiter, waiter, txn.ctts);
}

Step lock(const Access& access, const HeaderSnapshot* seen, const TxnStamps& txn) {
  if (seen == nullptr) return Step::attempt(access.locked ? kVerbs : kPreRead);
  if (access.locked) return Step::done();
  const uint64_t holder = seen->pre_read.lock, waiter = seen->pre_read.waiter;
  if (waiter != 0 && waiter < txn.ctts) return Step::abort(AbortReason::kDied);
  // Free but for own shares, or taken by an earlier operation of the transaction: the CAS then
  // changes nothing but proves it.
  if (holder == access.reader_count || holder == txn.ctts) {
    return Step::cas(kVerbs, kOffsetOfLock, holder, txn.ctts);
  }
  if (is_cleaning_lock(holder)) return Step::again(kPreRead);
  const bool older = locked_exclusively(holder) && holder < txn.ctts;
  return older ? Step::abort(AbortReason::kDied) : wait(waiter, txn);
}

Step share(const Access& access, const HeaderSnapshot* seen, const TxnStamps& txn) {
  if (seen == nullptr) return Step::attempt(access.held() ? kVerbs : kPreRead);
  if (access.held()) return Step::done();
  const uint64_t word = seen->pre_read.lock, waiter = seen->pre_read.waiter;
  if (waiter != 0 && waiter < txn.ctts) return Step::abort(AbortReason::kDied);
  if (word == txn.ctts) return Step::cas(kVerbs, kOffsetOfLock, txn.ctts, txn.ctts);
  if (word < kReadersMax) return Step::cas(kVerbs, kOffsetOfLock, word, word + 1);
  if (is_cleaning_lock(word)) return Step::again(kPreRead);
  return word < txn.ctts ? Step::abort(AbortReason::kDied) : wait(waiter, txn);
}

const ProtocolRules kShared = {
    .protocol = Protocol::kWaitdie,
    .lock_mode = LockMode::kShared,
    .stages = kCommonStages,
    .keeps_age = true,
    .looks_max = kLooksMaxBesideShares,
    .read = read_by<share, 2>,
    .lock = driven_by<lock>,
    .effects = kInPlaceEffects,
};

}  // namespace

const ProtocolRules kWaitdieRules = {
    .protocol = Protocol::kWaitdie,
    .with_shared_locks = &kShared,
    .stages = kCommonStages,
    .keeps_age = true,
    .looks_max = kLooksMax,
    .read = read_by<lock, 2>,
    .lock = driven_by<lock>,
    .effects = kInPlaceEffects,
};

}  // namespace rdmacc
