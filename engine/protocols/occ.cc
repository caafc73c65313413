// OCC: optimistic concurrency control as in DrTM+H §5.1 and RCC §4.3. Nothing is locked while
// the transaction runs; what it read is checked after everything that it writes is locked.
//
//   Read      READ header | READ record | READ header                atomic read, no lock
//   Lock      CAS lock 0 or early -> ctts | READ header              the whole write set
//   early     CAS lock 0 -> early ctts | READ header                 a row that is to be locked now
//   share     READ header => CAS lock n -> n + 1 | READ header       likewise, together with others
//   Validate  READ header, of the read set, after ALL locks          still_current (rule.h)
//   Log       the whole transaction to every backup
//   Commit    WRITE wts | WRITE length | WRITE record | WRITE lock = 0
//   Release   WRITE lock = 0 for exactly the locks that this attempt got
//
// An absent key and a scanned group are reads of their gap header; an insert or unlink is a write
// of it. So a phantom is a version of a gap header that changed.
//
// To readers and validators an early lock is no lock: it is one from Lock on, as if it were taken
// then. To all that want to lock it is one at once.

#include "engine/protocols/locks.h"
#include "engine/protocols/protocols.h"
#include "engine/txn/stages/check_in_place.h"
#include "engine/txn/stages/lock_in_place.h"
#include "engine/txn/stages/scan_in_place.h"

namespace rdmacc {

// The lines of one READ come in any order, so only a header read before the record and again
// after it proves that the record is whole: unlocked before, and the same stamp in both (the
// stamp is written before the bytes). The second may be locked already: the bytes are not yet new.
Step read_untorn(const Access& /*access*/, const HeaderSnapshot* seen, const TxnStamps& txn) {
  if (seen == nullptr) return Step::attempt(kUntornRead);
  return read_untorn_gap(seen->pre_read, seen->post_read, txn).verdict == Verdict::kDone
             ? Step::done()
             : Step::again(kUntornRead);
}

Step read_untorn_gap(const Header& before, const Header& after, const TxnStamps& txn) {
  const bool free = leaves_readable(before.lock, txn);
  return free && same_version(before, after) ? Step::done() : Step::again(kNoVerbs);
}

Step lock_unchanged(const Access& access, const HeaderSnapshot* seen, const TxnStamps& txn) {
  return if_unchanged(take_lock(access, seen, txn, kPreRead), access, seen);
}

Step lock_early_unchanged(const Access& access, const HeaderSnapshot* seen, const TxnStamps& txn) {
  return if_unchanged(take_early_lock(access, seen, txn), access, seen);
}

const ProtocolRules kOccRules = {
    .protocol = Protocol::kOcc,
    .stages = kCommonStages | static_cast<uint16_t>(Stage::kRead) |
              static_cast<uint16_t>(Stage::kValidate),
    .validates_moment = true,
    .single_read_is_atomic = true,
    .read = scanned_by<read_untorn>,
    .read_gap = read_untorn_gap,
    .lock = locked_by<lock_unchanged>,
    .lock_early = driven_by<lock_early_unchanged>,
    .validate = checked_by<still_current>,
    .effects = kInPlaceEffects,
};

}  // namespace rdmacc
