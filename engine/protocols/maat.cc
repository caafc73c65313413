// MAAT: time intervals of transactions, adjusted while they run (Mahmoud et al., VLDB 2014; RCBench
// §6.2.3). A reader registers in what it reads; a writer that replaces that later does not make it
// lose, but takes a time behind it, and leaves it the times before. Leases and locks are TICTOC's.
//
//   begin    WRITE ctts | WRITE bound = none                 the transaction's slot, on node 0
//   Read     CAS waiter 0 -> ctts | READ header | READ record | READ header
//   Lock     as TICTOC; READ header tells whose ctts is registered
//   then     commit_tts as TICTOC; of each reader that is registered: CAS its bound -> some room
//            behind that | READ its slot, and commit_tts behind what is left to it, or fixed
//   Renew    as TICTOC; if something that was read does not hold: CAS own bound -> commit_tts
//            fixed, and then what it is registered for holds once it has been replaced
//   Log, Commit   as SUNDIAL
//   Release  as SUNDIAL, and WRITE waiter = 0
//
// The paper's lists of readers and writers are one word here: a header has room for one reader, and
// others validate as TICTOC has it, as scans and absent keys do. Writers have no list: one holds
// the lock, and a second one aborts. RCBench keeps both lists under a latch of the header, and each
// transaction's interval under another (docs/protocols.md §3.13).

#include "engine/cluster/timestamp.h"
#include "engine/protocols/leases.h"
#include "engine/storage/layout/sundial_word.h"
#include "engine/txn/stages/check_in_place.h"
#include "engine/txn/stages/lock_in_place.h"
#include "engine/txn/stages/scan_in_place.h"

namespace rdmacc {
namespace {

// Registered first, so that what locks behind the look that is accepted has seen it.
Step read(const Access& access, const HeaderSnapshot* seen, const TxnStamps& txn) {
  const Step step = read_leased(access, seen, txn);
  const bool registers = seen == nullptr && txn.registers && !access.registered;
  return registers ? Step::cas(step.verbs, kOffsetOfWaiter, 0, txn.ctts) : step;
}

Step lock(const Access& access, const HeaderSnapshot* seen, const TxnStamps& txn) {
  return lock_telling_end(access, seen, txn);
}

// Under a time that others know. What has been replaced holds: its writer came behind. What is only
// locked does not, since that writer may yet abort, and the next one would know nothing of this
// time: the lease has to be extended, or the writer waited for by the younger of the two.
Step hold_registered(const Access& access, const HeaderSnapshot* seen, const TxnStamps& txn) {
  if (seen == nullptr) return Step::attempt(kPostRead);
  const Header& now = seen->post_read;
  const bool tried = (seen->posted.verbs & kCas) != 0;
  const bool extended = tried && seen->cas_seen == seen->posted.expected;
  if (extended || now.wts != access.read_wts) return Step::done();
  if (!sundial_locked(now.sundial)) return extend_lease(now.sundial, txn);
  if (sundial_wts(now.sundial) >= txn.commit_tts) return Step::done();
  // One of its own coordinator may be waiting for this one (admission.h).
  const uint64_t holder = ctts_of_lock(now.lock);
  const bool older = locked_exclusively(now.lock) && holder < txn.ctts &&
                     worker_of_ctts(holder) != worker_of_ctts(txn.ctts);
  return older ? Step::again(kPostRead) : Step::abort(AbortReason::kLeaseLost);
}

Step validate(const Access& access, const HeaderSnapshot* seen, const TxnStamps& txn) {
  return txn.fixed && access.registered ? hold_registered(access, seen, txn)
                                        : renew_or_trust_end(access, seen, txn);
}

constexpr ProtocolRules with_registers(ProtocolRules rules) {
  rules.registers_readers = true;
  return rules;
}

}  // namespace

const ProtocolRules kMaatRules = with_registers(
    leased_rules(Protocol::kMaat, scanned_by<read>, locked_by<lock, 2>, checked_by<validate>));

}  // namespace rdmacc
