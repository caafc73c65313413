// MVCC: multi-version timestamp ordering (RCC §4.4). Everything a transaction does happens at its
// ctts: it reads the newest version before it, and may write a record that no transaction has read
// or written at a later time. Readers never abort writers that are older, and are never validated.
//
//   Read     READ header | READ record | READ header
//            newest version is older than ctts: while rts < ctts: CAS rts -> ctts | READ header
//            else: READ reference => READ all version heads => READ version | READ its stamp
//   Lock     CAS lock 0 or early -> ctts | READ header                 W1: ctts > wts, ctts >= rts
//   early    CAS lock 0 -> early ctts | READ header                    W1, and again at Lock
//   Log      the whole transaction to every backup
//   Commit   WRITE version stamp | WRITE version | [WRITE reference |] WRITE wts = ctts |
//            WRITE length | WRITE record | WRITE lock = 0
//   Release  WRITE lock = 0 for exactly the locks that this attempt got
//
// A writer locks, then reads rts; a reader raises rts, then reads the lock: one of them sees the
// other. So the newest version is accepted only under a header that itself shows rts >= ctts, no
// older writer's lock, and the stamp of the bytes that were read. An early lock becomes a writer's
// at Lock: readers pass it before, and raise rts, which the writer reads behind the CAS of Lock.

#include "engine/protocols/locks.h"
#include "engine/protocols/protocols.h"
#include "engine/txn/stages/lock_in_place.h"
#include "engine/txn/stages/scan_in_place.h"

namespace rdmacc {

// R2: an older writer may still write a version that this transaction would have to read.
bool passes_at_ctts(uint64_t lock, const TxnStamps& txn) {
  return leaves_readable(lock, txn) || ctts_of_lock(lock) > txn.ctts;
}

// An absent key, or a group that is scanned: rts first, then the entries, read between
// pre-read and post-read, without an older inserter. A CPU loads the lock of the pre-read before
// its rts: an inserter that came between the two still has its lock at the post-read, or has
// stamped the header.
Step read_gap_at_ctts(const Header& before, const Header& after, const TxnStamps& txn) {
  if (!passes_at_ctts(before.lock, txn)) return Step::again(kNoVerbs);
  if (before.rts < txn.ctts) return Step::cas(kNoVerbs, kOffsetOfRts, before.rts, txn.ctts);
  const bool unchanged = passes_at_ctts(after.lock, txn) && after.wts == before.wts;
  return unchanged ? Step::done() : Step::again(kNoVerbs);
}

// The youngest of the versions before the ctts. Places that were never filled mean that all
// versions there have been are still here.
Step choose_version(const HeaderSnapshot& seen, const TxnStamps& txn) {
  int16_t best = kNewestVersion;
  bool complete = false;
  for (uint32_t i = 0; i < seen.history; i++) {
    const uint64_t stamp = seen.versions[i].stamp;
    if (stamp == kNoVersionStamp) {
      complete = true;
    } else if (stamp < txn.ctts && (best < 0 || stamp > seen.versions[best].stamp)) {
      best = static_cast<int16_t>(i);
    }
  }
  if (best >= 0) return Step::read_version(best);
  return complete ? Step::done(kBeforeFirstVersion) : Step::abort(AbortReason::kNoVersion);
}

// A reference is there before the stamp that was too new.
Step find_versions(const HeaderSnapshot& seen) {
  if (seen.versions_at == kNoOlderVersion) return Step::done(kBeforeFirstVersion);
  if (seen.versions_at == kOlderVersionsLost) return Step::abort(AbortReason::kNoVersion);
  return Step::attempt(kReadStamps);
}

// The newest version may be read, if a header says so that was read after it.
Step accept_newest(const HeaderSnapshot& seen, const TxnStamps& txn) {
  const Header& post_read = seen.post_read;
  if (post_read.wts != seen.pre_read.wts || !passes_at_ctts(post_read.lock, txn)) {
    return Step::again(kUntornRead);
  }
  if (post_read.rts >= txn.ctts) return Step::done();
  return Step::cas(kPostRead, kOffsetOfRts, post_read.rts, txn.ctts);
}

Step read_at_ctts(const Access& /*access*/, const HeaderSnapshot* seen, const TxnStamps& txn) {
  if (seen == nullptr) return Step::attempt(kUntornRead);
  const uint16_t did = seen->posted.verbs;
  if ((did & kReadVersion) != 0) {
    const int16_t version = seen->posted.version;
    const bool unchanged = seen->version_stamp == seen->versions[version].stamp;
    return unchanged ? Step::done(version) : Step::again(kUntornRead);
  }
  if ((did & kReadStamps) != 0) return choose_version(*seen, txn);
  if ((did & kReadReference) != 0) return find_versions(*seen);
  const Header& pre_read = seen->pre_read;
  if ((did & kPreRead) != 0 && !passes_at_ctts(pre_read.lock, txn)) return Step::again(kUntornRead);
  if (pre_read.wts < txn.ctts) return accept_newest(*seen, txn);
  // Too new for this transaction. Its bytes still name the key, so they have to be whole: not those
  // of a writer that has stamped already (its stamp is its lock) and has bytes to write.
  const bool whole = pre_read.lock != pre_read.wts && seen->post_read.wts == pre_read.wts;
  return whole ? Step::attempt(kReadReference) : Step::again(kUntornRead);
}

Step lock_at_ctts(const Access& access, const HeaderSnapshot* seen, const TxnStamps& txn) {
  return if_in_time(take_lock(access, seen, txn, kPreRead), seen, txn);
}

Step lock_early_at_ctts(const Access& access, const HeaderSnapshot* seen, const TxnStamps& txn) {
  return if_in_time(take_early_lock(access, seen, txn), seen, txn);
}

// A slot's stamps never go back, in its next life neither.
bool may_take_slot_at_ctts(const Access& slot, const TxnStamps& txn) {
  return slot.locked_wts < txn.ctts;
}

const ProtocolRules kMvccRules = {
    .protocol = Protocol::kMvcc,
    .stages = kCommonStages | static_cast<uint16_t>(Stage::kRead),
    .reads_at_ctts = true,
    .strictly_serializable = false,
    .read = scanned_by<read_at_ctts, 2>,
    .read_gap = read_gap_at_ctts,
    .lock = locked_by<lock_at_ctts>,
    .lock_early = driven_by<lock_early_at_ctts>,
    .may_take_slot = may_take_slot_at_ctts,
    .effects = kVersionedEffects,
};

}  // namespace rdmacc
