// CICADA: optimistic and multi-version (Lim et al., SIGMOD 2017; RCBench §6.2.3). Everything
// happens at the ctts, on MVCC's versions. But a reader leaves no trace in what it reads until it
// commits: then it raises rts, and looks whether it would still read the same.
//
//   Read      READ header | READ record | READ header                  newest version, wts < ctts
//             else, and for what is absent: as MVCC, rts and all
//   Lock      CAS lock 0 or early -> ctts | READ header                W1: ctts > wts, ctts >= rts;
//                                                                      what was read is the newest
//   Validate  READ header; while rts < ctts: CAS rts -> ctts | READ header
//             written by a younger one since: READ reference => READ all version heads
//   Log, Commit, Release   as MVCC
//
// What is read in one round trip is validated in one or two more, those of all records at once.
// MVCC takes two for each read. An attempt that aborts before has not made others too late.
//
// Sound as MVCC: a read counts once a header shows rts >= ctts, no older writer's lock, and the
// version that was read. Of a version that was old when it was read, or is so by now, the next
// one's stamp has fixed the end. Absences are protected as they are read, since the header of a
// group says nothing about one key. The paper's write-latest rule is W1. Its early check of
// versions, by which an attempt that is to abort does so before it writes anything, is the order of
// the stages here.

#include "engine/protocols/locks.h"
#include "engine/protocols/protocols.h"
#include "engine/txn/stages/check_in_place.h"
#include "engine/txn/stages/lock_in_place.h"
#include "engine/txn/stages/scan_in_place.h"

namespace rdmacc {
namespace {

Step read(const Access& access, const HeaderSnapshot* seen, const TxnStamps& txn) {
  const Step step = read_at_ctts(access, seen, txn);
  const bool raises = step.verdict == Verdict::kTry && (step.verbs & kCas) != 0;
  const bool row = raises && (seen->post_read.flags & kFlagDeleted) == 0;
  return row ? Step::done() : step;
}

// Nothing can come between what was read and the ctts: it is an absence, or a version whose end is
// fixed. (A version that is as young as an absence is noted to be has no room for one between.)
bool holds(const Access& access, const TxnStamps& txn) {
  return access.read_wts == txn.just_before() || access.lease == kLeaseOfOldVersion;
}

// A transaction that writes what it has read has read the newest.
Step if_newest(const Step& taken, const Access& access, const HeaderSnapshot* seen,
               const TxnStamps& txn) {
  const bool asked = taken.verdict == Verdict::kDone && access.read && !holds(access, txn);
  const bool changed = asked && seen->pre_read.wts != access.read_wts;
  return changed ? Step::abort(AbortReason::kVersionChanged) : taken;
}

Step lock(const Access& access, const HeaderSnapshot* seen, const TxnStamps& txn) {
  return if_newest(if_in_time(take_lock(access, seen, txn, kPreRead), seen, txn), access, seen,
                   txn);
}

Step lock_early(const Access& access, const HeaderSnapshot* seen, const TxnStamps& txn) {
  return if_newest(if_in_time(take_early_lock(access, seen, txn), seen, txn), access, seen, txn);
}

// An early lock's owner asks W1 again before it writes.
bool passes_to_commit(uint64_t lock, const TxnStamps& txn) {
  return locked_early(lock) || passes_at_ctts(lock, txn);
}

// What was read is not the newest any more. Was it still, when the ctts was?
Step look_for_version(const Access& access, const HeaderSnapshot& seen, const TxnStamps& txn) {
  const uint16_t did = seen.posted.verbs;
  if ((did & kReadStamps) != 0) {
    const Step chosen = choose_version(seen, txn);
    const bool same = chosen.version >= 0 && seen.versions[chosen.version].stamp == access.read_wts;
    return same ? Step::done() : Step::abort(AbortReason::kValidationFailed);
  }
  if ((did & kReadReference) == 0) return Step::attempt(kReadReference);
  const Step found = find_versions(seen);
  return found.verdict == Verdict::kTry ? found : Step::abort(AbortReason::kValidationFailed);
}

Step validate(const Access& access, const HeaderSnapshot* seen, const TxnStamps& txn) {
  if (seen == nullptr) return holds(access, txn) ? Step::done() : Step::attempt(kPostRead);
  const Header& now = seen->post_read;
  if (now.wts > txn.ctts) return look_for_version(access, *seen, txn);
  if (now.wts != access.read_wts) return Step::abort(AbortReason::kValidationFailed);
  if (!passes_to_commit(now.lock, txn)) return Step::again(kPostRead);
  if (now.rts >= txn.ctts) return Step::done();
  return Step::cas(kPostRead, kOffsetOfRts, now.rts, txn.ctts);
}

}  // namespace

const ProtocolRules kCicadaRules = {
    .protocol = Protocol::kCicada,
    .stages = kCommonStages | static_cast<uint16_t>(Stage::kRead) |
              static_cast<uint16_t>(Stage::kValidate),
    .single_read_is_atomic = true,
    .reads_at_ctts = true,
    .strictly_serializable = false,
    .read = scanned_by<read, 2>,
    .read_gap = read_gap_at_ctts,
    .lock = locked_by<lock>,
    .lock_early = driven_by<lock_early>,
    .validate = checked_by<validate>,
    .holds_until_commit = holds,
    .may_take_slot = may_take_slot_at_ctts,
    .effects = kVersionedEffects,
};

}  // namespace rdmacc
