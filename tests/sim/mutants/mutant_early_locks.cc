// Wrong rules for rows that are locked before the commit.

#include <vector>

#include "tests/sim/mutants/mutants.h"

namespace rdmacc {
namespace {

// What was locked early stays so: readers go on reading what is installed, and validators trust it.
template <Protocol kProtocol>
Step lock_leaves_early_locks(const Access& access, const HeaderSnapshot* seen,
                             const TxnStamps& txn) {
  if (!access.early) return right(kProtocol).lock(access, seen, txn);
  return seen == nullptr ? Step::attempt(kPreRead) : Step::done();
}

// Readers that have passed the early lock are not looked for when it becomes the commit's.
Step mvcc_early_lock_is_in_time(const Access& access, const HeaderSnapshot* seen,
                                const TxnStamps& txn) {
  const Step step = right(Protocol::kMvcc).lock(access, seen, txn);
  const bool was_early = seen != nullptr && seen->posted.expected == early_lock(txn.ctts);
  return was_early && step.reason == AbortReason::kTooLate ? Step::done() : step;
}

// A row that others share is locked all the same, and their counts are taken from the lock.
Step occ_locks_what_is_shared(const Access& access, const HeaderSnapshot* seen,
                              const TxnStamps& txn) {
  const Step step = right(Protocol::kOcc).lock(access, seen, txn);
  const bool shared = step.reason == AbortReason::kLockHeld && locked_shared(seen->cas_seen);
  return shared ? Step::cas(kPreRead, kOffsetOfLock, seen->cas_seen, txn.ctts) : step;
}

// Most transactions lock a row early, and others read it.
SimScenario locking(const ProtocolRules& rules) {
  SimScenario scenario = crowded(rules, kStageCodeMax, SimScenario::Load::kDoor);
  scenario.lock_percent = 60;
  scenario.transactions = 30;
  return scenario;
}

std::vector<SimMutant> make_mutants() {
  std::vector<SimMutant> mutants;
  const ProtocolRules &occ = right(Protocol::kOcc), &mvcc = right(Protocol::kMvcc),
                      &sundial = right(Protocol::kSundial), &tictoc = right(Protocol::kTictoc),
                      &maat = right(Protocol::kMaat), &timestamp = right(Protocol::kTimestamp),
                      &cicada = right(Protocol::kCicada);
  const auto add = [&mutants](const char* name, const char* breaks, const ProtocolRules& rules,
                              uint32_t first_seed = 1) {
    mutants.push_back({name, breaks, rules, locking(rules), 100});
    mutants.back().first_seed = first_seed;
  };
  add("OccLeavesEarlyLocks", "an early lock is trusted during the commit",
      with_lock(occ, lock_leaves_early_locks<Protocol::kOcc>));
  add("OccLocksWhatIsShared", "a row is locked whose lock others share",
      with_lock(occ, occ_locks_what_is_shared), 20);
  add("MvccLeavesEarlyLocks", "an early lock is passed during the commit",
      with_lock(mvcc, lock_leaves_early_locks<Protocol::kMvcc>), 20);
  add("MvccEarlyLockIsInTime", "W1 is not asked again of what was locked early",
      with_lock(mvcc, mvcc_early_lock_is_in_time), 15);
  add("SundialLeavesEarlyLocks", "the lease of what was locked early is not frozen",
      with_lock(sundial, lock_leaves_early_locks<Protocol::kSundial>));
  add("TictocLeavesEarlyLocks", "the lease of what was locked early is not frozen",
      with_lock(tictoc, lock_leaves_early_locks<Protocol::kTictoc>));
  add("MaatLeavesEarlyLocks", "the lease of what was locked early is not frozen",
      with_lock(maat, lock_leaves_early_locks<Protocol::kMaat>));
  add("TimestampLeavesEarlyLocks", "an early lock is passed during the commit",
      with_lock(timestamp, lock_leaves_early_locks<Protocol::kTimestamp>));
  add("CicadaLeavesEarlyLocks", "an early lock is passed during the commit",
      with_lock(cicada, lock_leaves_early_locks<Protocol::kCicada>), 8);
  return mutants;
}

}  // namespace

std::span<const SimMutant> early_lock_mutants() {
  static const std::vector<SimMutant> mutants = make_mutants();
  return mutants;
}

}  // namespace rdmacc
