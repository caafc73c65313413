#pragma once
#include "engine/protocols/protocols.h"

// What the locks of several protocols are made of. Here, and not in the file of the first that has
// it, since a rule that is compiled with what carries it out must have its body at hand: a call
// would make all that it looks at live in memory.

namespace rdmacc {

// The lock word from free (or a reader count of this transaction's reads and no others, or its
// early lock) to own, and `verbs` behind it; a transaction that finds it held aborts: NOWAIT's
// lock, with which all but WAITDIE's begin.
inline Step take_lock(const Access& access, const HeaderSnapshot* seen, const TxnStamps& txn,
                      int verbs) {
  const uint64_t own = access.early ? early_lock(txn.ctts) : access.reader_count;
  if (seen == nullptr) {
    return access.locked_to_commit() ? Step::attempt(verbs)
                                     : Step::cas(verbs, kOffsetOfLock, own, txn.ctts);
  }
  if (access.locked_to_commit()) return Step::done();
  const bool tried = (seen->posted.verbs & kCas) != 0;
  const uint64_t word = tried ? seen->cas_seen : seen->pre_read.lock;
  if (is_cleaning_lock(word)) return Step::again(kPreRead);
  // Not tried: there was a cleaning lock before.
  if (!tried && word == own) return Step::cas(verbs, kOffsetOfLock, word, txn.ctts);
  // Nothing takes an early lock away, but a node that loses its memory.
  return Step::abort(access.early ? AbortReason::kNodeRestarted : AbortReason::kLockHeld);
}

// From free to an early lock, which others may read past until take_lock() has made it whole.
inline Step take_early_lock(const Access& access, const HeaderSnapshot* seen,
                            const TxnStamps& txn) {
  if (access.early) return Step::done();
  Step step = take_lock(access, seen, txn, kPreRead);
  if ((step.verbs & kCas) != 0) step.desired = early_lock(txn.ctts);
  return step;
}

// OCC and SUNDIAL: what was read before must still be what the lock covers; a blind write takes
// what is there.
inline Step if_unchanged(const Step& taken, const Access& access, const HeaderSnapshot* seen) {
  if (taken.verdict == Verdict::kDone && access.read && seen->pre_read.wts != access.read_wts) {
    return Step::abort(access.gap ? AbortReason::kGapChanged : AbortReason::kVersionChanged);
  }
  return taken;
}

// W1 of MVCC, TIMESTAMP and CICADA: behind all readers and writers, on a header that was read after
// the CAS.
inline Step if_in_time(const Step& taken, const HeaderSnapshot* seen, const TxnStamps& txn) {
  if (taken.verdict != Verdict::kDone) return taken;
  const bool in_time = txn.ctts > seen->pre_read.wts && txn.ctts >= seen->pre_read.rts;
  return in_time ? taken : Step::abort(AbortReason::kTooLate);
}

}  // namespace rdmacc
