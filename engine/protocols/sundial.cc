// SUNDIAL: logical leases (RCC §4.5). A version is valid from wts to rts in logical time; a
// transaction commits at one logical time, commit_tts, at which everything that it read is valid
// and which lies behind the leases of everything that it writes. Lock, wts and rts are one word,
// so that a renewal fails if anything changed (engine/storage/layout/sundial_word.h).
//
//   Read     READ header | READ record | READ header     commit_tts >= wts
//   Lock     CAS lock 0 or early -> ctts | READ header   names the holder to others
//            CAS word unlocked -> locked | READ header   freezes the lease; commit_tts >= rts + 1
//   early    CAS lock 0 -> early ctts | READ header      keeps writers out; the lease goes on
//   Renew    CAS word rts -> commit_tts | READ header    of what was read, after ALL locks
//   Log      the whole transaction to every backup
//   Commit   WRITE wts | WRITE length | WRITE record | WRITE word wts = rts = commit_tts |
//            WRITE lock = 0
//   Release  WRITE word as the lock found it | WRITE lock = 0
//
// The header's own wts, which every write changes before its bytes, tells a reader that the bytes
// are whole and a renewer that its lease is still that of the version it read, although another
// renewal moved the word. Renewers heed no lock but that of the lease, and readers pass early
// ones; what a transaction has locked early and does not write it renews like what it has only
// read.

#include "engine/cluster/timestamp.h"
#include "engine/protocols/leases.h"
#include "engine/protocols/locks.h"
#include "engine/storage/layout/sundial_word.h"
#include "engine/txn/stages/check_in_place.h"
#include "engine/txn/stages/lock_in_place.h"
#include "engine/txn/stages/scan_in_place.h"

namespace rdmacc {

// What is held for a commit: the lease; and the lock of a slot that a row is put into, whose lease
// is of its former life until the row is there. A stale location leads to it. What reads to write
// waits for early locks, too.
Step read_leased_gap(const Header& before, const Header& after, const TxnStamps& txn) {
  const bool free = !sundial_locked(before.sundial) && leaves_readable(before.lock, txn);
  return free && same_version(before, after) ? Step::done() : Step::again(kNoVerbs);
}

Step read_leased(const Access& /*access*/, const HeaderSnapshot* seen, const TxnStamps& txn) {
  if (seen == nullptr) return Step::attempt(kUntornRead);
  return read_leased_gap(seen->pre_read, seen->post_read, txn).verdict == Verdict::kDone
             ? Step::done()
             : Step::again(kUntornRead);
}

namespace {

Step freeze_lease(uint64_t word, const TxnStamps& txn) {
  return Step::cas(kPreRead, kOffsetOfSundial, word,
                   sundial_locked_word(sundial_wts(word), worker_of_ctts(txn.ctts)));
}

}  // namespace

// OCC's lock, and then the lease.
Step lock_leased(const Access& access, const HeaderSnapshot* seen, const TxnStamps& txn) {
  const Step locked = if_unchanged(take_lock(access, seen, txn, kPreRead), access, seen);
  if (locked.verdict != Verdict::kDone || access.lease_locked) return locked;
  const bool tried = (seen->posted.verbs & kCas) != 0 && seen->posted.word == kOffsetOfSundial;
  const uint64_t word = tried ? seen->cas_seen : seen->pre_read.sundial;
  // Only the lock's holder locks the word, so it can be locked as soon as renewals allow.
  return sundial_locked(word) ? Step::abort(AbortReason::kLockHeld) : freeze_lease(word, txn);
}

// One CAS from the lease that was read. A renewal by another transaction conflicts with none.
Step renew_lease(const Access& access, const HeaderSnapshot* seen, const TxnStamps& txn) {
  uint64_t word = access.lease;
  if (seen != nullptr) {
    if (seen->cas_seen == seen->posted.expected) return Step::done();
    word = seen->cas_seen;
    if (sundial_locked(word) || seen->post_read.wts != access.read_wts) {
      return Step::abort(access.gap ? AbortReason::kGapChanged : AbortReason::kLeaseLost);
    }
  }
  return extend_lease(word, txn);
}

HeldLease note_lease(uint64_t word, uint64_t expected, uint64_t desired) {
  CHECK(word == kOffsetOfSundial);
  const bool locked = sundial_locked(desired);
  return {locked, locked ? expected : desired};
}

bool locked_with_lease(const Access& access) {
  return access.locked_to_commit() && access.lease_locked;
}

uint64_t behind_leases(const Access& access) {
  if (access.write) return sundial_rts_bound(access.lease) + 1;
  return access.read ? sundial_wts(access.lease) : 0;
}

bool lease_lasts(const Access& access, const TxnStamps& txn) {
  return sundial_rts_bound(access.lease) >= txn.commit_tts;
}

const ProtocolRules kSundialRules =
    leased_rules(Protocol::kSundial, scanned_by<read_leased>, locked_by<lock_leased, 2>,
                 checked_by<renew_lease>);

}  // namespace rdmacc
