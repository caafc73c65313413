// CALVIN: deterministic execution (RCC §4.6). Nothing is locked, and nothing aborts by conflict:
// every node executes the same requests in the same order (engine/protocols/calvin/). What is here
// are the rules for single records that go with it.
//
//   Read       an interactive transaction's: READ header | READ record | READ header, no lock
//   Broadcast  each node's batch of requests to all nodes
//   Forward    what participants read, or what became of their read set, to the executing nodes
//   then       every executing node: CAS lock 0 -> stamp, and the effects of its local writes
//
// Locks keep readers from half-written rows; no other transaction ever holds one. A read
// set is checked at its transaction's place in the order, so one that spans several nodes, and
// even a single row, is only known to be current there.

#include "engine/protocols/locks.h"
#include "engine/protocols/protocols.h"
#include "engine/txn/stages/look_in_place.h"

namespace rdmacc {
namespace {

Step read(const Access& access, const HeaderSnapshot* seen, const TxnStamps& txn) {
  return read_untorn(access, seen, txn);
}

// Only a slot with a stale lock CAS on it could be held; the node tries again.
Step lock(const Access& access, const HeaderSnapshot* seen, const TxnStamps& txn) {
  return take_lock(access, seen, txn, kPreRead);
}

}  // namespace

const ProtocolRules kCalvinRules = {
    .protocol = Protocol::kCalvin,
    .stages = static_cast<uint16_t>(Stage::kBroadcast) | static_cast<uint16_t>(Stage::kForward),
    .commits_in_order = true,
    .read = read_by<read>,
    .read_gap = read_untorn_gap,
    .lock = driven_by<lock>,
    .effects = kInPlaceEffects,
};

}  // namespace rdmacc
