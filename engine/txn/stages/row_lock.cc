#include "engine/txn/stages/row_lock.h"

#include "engine/txn/driver/driver.h"
#include "engine/txn/stages/scan_in_place.h"

namespace rdmacc {
namespace {

// What is being installed is whole again after a few reads; one that locks while it runs is not.
constexpr int kLooksAtInstalls = 3;

bool locked_by_another(uint64_t lock, const TxnStamps& txn) {
  return locked_exclusively(lock) && ctts_of_lock(lock) != txn.ctts;
}

// Shared together with others: what was read must still be what the lock covers.
Step share_unchanged(const Access& access, const HeaderSnapshot* seen, const TxnStamps& /*txn*/) {
  if (seen == nullptr) return Step::attempt(kPreRead);
  if (!access.held()) return share_lock(lock_seen(*seen), kPreRead);
  const bool changed = access.read && seen->pre_read.wts != access.read_wts;
  return changed ? Step::abort(AbortReason::kVersionChanged) : Step::done();
}

// The same of what was read as of the ctts: nothing later is there.
Step share_in_time(const Access& access, const HeaderSnapshot* seen, const TxnStamps& txn) {
  const bool late = seen != nullptr && access.held() && seen->pre_read.wts > txn.ctts;
  return late ? Step::abort(AbortReason::kTooLate) : share_unchanged(access, seen, txn);
}

// An atomic read, unless the header is locked: then there is nothing to read.
Step read_unless_locked(const Access& /*access*/, const HeaderSnapshot* seen,
                        const TxnStamps& txn) {
  if (seen == nullptr) return Step::attempt(kUntornRead);
  const bool done = was_skipped(*seen, txn) || same_version(seen->pre_read, seen->post_read);
  return done ? Step::done() : Step::again(kUntornRead);
}

// Nothing is being installed: a scanner's or an inserter's lock does not change the entries.
Step read_gap_unless_installed(const Header& before, const Header& after,
                               const TxnStamps& /*txn*/) {
  return same_version(before, after) ? Step::done() : Step::again(kNoVerbs);
}

// Of a table that only commits which have ended, or end now, have written to: an early lock is none
// of those, nor is a number of readers.
bool is_at_rest(uint64_t lock, const TxnStamps& txn) {
  return !locked_by_another(lock, txn) || locked_early(lock);
}

Step read_at_rest_gap(const Header& before, const Header& after, const TxnStamps& txn) {
  const bool rests = is_at_rest(before.lock, txn) && same_version(before, after);
  return rests ? Step::done() : Step::again(kNoVerbs);
}

Step read_at_rest(const Access& /*access*/, const HeaderSnapshot* seen, const TxnStamps& txn) {
  if (seen == nullptr) return Step::attempt(kUntornRead);
  const Step gap = read_at_rest_gap(seen->pre_read, seen->post_read, txn);
  return gap.verdict == Verdict::kDone ? Step::done() : Step::again(kUntornRead);
}

}  // namespace

bool is_held_by_another(AbortReason reason) {
  return reason == AbortReason::kLockHeld || reason == AbortReason::kDied ||
         reason == AbortReason::kWaitedTooLong || reason == AbortReason::kReadUnstable;
}

ProtocolRules no_wait_rules(const ProtocolRules& rules, RowLockMode mode) {
  ProtocolRules changed = rules;
  changed.looks_max = rules.locks_what_it_reads() ? 0 : kLooksAtInstalls;
  if (!rules.lock_early) return changed;
  changed.lock = rules.lock_early;
  if (mode == RowLockMode::kShare) {
    changed.lock = rules.reads_at_ctts ? driven_by<share_in_time> : driven_by<share_unchanged>;
  }
  return changed;
}

ProtocolRules skipping_locked(const ProtocolRules& rules) {
  ProtocolRules changed = rules;
  changed.skips_locked = true;
  changed.read = driven_by<read_unless_locked>;
  changed.read_gap = read_gap_unless_installed;
  return changed;
}

ProtocolRules reading_as_stored(const ProtocolRules& rules) {
  ProtocolRules changed = skipping_locked(rules);
  changed.skips_locked = false;
  changed.reads_as_stored = true;
  return changed;
}

ProtocolRules reading_at_rest(const ProtocolRules& rules) {
  ProtocolRules changed = rules;
  changed.read = scanned_by<read_at_rest>;
  changed.read_gap = read_at_rest_gap;
  return changed;
}

bool was_skipped(const HeaderSnapshot& seen, const TxnStamps& txn) {
  return locked_by_another(seen.pre_read.lock, txn) || locked_by_another(seen.post_read.lock, txn);
}

}  // namespace rdmacc
