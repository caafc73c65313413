// TICTOC: data-driven timestamps (Yu et al., SIGMOD 2016). A transaction finds its time at its
// commit, from what it has read and writes: behind the end of every version that it replaces, and
// not before any that it has read. Then what was read has to be valid at that time. Leases, reads
// and locks are SUNDIAL's; what is here is how a read is validated, and what a lock leaves to see.
//
//   Read     READ header | READ record | READ header     no lease is extended
//   Lock     CAS lock 0 or early -> ctts | READ header   names the holder to others
//            CAS word unlocked -> locked | READ header   with the lease's end in wts' place
//   then     commit_tts = max(wts of what was read, rts + 1 of what is written)
//   Renew    of what was read and ends before commit_tts, after ALL locks:
//            CAS word rts -> commit_tts | READ header
//            locked by another meanwhile: holds if its end is not before commit_tts
//   Log, Commit, Release   as SUNDIAL
//
// The paper's word keeps wts and rts beside the lock bit, so that a validator of a locked version
// can tell whether it is valid for long enough. Here the locked word has its holder's worker in
// the place of the distance. But nothing asks for the wts of a version that is locked, and its end
// does as well: the word says that instead (engine/storage/layout/sundial_word.h). The holder comes
// behind that end, whatever becomes of it, and the header's own wts, read behind the word, says
// that the version is still the one that was read.

#include "engine/cluster/timestamp.h"
#include "engine/protocols/leases.h"
#include "engine/storage/layout/sundial_word.h"
#include "engine/txn/stages/check_in_place.h"
#include "engine/txn/stages/lock_in_place.h"
#include "engine/txn/stages/scan_in_place.h"

namespace rdmacc {
namespace {

// A rule of its own, so that SUNDIAL's is compiled in SUNDIAL's file alone, where it is one with
// the code that carries it out.
Step read(const Access& access, const HeaderSnapshot* seen, const TxnStamps& txn) {
  return read_leased(access, seen, txn);
}

Step lock(const Access& access, const HeaderSnapshot* seen, const TxnStamps& txn) {
  return lock_telling_end(access, seen, txn);
}

Step validate(const Access& access, const HeaderSnapshot* seen, const TxnStamps& txn) {
  return renew_or_trust_end(access, seen, txn);
}

}  // namespace

// SUNDIAL's lock; the locked word tells where the lease ends.
Step lock_telling_end(const Access& access, const HeaderSnapshot* seen, const TxnStamps& txn) {
  Step step = lock_leased(access, seen, txn);
  if ((step.verbs & kCas) != 0 && step.word == kOffsetOfSundial) {
    step.desired = sundial_locked_word(sundial_rts_bound(step.expected), worker_of_ctts(txn.ctts));
  }
  return step;
}

// SUNDIAL's renewal; and a version that another has locked holds as long as the word says.
Step renew_or_trust_end(const Access& access, const HeaderSnapshot* seen, const TxnStamps& txn) {
  const bool locked = seen != nullptr && sundial_locked(seen->cas_seen);
  const bool holds = locked && seen->post_read.wts == access.read_wts &&
                     sundial_wts(seen->cas_seen) >= txn.commit_tts;
  return holds ? Step::done() : renew_lease(access, seen, txn);
}

const ProtocolRules kTictocRules =
    leased_rules(Protocol::kTictoc, scanned_by<read>, locked_by<lock, 2>, checked_by<validate>);

}  // namespace rdmacc
