// Wrong rules of protocols whose versions have leases in logical time.

#include <vector>

#include "engine/storage/layout/sundial_word.h"
#include "tests/sim/mutants/mutants.h"

namespace rdmacc {
namespace {

// ---- SUNDIAL

// The lock in another word than the lease, which others renew meanwhile.
Step sundial_lock_does_not_freeze(const Access& access, const HeaderSnapshot* seen,
                                  const TxnStamps& txn) {
  const Step step = right(Protocol::kSundial).lock(access, seen, txn);
  const bool freezes = step.verdict == Verdict::kTry && step.word == kOffsetOfSundial;
  return freezes && seen != nullptr ? Step::done() : step;
}

// What is locked by another, or has a new version, is taken for renewed.
Step sundial_renews_what_is_locked(const Access& access, const HeaderSnapshot* seen,
                                   const TxnStamps& txn) {
  if (seen != nullptr && sundial_locked(seen->cas_seen)) return Step::done();
  return right(Protocol::kSundial).validate(access, seen, txn);
}
Step sundial_renews_new_versions(const Access& access, const HeaderSnapshot* seen,
                                 const TxnStamps& txn) {
  Access newest = access;
  if (seen != nullptr) newest.read_wts = seen->post_read.wts;
  return right(Protocol::kSundial).validate(newest, seen, txn);
}
Step sundial_trusts_gaps(const Access& access, const HeaderSnapshot* seen, const TxnStamps& txn) {
  if (access.gap) return Step::done();
  return right(Protocol::kSundial).validate(access, seen, txn);
}

// ---- TICTOC

// A group that changed under a miss or a scan is valid for ever.
Step tictoc_trusts_gaps(const Access& access, const HeaderSnapshot* seen, const TxnStamps& txn) {
  return access.gap ? Step::done() : right(Protocol::kTictoc).validate(access, seen, txn);
}
// The word that another has locked is believed of whatever version.
Step tictoc_any_locked_version(const Access& access, const HeaderSnapshot* seen,
                               const TxnStamps& txn) {
  Access newest = access;
  if (seen != nullptr && sundial_locked(seen->cas_seen)) newest.read_wts = seen->post_read.wts;
  return right(Protocol::kTictoc).validate(newest, seen, txn);
}
// ---- MAAT

// What has been replaced holds, whether or not others know this transaction's time.
Step maat_holds_without_a_time(const Access& access, const HeaderSnapshot* seen,
                               const TxnStamps& txn) {
  TxnStamps fixed = txn;
  fixed.fixed = true;
  return right(Protocol::kMaat).validate(access, seen, fixed);
}
// A writer leaves the times of those alone that have read what it replaces.
void maat_bounds_no_reader(WorkerId, NodeId, std::vector<Verb>& verbs) {
  constexpr uint64_t kUnbounded = (1ull << 63) - 1, kTimesMax = 1ull << 48;
  for (Verb& verb : verbs) {
    const bool bounds = verb.opcode == Opcode::kCompareSwap && verb.compare == kUnbounded &&
                        verb.operand < kTimesMax;
    if (bounds) verb.operand = verb.compare;
  }
}
// Nothing is renewed.
Step maat_renews_nothing(const Access& access, const HeaderSnapshot* seen, const TxnStamps& txn) {
  return seen != nullptr ? Step::done() : right(Protocol::kMaat).validate(access, seen, txn);
}
// What has been replaced holds, whether or not its writer knew of this reader.
Step maat_holds_unregistered(const Access& access, const HeaderSnapshot* seen,
                             const TxnStamps& txn) {
  Access registered = access;
  registered.registered = true;
  return right(Protocol::kMaat).validate(registered, seen, txn);
}
// Or before it has been: its writer may yet abort.
Step maat_holds_what_is_locked(const Access& access, const HeaderSnapshot* seen,
                               const TxnStamps& txn) {
  const bool locked = seen != nullptr && sundial_locked(seen->post_read.sundial);
  return locked && txn.fixed && access.registered
             ? Step::done()
             : right(Protocol::kMaat).validate(access, seen, txn);
}

constexpr Effect kSundialStampLast[] = {Effect::kLength,  Effect::kIdentity, Effect::kRecord,
                                        Effect::kEntries, Effect::kStamp,    Effect::kLease,
                                        Effect::kUnlock};

std::vector<SimMutant> make_mutants() {
  SimMutantTable table;
  const ProtocolRules &sundial = right(Protocol::kSundial), &tictoc = right(Protocol::kTictoc),
                      &maat = right(Protocol::kMaat);
  table.add("SundialReadsUnderTheLock",
            "equal stamps under the lock: torn (docs/sequences.md §8.6)",
            with_read(sundial, read_whether_locked_or_not), 100);
  table.add("SundialLockDoesNotFreeze", "the lock in another word than the lease",
            with_lock(sundial, sundial_lock_does_not_freeze), 100);
  table.add("SundialRenewsWhatIsLocked", "a lease extended over a commit under way",
            with_validate(sundial, sundial_renews_what_is_locked), 100);
  table.add("SundialRenewsNewVersions", "the lease of another version extended",
            with_validate(sundial, sundial_renews_new_versions), 40);
  table.add("SundialTrustsGaps", "phantoms: a gap's lease is not extended",
            with_validate(sundial, sundial_trusts_gaps), 40);
  table.add_rare("SundialStampsLast", "bytes before the stamp",
                 with_effects(sundial, kSundialStampLast));
  table.add("TictocTrustsGaps", "phantoms: a gap's lease is not extended",
            with_validate(tictoc, tictoc_trusts_gaps), 40);
  table.add("TictocAnyLockedVersion", "the validity of another version",
            with_validate(tictoc, tictoc_any_locked_version), 100);
  table.add("MaatRenewsNothing", "versions that had ended before the commit",
            with_validate(maat, maat_renews_nothing), 40);
  table.add("MaatHoldsWithoutATime", "a reader behind the writer of what it has read",
            with_validate(maat, maat_holds_without_a_time), 40);
  table.add("MaatBoundsNoReader", "a reader behind the writer of what it has read", maat, 100);
  table.all.back().scenario.prepare = [](SimFabric& fabric) {
    fabric.set_rewriter(maat_bounds_no_reader);
  };
  table.add("MaatHoldsUnregistered", "a reader that the writer knew nothing of",
            with_validate(maat, maat_holds_unregistered), 400);
  table.all.push_back({"MaatHoldsWhatIsLocked", "a reader that trusts a writer which then aborts",
                       with_validate(maat, maat_holds_what_is_locked), packed(maat), 1500});
  table.all.back().first_seed = 1860;
  return table.all;
}

}  // namespace

std::span<const SimMutant> lease_mutants() {
  static const std::vector<SimMutant> mutants = make_mutants();
  return mutants;
}

}  // namespace rdmacc
