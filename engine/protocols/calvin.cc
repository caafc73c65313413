// CALVIN: deterministic execution (RCC §4.6). Nothing is locked, and nothing aborts by conflict:
// every node executes the same requests in the same order (engine/protocols/calvin/). What is here
// are the rules for single records that go with it.
//
//   Read       an interactive transaction's: READ header | READ record | READ header, no lock
//   Broadcast  each node's batch of requests to all nodes
//   Forward    what participants read, or what became of their read set, to those who execute
//   then       every executing node: CAS lock 0 -> stamp, and the effects of its local writes
//
// Locks keep readers from half-written rows; there is never anybody else who holds one. A read
// set is checked at its transaction's place in the order, so one that spans several nodes, and
// even a single row, is only known to be current there.

#include "engine/protocols/protocols.h"

namespace rdmacc {
namespace {

// Only a slot with a stale lock CAS on it could be held; the node tries again.
Step lock(const Access& access, const Look* seen, const TxnStamps& txn) {
  if (seen == nullptr) {
    return access.locked ? Step::attempt(kFirstLook)
                         : Step::cas(kFirstLook, kOffsetOfLock, 0, txn.ctts);
  }
  return access.locked ? Step::done() : Step::abort(AbortReason::kLockHeld);
}

Step validate(const Access& access, const Look* seen, const TxnStamps& txn) {
  if (seen == nullptr) return Step::attempt(kLastLook);
  const bool free = seen->last.lock == 0 || seen->last.lock == txn.ctts;
  return seen->last.wts == access.read_wts && free ? Step::done()
                                                   : Step::abort(AbortReason::kReconnaissanceStale);
}

}  // namespace

const ProtocolRules kCalvinRules = {
    .protocol = Protocol::kCalvin,
    .stages = static_cast<uint16_t>(Stage::kBroadcast) | static_cast<uint16_t>(Stage::kForward),
    .commits_in_order = true,
    .read = read_untorn,
    .lock = lock,
    .validate = validate,
    .effects = kInPlaceEffects,
};

}  // namespace rdmacc
