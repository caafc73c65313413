// WAITDIE: two-phase locking in which the older transaction waits for a younger holder and the
// younger one dies (RCC §4.2), so that there is no deadlock; a restarted transaction keeps its
// age. What is locked, and the stages but Lock, are NOWAIT's.
//
//   Read, Lock   READ header => CAS lock 0 -> ctts | READ header | READ record
//                held by a younger one: CAS waiter -> ctts | READ header, back off, again
//
// The waiter word holds the oldest transaction that waits. It is READ in a round before each CAS
// on the lock, and a transaction that sees an older one there dies: without it the younger could
// pass the lock among themselves for ever. One that stops waiting, with the lock or without, clears
// its own word: the driver does.

#include "engine/protocols/protocols.h"
#include "engine/txn/stages/look_in_place.h"

namespace rdmacc {
namespace {

constexpr int kVerbs = kPreRead | kReadRecord;

// Unlike the simulated time of a verb, the time that a client takes to end its transaction has
// no bound: 3,000 rounds are some 450 ms.
constexpr int kLooksMax = 3000;

Step lock(const Access& access, const HeaderSnapshot* seen, const TxnStamps& txn) {
  if (seen == nullptr) return Step::attempt(access.locked ? kVerbs : kPreRead);
  if (access.locked) return Step::done();
  const uint64_t holder = seen->pre_read.lock, waiter = seen->pre_read.waiter;
  if (waiter != 0 && waiter < txn.ctts) return Step::abort(AbortReason::kDied);
  // Free, or taken by an earlier operation of the transaction: the CAS then changes nothing but
  // proves it.
  if (holder == 0 || holder == txn.ctts) {
    return Step::cas(kVerbs, kOffsetOfLock, holder, txn.ctts);
  }
  if (is_cleaning_lock(holder)) return Step::again(kPreRead);
  if (holder < txn.ctts) return Step::abort(AbortReason::kDied);
  if (waiter == txn.ctts) return Step::again(kPreRead);
  return Step::cas(kPreRead, kOffsetOfWaiter, waiter, txn.ctts);
}

}  // namespace

const ProtocolRules kWaitdieRules = {
    .protocol = Protocol::kWaitdie,
    .stages = kCommonStages,
    .keeps_age = true,
    .looks_max = kLooksMax,
    .read = read_by<lock, 2>,
    .lock = driven_by<lock>,
    .effects = kInPlaceEffects,
};

}  // namespace rdmacc
