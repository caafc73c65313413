// Wrong rules and wrong orders of effects. Those of tests/explore are run here, too: there a
// program of two transactions shows each, here it has to show in a crowd.

#include <algorithm>
#include <cstring>
#include <vector>

#include "tests/sim/campaign.h"
#include "tests/sim/mutants/mutants.h"

namespace rdmacc {
namespace {

// ---- OCC

// A group that changed under a miss or a scan does not matter.
Step occ_trusts_gaps(const Access& access, const HeaderSnapshot* seen, const TxnStamps& txn) {
  if (seen != nullptr && access.gap) return Step::done();
  return right(Protocol::kOcc).validate(access, seen, txn);
}

// ---- MVCC

// An old version that was overwritten while it was read.
Step mvcc_version_unchecked(const Access& access, const HeaderSnapshot* seen,
                            const TxnStamps& txn) {
  if (seen != nullptr && (seen->posted.verbs & kReadVersion) != 0) {
    return Step::done(seen->posted.version);
  }
  return right(Protocol::kMvcc).read(access, seen, txn);
}

// A transaction that has read a record at its ctts cannot write it any more.
Step mvcc_lock_after_own_read(const Access& access, const HeaderSnapshot* seen,
                              const TxnStamps& txn) {
  const Step step = right(Protocol::kMvcc).lock(access, seen, txn);
  const bool read_now = step.verdict == Verdict::kDone && seen->pre_read.rts == txn.ctts;
  return read_now ? Step::abort(AbortReason::kTooLate) : step;
}

// Scanners and misses leave no trace: an older inserter may still come.
Step mvcc_gap_not_raised(const Header& before, const Header& after, const TxnStamps& txn) {
  const Step step = right(Protocol::kMvcc).read_gap(before, after, txn);
  return step.verdict == Verdict::kTry ? Step::done() : step;
}

// Scanners and misses do not look whether an older inserter is at work.
Step mvcc_gap_lock_ignored(const Header& before, const Header& after, const TxnStamps& txn) {
  Header unlocked_before = before, unlocked_after = after;
  unlocked_before.lock = unlocked_after.lock = 0;
  return right(Protocol::kMvcc).read_gap(unlocked_before, unlocked_after, txn);
}

// WOUND_WAIT: two that wait for each other, and neither gives way.
Step wait_for_any(const Access& access, const HeaderSnapshot* seen, const TxnStamps& txn) {
  Step step = right(Protocol::kWoundwait).lock(access, seen, txn);
  step.verbs = static_cast<uint16_t>(step.verbs & ~kWound);
  return step;
}

// The writer is not compared with later readers.
Step mvcc_lock_ignores_readers(const Access& access, const HeaderSnapshot* seen,
                               const TxnStamps& txn) {
  if (seen == nullptr) return right(Protocol::kMvcc).lock(access, seen, txn);
  HeaderSnapshot unread = *seen;
  unread.pre_read.rts = 0;
  return right(Protocol::kMvcc).lock(access, &unread, txn);
}

// ---- CICADA

// What was read is old by now, whichever version was there at the transaction's time.
Step cicada_any_old_version(const Access& access, const HeaderSnapshot* seen,
                            const TxnStamps& txn) {
  const bool looked = seen != nullptr && (seen->posted.verbs & kReadStamps) != 0;
  return looked ? Step::done() : right(Protocol::kCicada).validate(access, seen, txn);
}

// ---- DRTM

// A group's header whose lease no inserter is told of.
Step drtm_gap_without_a_word(const Header& before, const Header& after, const TxnStamps& txn) {
  const Step step = right(Protocol::kDrtm).read_gap(before, after, txn);
  return (step.verbs & kCas) != 0 ? Step::done_under(step.desired) : step;
}
// Clocks are taken for exact: a lease is over for its writer, or lasts for its reader, up to the
// clocks' error too early or too late.
Step drtm_lock_ahead_of_time(const Access& access, const HeaderSnapshot* seen,
                             const TxnStamps& txn) {
  if (seen == nullptr) return right(Protocol::kDrtm).lock(access, seen, txn);
  HeaderSnapshot late = *seen;
  late.over_us += kClockWidthUsMax;
  Step step = right(Protocol::kDrtm).lock(access, &late, txn);
  if ((step.verbs & kAwait) != 0) step.desired -= kClockWidthUsMax;
  return step;
}
bool drtm_holds_for_too_long(const Access& access, const TxnStamps& txn) {
  return access.lease + (kClockWidthUsMax << 16) > txn.commit_tts;
}
// What another transaction has leased alone is taken for one's own.
Step drtm_lock_over_unshared(const Access& access, const HeaderSnapshot* seen,
                             const TxnStamps& txn) {
  const Step step = right(Protocol::kDrtm).lock(access, seen, txn);
  return (step.verbs & kAwait) != 0 && !lease_shared(seen->pre_read.rts) ? Step::done() : step;
}

// ---- Effects

constexpr Effect kVersionBeforeItsStamp[] = {
    Effect::kVersionRecord, Effect::kVersionStamp, Effect::kStamp,   Effect::kLength,
    Effect::kIdentity,      Effect::kRecord,       Effect::kEntries, Effect::kUnlock};
constexpr Effect kMvccStampLast[] = {
    Effect::kVersionStamp, Effect::kVersionRecord, Effect::kLength, Effect::kIdentity,
    Effect::kRecord,       Effect::kEntries,       Effect::kStamp,  Effect::kUnlock};
constexpr Effect kMvccUnlockFirst[] = {
    Effect::kUnlock, Effect::kVersionStamp, Effect::kVersionRecord, Effect::kStamp,
    Effect::kLength, Effect::kIdentity,     Effect::kRecord,        Effect::kEntries};
constexpr Effect kMvccKeepsNoVersion[] = {Effect::kStamp,  Effect::kLength,  Effect::kIdentity,
                                          Effect::kRecord, Effect::kEntries, Effect::kUnlock};
constexpr Effect kForgetsTheRecord[] = {Effect::kStamp, Effect::kLength, Effect::kIdentity,
                                        Effect::kEntries, Effect::kUnlock};
constexpr Effect kForgetsToUnlock[] = {Effect::kStamp, Effect::kLength, Effect::kIdentity,
                                       Effect::kRecord, Effect::kEntries};

// ---- Those of the exploration, and what is said of each there. It notices them all in every
// check, so that seeds look for them with RARE_MUTANTS=1 alone.

struct Shared {
  const char* name;
  const char* breaks;
  uint32_t seeds_max;
  bool long_seeds = false;
};

constexpr Shared kShared[] = {
    {"OccWithoutPostRead", "no header after the record: torn", 300},
    {"OccReadsUnderTheLock", "no lock check: bytes half written", 40},
    {"OccValidationIgnoresLocks", "write skew of two that lock first", 100},
    {"OccValidatesNothing", "stale reads", 40},
    {"OccValidatesNothingByRpc", "stale reads, by RPC", 40},
    {"OccLockDoesNotCompare", "lost updates", 40},
    {"OccLockDoesNotCompareByRpc", "lost updates, by RPC", 40},
    {"OccUnlocksFirst", "bytes change after the unlock", 40},
    {"OccStampsLast", "old bytes under the new stamp", 400, true},
    {"OccLengthBeforeStamp", "new length, old stamp", 400, true},
    {"OccEntriesAfterUnlock", "index entries after the gap's unlock", 100},
    {"NowaitLockDoesNotCheck", "a lost CAS taken for a lock", 40},
    {"NowaitSharesWithoutChecking", "a share of what is locked", 40},
    {"NowaitUnlocksFirst", "bytes change after the unlock", 40},
    {"NowaitReadsBeforeItsCas", "READ before CAS", 100},
    {"NowaitUnlocksWithTheRecord", "lock and record in one WRITE (docs/sequences.md §8.4)", 200},
    {"NowaitForgetsToUnlock", "locks left by aborts", 40},
    {"WaitdieLockDoesNotCheck", "a lost CAS taken for a lock", 40},
    {"WaitdieSharesWithoutChecking", "a share of what is locked", 40},
    {"WaitdieLocksOverShares", "what others have read changes under them", 40},
    {"WoundwaitLockDoesNotCheck", "a lost CAS taken for a lock", 40},
    {"WoundwaitLocksOverShares", "what others have read changes under them", 40},
    {"MvccDoesNotRaiseRts", "an older writer behind a reader's back", 40},
    {"MvccReadsPastOlderLocks", "no R2: misses an older writer", 100},
    {"MvccWritesWhatWasReadLater", "W1 dropped: versions out of order", 40},
    {"SundialWithoutPostRead", "no header after the record: torn", 1000},
    {"SundialRenewsNothing", "leases that have ended", 40},
    {"SundialLockDoesNotCompare", "lost updates", 40},
    {"SundialUnlocksFirst", "lease and lock given before the bytes", 100},
    {"TictocRenewsNothing", "versions that had ended before the commit", 40},
    {"TictocLockDoesNotCompare", "lost updates", 40},
    {"TictocTrustsWhatIsLocked", "write skew of two that lock first", 100},
    {"TictocLockPromisesMore", "a locked version is said to be valid beyond its end", 100},
    {"MaatLockDoesNotCompare", "lost updates", 40},
    {"MaatRegistersTooLate", "a writer that has looked for readers before", 100},
    {"TimestampDoesNotRaiseRts", "an older writer behind a reader's back", 40},
    {"TimestampReadsPastOlderLocks", "no wait for an older writer's commit", 100},
    {"TimestampWritesWhatWasReadLater", "W1 dropped: versions out of order", 40},
    {"TimestampReadsWhatIsTooNew", "what a younger one has written", 40},
    {"DrtmWritesOverLeases", "write skew", 40},
    {"DrtmLeasesLastForEver", "reads of different moments", 100},
    {"DrtmLeasesWithoutLastLook", "a lease beside a writer that has looked before", 100},
    {"DrtmLeasesWithoutAWord", "a lease that writers do not heed", 40},
    {"DrtmLockDoesNotCompare", "lost updates", 40},
    {"CicadaValidatesNothing", "reads of different moments", 40},
    {"CicadaDoesNotRaiseRts", "an older writer behind a reader's back", 40},
    {"CicadaValidatesPastOlderLocks", "an older writer about to write what was read", 100},
    {"CicadaLockDoesNotCompare", "lost updates", 40},
};

SimMutant of_exploration(const Shared& shared) {
  const auto all = explore_mutants();
  const auto found = std::find_if(all.begin(), all.end(), [&shared](const ExploreMutant& mutant) {
    return std::strcmp(mutant.name, shared.name) == 0;
  });
  CHECK(found != all.end());
  SimScenario scenario =
      shared.long_seeds ? packed(found->rules, found->code) : crowded(found->rules, found->code);
  if (found->rewriter) {
    scenario.prepare = [rewriter = found->rewriter](SimFabric& fabric) {
      fabric.set_rewriter(rewriter);
    };
  }
  return {shared.name, shared.breaks, found->rules, scenario, shared.seeds_max, /*rare=*/true};
}

std::vector<SimMutant> make_mutants() {
  SimMutantTable table;
  for (const Shared& shared : kShared) table.all.push_back(of_exploration(shared));
  const ProtocolRules& occ = right(Protocol::kOcc);
  const ProtocolRules& mvcc = right(Protocol::kMvcc);
  table.add("OccTrustsGaps", "phantoms: a gap header is not validated",
            with_validate(occ, occ_trusts_gaps), 40);
  const ProtocolRules& drtm = right(Protocol::kDrtm);
  table.add("DrtmTrustsGaps", "phantoms: a gap's lease that no writer is told of",
            with_gap(drtm, drtm_gap_without_a_word), 400);
  table.add("DrtmLocksAheadOfTime", "a clock that is ahead ends others' leases",
            with_lock(drtm, drtm_lock_ahead_of_time), 400);
  table.add("DrtmHoldsForTooLong", "a clock that is behind makes leases longer",
            with_hold(drtm, drtm_holds_for_too_long), 400);
  table.add("DrtmLocksOverUnshared", "a lease of one transaction is no lease",
            with_lock(drtm, drtm_lock_over_unshared), 100);
  table.add("OccForgetsTheRecord", "a new stamp over the old bytes",
            with_effects(occ, kForgetsTheRecord), 40);
  table.add("WoundwaitDoesNotWound", "two wait for each other, and lose both",
            with_read(right(Protocol::kWoundwait), wait_for_any), 40);
  table.add("OccForgetsToUnlock", "locks left by commits", with_effects(occ, kForgetsToUnlock), 10);
  table.add_rare("MvccVersionUnchecked", "no look at the old version's stamp after its bytes",
                 with_read(mvcc, mvcc_version_unchecked));
  table.add("MvccCannotWriteWhatItRead",
            "W1 as ctts > rts: aborts for ever (docs/sequences.md §8.2)",
            with_lock(mvcc, mvcc_lock_after_own_read), 10);
  table.add("MvccGapNotRaised", "an older insert behind a scan's back (docs/sequences.md §8.7)",
            with_gap(mvcc, mvcc_gap_not_raised), 100);
  table.add("MvccGapLockIgnored", "a scan beside an older inserter (docs/sequences.md §8.7)",
            with_gap(mvcc, mvcc_gap_lock_ignored), 200);
  table.add("MvccLockIgnoresReaders", "W1 without rts: writes behind a reader's back",
            with_lock(mvcc, mvcc_lock_ignores_readers), 40);
  table.add_rare("MvccVersionBeforeItsStamp", "the slot before its stamp",
                 with_effects(mvcc, kVersionBeforeItsStamp));
  table.add("MvccStampsLast", "bytes before the stamp", with_effects(mvcc, kMvccStampLast), 100);
  table.add("MvccUnlocksFirst", "bytes change after the unlock",
            with_effects(mvcc, kMvccUnlockFirst), 100);
  table.add("MvccKeepsNoVersion", "the version before is lost to older readers",
            with_effects(mvcc, kMvccKeepsNoVersion), 40);
  const ProtocolRules& timestamp = right(Protocol::kTimestamp);
  const ProtocolRules& cicada = right(Protocol::kCicada);
  table.add("TimestampGapsAreNeverTooNew", "an absence as of before what was inserted and deleted",
            with_gap(timestamp, mvcc.read_gap), 100);
  table.add("CicadaAnyOldVersion", "a version that was written over before the ctts",
            with_validate(cicada, cicada_any_old_version), 100);
  return table.all;
}

}  // namespace

SimScenario crowded(const ProtocolRules& rules, uint16_t code, SimScenario::Load load) {
  SimScenario scenario;
  scenario.protocol = rules.protocol;
  scenario.lock_mode = rules.lock_mode;
  scenario.code = code;
  scenario.load = load;
  scenario.keys = 4;
  scenario.coordinators = 4;
  scenario.stall_percent = 12;
  scenario.history = 1;
  scenario.events_max = 10'000'000;
  return scenario;
}

SimScenario packed(const ProtocolRules& rules, uint16_t code) {
  SimScenario scenario = crowded(rules, code);
  pack(scenario);
  return scenario;
}

void SimMutantTable::add(const char* name, const char* breaks, const ProtocolRules& rules,
                         uint32_t seeds_max) {
  all.push_back({name, breaks, rules, crowded(rules), seeds_max});
}

void SimMutantTable::add_rare(const char* name, const char* breaks, const ProtocolRules& rules) {
  constexpr uint32_t kRareSeedsMax = 400;
  all.push_back({name, breaks, rules, packed(rules), kRareSeedsMax, /*rare=*/true});
}

std::span<const SimMutant> rule_mutants() {
  static const std::vector<SimMutant> mutants = make_mutants();
  return mutants;
}

}  // namespace rdmacc
