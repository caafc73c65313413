#include "tests/explore/mutants.h"

#include <cstring>
#include <vector>

#include "engine/storage/layout/sundial_word.h"

namespace rdmacc {

// ---- Rules

// OCC, SUNDIAL: a record whose writer has begun to write may carry the new stamp already.
Step read_whether_locked_or_not(const Access&, const HeaderSnapshot* seen, const TxnStamps&) {
  const int verbs = kPreRead | kReadRecord | kPostRead;
  if (seen == nullptr) return Step::attempt(verbs);
  return seen->pre_read.wts == seen->post_read.wts ? Step::done() : Step::again(verbs);
}

namespace {

// MVCC, TIMESTAMP: a reader that does not look whether an older writer is at work.
template <Protocol kProtocol>
Step read_past_older_locks(const Access& access, const HeaderSnapshot* seen, const TxnStamps& txn) {
  if (seen == nullptr) return right(kProtocol).read(access, seen, txn);
  HeaderSnapshot unlocked = *seen;
  unlocked.pre_read.lock = unlocked.post_read.lock = 0;
  return right(kProtocol).read(access, &unlocked, txn);
}

// OCC, SUNDIAL: a header looked at only before the record says nothing about the record.
Step read_without_last_look(const Access&, const HeaderSnapshot* seen, const TxnStamps&) {
  if (seen == nullptr) return Step::attempt(kPreRead | kReadRecord | kPostRead);
  return seen->pre_read.lock == 0 ? Step::done() : Step::again(kPreRead | kReadRecord | kPostRead);
}

Step read_gap_without_last_look(const Header& before, const Header&, const TxnStamps&) {
  return before.lock == 0 ? Step::done() : Step::again(kNoVerbs);
}

// What was read and is locked by another will be written: two of them miss each other.
Step validate_whether_locked_or_not(const Access& access, const HeaderSnapshot* seen,
                                    const TxnStamps&) {
  if (seen == nullptr) return Step::attempt(kPostRead);
  return seen->post_read.wts == access.read_wts ? Step::done()
                                                : Step::abort(AbortReason::kValidationFailed);
}

Step validate_nothing(const Access&, const HeaderSnapshot* seen, const TxnStamps&) {
  return seen == nullptr ? Step::attempt(kPostRead) : Step::done();
}

// Between the read and the lock another may have written.
template <Protocol kProtocol>
Step lock_without_comparing(const Access& access, const HeaderSnapshot* seen,
                            const TxnStamps& txn) {
  Access blind = access;
  blind.read = false;
  return right(kProtocol).lock(blind, seen, txn);
}

// A CAS that has failed is taken for one that has won.
template <Protocol kProtocol>
Step lock_without_checking(const Access& access, const HeaderSnapshot* seen, const TxnStamps& txn) {
  return seen == nullptr ? right(kProtocol).lock(access, seen, txn) : Step::done();
}

template <Protocol kProtocol, LockMode kMode = LockMode::kExclusive>
Step read_without_checking(const Access& access, const HeaderSnapshot* seen, const TxnStamps& txn) {
  const Step step = right(kProtocol, kMode).read(access, seen, txn);
  return step.verdict == Verdict::kAbort ? Step::done() : step;
}

// A share is no obstacle to one that wants to write.
template <Protocol kProtocol>
Step lock_over_shares(const Access& access, const HeaderSnapshot* seen, const TxnStamps& txn) {
  const Step step = right(kProtocol, LockMode::kShared).lock(access, seen, txn);
  const bool shared = seen != nullptr && !access.locked && locked_shared(seen->pre_read.lock);
  if (!shared || step.verdict == Verdict::kDone) return step;
  return Step::cas(kPreRead | kReadRecord, kOffsetOfLock, seen->pre_read.lock, txn.ctts);
}

Step without_raising(const Step& step) {
  return step.verdict == Verdict::kTry && (step.verbs & kCas) != 0 ? Step::done() : step;
}

// MVCC, TIMESTAMP: a reader that leaves no trace lets an older writer write behind its back.
template <Protocol kProtocol>
Step read_without_raising(const Access& access, const HeaderSnapshot* seen, const TxnStamps& txn) {
  return without_raising(right(kProtocol).read(access, seen, txn));
}
// CICADA: the same of one that commits.
Step validate_without_raising(const Access& access, const HeaderSnapshot* seen,
                              const TxnStamps& txn) {
  return without_raising(right(Protocol::kCicada).validate(access, seen, txn));
}

template <Protocol kProtocol>
Step lock_whatever_was_read(const Access& access, const HeaderSnapshot* seen,
                            const TxnStamps& txn) {
  const Step step = right(kProtocol).lock(access, seen, txn);
  return step.reason == AbortReason::kTooLate ? Step::done() : step;
}

// TIMESTAMP: what was written later.
Step read_too_late(const Access& access, const HeaderSnapshot* seen, const TxnStamps& txn) {
  const Step step = right(Protocol::kTimestamp).read(access, seen, txn);
  return step.reason == AbortReason::kTooLate ? Step::done() : step;
}

// CICADA: an older writer that is at work may be about to write what was read.
Step validate_past_older_locks(const Access& access, const HeaderSnapshot* seen,
                               const TxnStamps& txn) {
  if (seen == nullptr) return right(Protocol::kCicada).validate(access, seen, txn);
  HeaderSnapshot unlocked = *seen;
  unlocked.post_read.lock = 0;
  return right(Protocol::kCicada).validate(access, &unlocked, txn);
}

// TICTOC: what another has locked is taken for valid, however soon its lease ends.
Step validate_what_is_locked(const Access& access, const HeaderSnapshot* seen,
                             const TxnStamps& txn) {
  if (seen != nullptr && sundial_locked(seen->cas_seen)) return Step::done();
  return right(Protocol::kTictoc).validate(access, seen, txn);
}
// And a lock that promises others more than its holder keeps.
Step lock_with_a_later_end(const Access& access, const HeaderSnapshot* seen, const TxnStamps& txn) {
  Step step = right(Protocol::kTictoc).lock(access, seen, txn);
  if ((step.verbs & kCas) != 0 && step.word == kOffsetOfSundial) step.desired += 1000ull << 16;
  return step;
}

// MAAT: a reader that registers when it has read already: a writer may have looked before.
Step register_too_late(const Access& access, const HeaderSnapshot* seen, const TxnStamps& txn) {
  TxnStamps unregistered = txn;
  unregistered.registers = false;
  if (seen != nullptr && (seen->posted.verbs & kCas) != 0) return Step::done();
  const Step step = right(Protocol::kMaat).read(access, seen, unregistered);
  const bool registers = step.verdict == Verdict::kDone && txn.registers && !access.registered;
  return registers ? Step::cas(kNoVerbs, kOffsetOfWaiter, 0, txn.ctts) : step;
}
// DRTM: a writer that does not wait for what others have leased.
Step lock_over_leases(const Access& access, const HeaderSnapshot* seen, const TxnStamps& txn) {
  const Step step = right(Protocol::kDrtm).lock(access, seen, txn);
  return (step.verbs & kAwait) != 0 ? Step::done() : step;
}
// A lease is taken for one that lasts for ever.
bool any_lease_holds(const Access& access, const TxnStamps& /*txn*/) { return access.lease != 0; }
// A lease that was taken beside a writer that has looked for leases before.
Step lease_without_last_look(const Access& access, const HeaderSnapshot* seen,
                             const TxnStamps& txn) {
  if (seen == nullptr) return right(Protocol::kDrtm).read(access, seen, txn);
  HeaderSnapshot unlocked = *seen;
  unlocked.post_read.lock = 0;
  return right(Protocol::kDrtm).read(access, &unlocked, txn);
}
// And one that no writer is told of.
Step lease_without_a_word(const Access& access, const HeaderSnapshot* seen, const TxnStamps& txn) {
  const Step step = right(Protocol::kDrtm).read(access, seen, txn);
  return (step.verbs & kCas) != 0 ? Step::done_under(step.desired) : step;
}

// ---- Effects

constexpr Effect kUnlockFirst[] = {Effect::kUnlock,   Effect::kStamp,  Effect::kLength,
                                   Effect::kIdentity, Effect::kRecord, Effect::kEntries};
constexpr Effect kStampLast[] = {Effect::kLength,  Effect::kIdentity, Effect::kRecord,
                                 Effect::kEntries, Effect::kStamp,    Effect::kUnlock};
constexpr Effect kLengthFirst[] = {Effect::kLength, Effect::kStamp,   Effect::kIdentity,
                                   Effect::kRecord, Effect::kEntries, Effect::kUnlock};
constexpr Effect kLeaseAndLockFirst[] = {Effect::kStamp,  Effect::kLease,    Effect::kUnlock,
                                         Effect::kLength, Effect::kIdentity, Effect::kRecord,
                                         Effect::kEntries};
constexpr Effect kEntriesAfterUnlock[] = {Effect::kStamp,  Effect::kLength, Effect::kIdentity,
                                          Effect::kRecord, Effect::kUnlock, Effect::kEntries};

// ---- Chains

// 2PL: what is read in front of the CAS may change before it.
void read_before_cas(WorkerId, NodeId, std::vector<Verb>& verbs) {
  for (size_t i = 0; i + 1 < verbs.size(); ++i) {
    if (verbs[i].opcode != Opcode::kCompareSwap) continue;
    for (; i + 1 < verbs.size() && verbs[i + 1].opcode == Opcode::kRead; ++i) {
      std::swap(verbs[i], verbs[i + 1]);
    }
  }
}

// The record and the lock word in one WRITE, whose lines may come in any order.
void unlock_with_the_record(WorkerId, NodeId, std::vector<Verb>& verbs) {
  for (size_t i = 1; i < verbs.size(); ++i) {
    Verb& record = verbs[i - 1];
    const Verb& lock = verbs[i];
    if (record.opcode != Opcode::kWrite || lock.opcode != Opcode::kWrite || lock.bytes != 8 ||
        record.remote_offset != lock.remote_offset + kOffsetOfRecord - kOffsetOfLock) {
      continue;
    }
    const size_t before = kOffsetOfRecord - kOffsetOfLock;
    // Belongs to the world, which forgets it with everything else.
    auto* bytes = new uint64_t[(before + record.bytes) / 8]();
    std::memcpy(bytes + before / 8, record.local, record.bytes);
    record.remote_offset = lock.remote_offset;
    record.bytes += static_cast<uint32_t>(before);
    record.local = bytes;
    verbs.erase(verbs.begin() + static_cast<ptrdiff_t>(i));
  }
}

// An abort keeps its locks.
void forget_to_unlock(WorkerId, NodeId, std::vector<Verb>& verbs) {
  Verb& only = verbs[0];
  uint64_t value;
  if (verbs.size() != 1 || only.opcode != Opcode::kWrite || only.bytes != 8) return;
  std::memcpy(&value, only.local, 8);
  if (value == 0 && only.remote_offset % sizeof(Header) == kOffsetOfLock) {
    only.opcode = Opcode::kRead;
    only.local = new uint64_t;
  }
}

const ProtocolRules* rules_in_use = nullptr;

ExploreMutant vast(ExploreMutant mutant) {
  mutant.vast = true;
  return mutant;
}

}  // namespace

ProtocolRules with_read(ProtocolRules rules, StageRule read) {
  if (rules.locks_what_it_reads()) rules.lock = read;
  rules.read = read;
  return rules;
}

ProtocolRules with_gap(ProtocolRules rules, GapRule read_gap) {
  rules.read_gap = read_gap;
  return rules;
}

ProtocolRules with_lock(ProtocolRules rules, StageRule lock) {
  rules.lock = lock;
  return rules;
}

ProtocolRules with_validate(ProtocolRules rules, StageRule validate) {
  rules.validate = validate;
  return rules;
}

ProtocolRules with_hold(ProtocolRules rules, HoldsRule holds) {
  rules.holds_until_commit = holds;
  return rules;
}

ProtocolRules with_effects(ProtocolRules rules, std::span<const Effect> effects) {
  rules.effects = effects;
  return rules;
}

void put_in_use(const ProtocolRules& rules) { rules_in_use = &rules; }

const ProtocolRules* mutated_rules_of(Protocol protocol, LockMode mode) {
  return protocol == rules_in_use->protocol ? rules_in_use : rules_of(protocol, mode);
}

ExploreSetup ExploreMutant::setup() const {
  ExploreSetup setup;
  setup.protocol = rules.protocol;
  setup.lock_mode = rules.lock_mode;
  setup.plan = StagePlan(code);
  setup.words = words;
  return setup;
}

std::span<const ExploreMutant> explore_mutants() {
  constexpr auto kOcc = Protocol::kOcc, kSundial = Protocol::kSundial, kNowait = Protocol::kNowait;
  const auto& occ = right(kOcc);
  const auto& nowait = right(kNowait);
  const auto& shared = right(kNowait, LockMode::kShared);
  constexpr auto kWaitdie = Protocol::kWaitdie, kWoundwait = Protocol::kWoundwait;
  const auto& waitdie = right(kWaitdie);
  const auto& woundwait = right(kWoundwait);
  const auto& waitdie_shared = right(kWaitdie, LockMode::kShared);
  const auto& woundwait_shared = right(kWoundwait, LockMode::kShared);
  const auto& mvcc = right(Protocol::kMvcc);
  const auto& sundial = right(kSundial);
  constexpr auto kTictoc = Protocol::kTictoc, kTimestamp = Protocol::kTimestamp,
                 kCicada = Protocol::kCicada;
  const auto& tictoc = right(kTictoc);
  const auto& maat = right(Protocol::kMaat);
  const auto& timestamp = right(kTimestamp);
  const auto& cicada = right(kCicada);
  constexpr auto kDrtm = Protocol::kDrtm;
  const auto& drtm = right(kDrtm);
  const ProtocolRules blind_occ = with_lock(occ, lock_without_comparing<kOcc>);
  const ProtocolRules blind_sundial = with_lock(sundial, lock_without_comparing<kSundial>);
  const Rule share_anything = read_without_checking<kNowait, LockMode::kShared>;
  const Rule never_die = read_without_checking<kWaitdie>;
  const Rule never_wait = lock_without_checking<kWoundwait>;
  const Rule share_and_never_die = read_without_checking<kWaitdie, LockMode::kShared>;
  static const std::vector<ExploreMutant> mutants = {
      {"OccWithoutPostRead", "gx,gy|px,py",
       with_gap(with_read(occ, read_without_last_look), read_gap_without_last_look)},
      {"OccReadsUnderTheLock", "gx|px", with_read(occ, read_whether_locked_or_not)},
      {"OccValidationIgnoresLocks", "gx,py|gy,px",
       with_validate(occ, validate_whether_locked_or_not)},
      {"OccValidatesNothing", "gx,gy|px,py", with_validate(occ, validate_nothing)},
      {"OccValidatesNothingByRpc", "gx,gy|px,py", with_validate(occ, validate_nothing), nullptr, 0},
      {"OccLockDoesNotCompare", "gx,px|gx,px", blind_occ},
      {"OccLockDoesNotCompareByRpc", "gx,px|gx,px", blind_occ, nullptr, 0},
      {"DrtmWritesOverLeases", "gx,py|gy,px", with_lock(drtm, lock_over_leases)},
      {"DrtmWritesOverLeasesByRpc", "gx,py|gy,px", with_lock(drtm, lock_over_leases), nullptr, 0},
      {"DrtmLeasesLastForEver", "gx,py|gy,px", with_hold(drtm, any_lease_holds)},
      {"DrtmLeasesWithoutLastLook", "gx,gy|px,py", with_read(drtm, lease_without_last_look)},
      {"DrtmLeasesWithoutAWord", "gx,py|gy,px", with_read(drtm, lease_without_a_word)},
      {"DrtmValidatesNothing", "gx,py|gy,px", with_validate(drtm, validate_nothing)},
      {"DrtmLockDoesNotCompare", "gx,px|gx,px", with_lock(drtm, lock_without_comparing<kDrtm>)},
      {"OccUnlocksFirst", "gx|px", with_effects(occ, kUnlockFirst)},
      {"OccStampsLast", "gx|px", with_effects(occ, kStampLast)},
      {"OccLengthBeforeStamp", "px|gx", with_effects(occ, kLengthFirst), nullptr, kStageCodeMax,
       /*words=*/true},
      {"OccEntriesAfterUnlock", "gz,gx|iz,px", with_effects(occ, kEntriesAfterUnlock)},
      {"NowaitLockDoesNotCheck", "gx,px|gx,px", with_read(nowait, lock_without_checking<kNowait>)},
      {"NowaitSharesWithoutChecking", "gx,gy|px,py",
       with_lock(with_read(shared, share_anything), shared.lock)},
      {"NowaitUnlocksFirst", "gx|px", with_effects(nowait, kUnlockFirst)},
      {"NowaitReadsBeforeItsCas", "gx|px", nowait, read_before_cas},
      {"NowaitUnlocksWithTheRecord", "gx|px", nowait, unlock_with_the_record},
      {"NowaitForgetsToUnlock", "gx,gy|gy,gx", nowait, forget_to_unlock},
      {"WaitdieLockDoesNotCheck", "gx,px|gx,px", with_read(waitdie, never_die)},
      {"WaitdieSharesWithoutChecking", "px,py|gx,gy",
       with_lock(with_read(waitdie_shared, share_and_never_die), waitdie_shared.lock)},
      {"WaitdieLocksOverShares", "gx,gy|px,py",
       with_lock(waitdie_shared, lock_over_shares<kWaitdie>)},
      {"WoundwaitLockDoesNotCheck", "gx,px|gx,px", with_read(woundwait, never_wait)},
      {"WoundwaitLocksOverShares", "gx,gy|px,py",
       with_lock(woundwait_shared, lock_over_shares<kWoundwait>)},
      {"MvccDoesNotRaiseRts", "px,gy|gx,py",
       with_read(mvcc, read_without_raising<Protocol::kMvcc>)},
      {"MvccReadsPastOlderLocks", "px|gx", with_read(mvcc, read_past_older_locks<Protocol::kMvcc>)},
      {"MvccWritesWhatWasReadLater", "gx,px|gx,px",
       with_lock(mvcc, lock_whatever_was_read<Protocol::kMvcc>)},
      {"SundialWithoutPostRead", "gx|px",
       with_gap(with_read(sundial, read_without_last_look), read_gap_without_last_look)},
      {"SundialRenewsNothing", "gx,py|gy,px", with_validate(sundial, validate_nothing)},
      {"SundialLockDoesNotCompare", "gx,px|gx,px", blind_sundial},
      {"SundialUnlocksFirst", "gx|px", with_effects(sundial, kLeaseAndLockFirst)},
      {"TictocRenewsNothing", "gx,py|gy,px", with_validate(tictoc, validate_nothing)},
      {"TictocLockDoesNotCompare", "gx,px|gx,px",
       with_lock(tictoc, lock_without_comparing<kTictoc>)},
      {"TictocTrustsWhatIsLocked", "gx,py|gy,px", with_validate(tictoc, validate_what_is_locked)},
      {"TictocLockPromisesMore", "gx,py|gy,px", with_lock(tictoc, lock_with_a_later_end)},
      vast({"MaatLockDoesNotCompare", "gx,px|gx,px",
            with_lock(maat, lock_without_comparing<Protocol::kMaat>)}),
      vast({"MaatRegistersTooLate", "gx,py|gy,px", with_read(maat, register_too_late)}),
      {"TimestampDoesNotRaiseRts", "px,gy|gx,py",
       with_read(timestamp, read_without_raising<kTimestamp>)},
      {"TimestampReadsPastOlderLocks", "px|gx",
       with_read(timestamp, read_past_older_locks<kTimestamp>)},
      {"TimestampWritesWhatWasReadLater", "gx,px|gx,px",
       with_lock(timestamp, lock_whatever_was_read<kTimestamp>)},
      {"TimestampReadsWhatIsTooNew", "gx,gy|px,py", with_read(timestamp, read_too_late)},
      {"CicadaValidatesNothing", "gx,py|gy,px", with_validate(cicada, validate_nothing)},
      {"CicadaDoesNotRaiseRts", "gx,py|gy,px", with_validate(cicada, validate_without_raising)},
      {"CicadaValidatesPastOlderLocks", "gx,py|gy,px",
       with_validate(cicada, validate_past_older_locks)},
      {"CicadaLockDoesNotCompare", "gx,px|gx,px",
       with_lock(cicada, lock_without_comparing<kCicada>)},
  };
  return mutants;
}

}  // namespace rdmacc
