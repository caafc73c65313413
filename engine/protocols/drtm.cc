// DRTM: leases by the clock (Wei et al., SOSP 2015). A read takes a shared lock that ends by
// itself, at a time of the cluster's clock; a writer locks exclusively and waits until leases have
// run out; a commit confirms by one look at the clock, and no verb, that all of its leases last.
// The lease's word is rts (engine/storage/layout/lease_word.h), apart from the lock's.
//
//   Read      READ header | READ record | READ header
//             no lease there that is shared and lasts: CAS rts -> end of lease | READ header
//   Lock      CAS lock 0 or early -> ctts | READ header              unchanged since it was read
//             leased to others: nothing is posted until the clock is past the lease's end
//   early     CAS lock 0 -> early ctts | READ header                 waits for no lease
//   Confirm   the clock, once, after ALL locks: what is leased for longer holds
//   Validate  READ header, of what is not                            still_current (rule.h)
//   Log, Commit, Release   as OCC
//
// A reader raises rts, then sees the lock free; a writer locks, then reads rts: one of them sees
// the other, as under MVCC. What was read is current as long as the lease lasts, so the moment at
// which the clock was read is the transaction's. An older reader's lease makes a writer wait while
// it holds its lock, so that no new lease is taken meanwhile.
//
// A lease that no other transaction shares does not keep its own from writing. What is read in
// order to be written takes none, since its lock proves it unchanged; nor do rows of scans, which
// outlast leases: they are validated, and so is what a lease has run out on.

#include "engine/protocols/locks.h"
#include "engine/protocols/protocols.h"
#include "engine/storage/layout/lease_word.h"
#include "engine/txn/stages/check_in_place.h"
#include "engine/txn/stages/lock_in_place.h"
#include "engine/txn/stages/scan_in_place.h"

namespace rdmacc {
namespace {

// Of a header that was seen free after its rts. Shared leases may be relied upon by all, and one
// with the transaction's own word by no other.
Step take_lease(uint64_t word, bool wanted, const TxnStamps& txn) {
  if (word == txn.lease) return Step::done_under(word);
  const bool shared = lease_shared(word);
  const bool lasts = lease_end_us(word) + kLeaseUs / 2 >= lease_end_us(txn.lease);
  if (!wanted || txn.lease == 0 || (shared && lasts)) return Step::done_under(shared ? word : 0);
  const uint64_t taken =
      over_at_draw(word, txn.lease) ? txn.lease : shared_lease(std::max(word, txn.lease));
  return Step::cas(kPostRead, kOffsetOfRts, word, taken);
}

// An untorn read, and no writer at the end of it: one that has locked by then may have looked at
// rts before the lease was there.
bool may_be_leased(const Header& before, const Header& after, const TxnStamps& txn) {
  return leaves_readable(before.lock, txn) && leaves_readable(after.lock, txn) &&
         same_version(before, after);
}

Step read(const Access& access, const HeaderSnapshot* seen, const TxnStamps& txn) {
  if (seen == nullptr) return Step::attempt(kUntornRead);
  if (!may_be_leased(seen->pre_read, seen->post_read, txn)) return Step::again(kUntornRead);
  const bool scans = access.tag_only;
  return take_lease(seen->post_read.rts, !scans && !txn.reads_to_write, txn);
}

Step read_gap(const Header& before, const Header& after, const TxnStamps& txn) {
  if (!may_be_leased(before, after, txn)) return Step::again(kNoVerbs);
  return take_lease(after.rts, !txn.reads_to_write, txn);
}

// Held whole once no other transaction has a lease. None is taken under the lock, so that the rts
// which was read behind it is the last that counts.
Step behind_leases(const Step& taken, const Access& access, const HeaderSnapshot* seen,
                   const TxnStamps& txn) {
  if (taken.verdict != Verdict::kDone) return taken;
  const uint64_t word = seen->pre_read.rts;
  const bool own = word == access.lease && !lease_shared(word);
  const bool awaited = (seen->posted.verbs & kAwait) != 0 && seen->over_us >= lease_end_us(word);
  const bool free = own || awaited || over_at_draw(word, txn.lease);
  return free ? taken : Step::await(lease_end_us(word));
}

Step lock(const Access& access, const HeaderSnapshot* seen, const TxnStamps& txn) {
  return behind_leases(if_unchanged(take_lock(access, seen, txn, kPreRead), access, seen), access,
                       seen, txn);
}

Step lock_early(const Access& access, const HeaderSnapshot* seen, const TxnStamps& txn) {
  return if_unchanged(take_early_lock(access, seen, txn), access, seen);
}

Step validate(const Access& access, const HeaderSnapshot* seen, const TxnStamps& txn) {
  return still_current(access, seen, txn);
}

bool lease_lasts(const Access& access, const TxnStamps& txn) {
  return access.lease > txn.commit_tts;
}

}  // namespace

const ProtocolRules kDrtmRules = {
    .protocol = Protocol::kDrtm,
    .stages = kCommonStages | static_cast<uint16_t>(Stage::kRead) |
              static_cast<uint16_t>(Stage::kValidate),
    .validates_moment = true,
    .single_read_is_atomic = true,
    .read = scanned_by<read, 2>,
    .read_gap = read_gap,
    .lock = locked_by<lock>,
    .lock_early = driven_by<lock_early>,
    .validate = checked_by<validate>,
    .holds_until_commit = lease_lasts,
    .leases_by_clock = true,
    .effects = kInPlaceEffects,
};

}  // namespace rdmacc
