#pragma once
#include <span>

#include "engine/txn/rule/access.h"
#include "engine/txn/rule/outcome.h"
#include "engine/txn/rule/stage.h"

// A protocol is a ProtocolRules in one file. Its conditional stages are rules: pure functions from
// what was last seen of one record to what to try next. The driver (drive.h) turns the answer into
// verbs, wherever it runs: at the coordinator over the wire or in the owner's RPC handler. Its
// Commit stage is a list of effects in their order (install.h).

namespace rdmacc {

// The verbs of one round on one record; always posted in this order.
enum StepVerbs : uint16_t {
  kNoVerbs = 0,
  kCas = 1,  // on a word of the header
  kPreRead = 2,
  // The newest record. With kPreRead and without kPostRead it is under a lock that keeps both as
  // they are: one READ may have them.
  kReadRecord = 4,
  kReadVersion = 8,  // one old version, then its stamp again
  kPostRead = 16,
  kReadStamps = 32,      // heads of all old versions
  kWound = 64,           // WRITE the wound of the transaction `desired`
  kReadWound = 128,      // of the transaction itself
  kReadReference = 256,  // where the old versions are
  kAwait = 512,          // none of the fabric: a look at the clock, after a pause if one is due
};

enum class Verdict : uint8_t {
  kTry,  // post `verbs`
  kDone,
  kLookAgain,  // post `verbs` again after a backoff
  kAbort,
};

// Which version a rule has accepted, or asks for.
constexpr int16_t kNewestVersion = -1;
constexpr int16_t kBeforeFirstVersion = -2;  // the key was absent: the record came later

struct Step {
  Verdict verdict;
  uint16_t verbs;
  AbortReason reason;
  int16_t version;  // kNewestVersion, or the number of an old one
  uint64_t word;    // of the CAS: offset in the header
  uint64_t expected;
  // Of the CAS. Of a wound, the ctts that is wounded; of kAwait, the time; of what is done with
  // `word` kOffsetOfRts, the lease that is noted.
  uint64_t desired;

  // Field by field: of an aggregate that it copies, the compiler forgets what the fields are, and a
  // driver that is compiled for a rule lives of their being known.
  constexpr Step() : Step(Verdict::kAbort) {}
  constexpr explicit Step(Verdict of, int of_verbs = kNoVerbs, AbortReason why = AbortReason::kNone)
      : verdict(of),
        verbs(static_cast<uint16_t>(of_verbs)),
        reason(why),
        version(kNewestVersion),
        word(0),
        expected(0),
        desired(0) {}
  constexpr Step(const Step& other)
      : verdict(other.verdict),
        verbs(other.verbs),
        reason(other.reason),
        version(other.version),
        word(other.word),
        expected(other.expected),
        desired(other.desired) {}
  constexpr Step& operator=(const Step& other) {
    verdict = other.verdict;
    verbs = other.verbs;
    reason = other.reason;
    version = other.version;
    word = other.word;
    expected = other.expected;
    desired = other.desired;
    return *this;
  }

  static Step attempt(int verbs) { return Step(Verdict::kTry, verbs); }
  static Step cas(int verbs, uint64_t word, uint64_t expected, uint64_t desired) {
    Step step = attempt(verbs | kCas);
    step.word = word;
    step.expected = expected;
    step.desired = desired;
    return step;
  }
  static Step read_version(int16_t version) {
    Step step = attempt(kReadVersion);
    step.version = version;
    return step;
  }
  static Step done(int16_t version = kNewestVersion) {
    Step step(Verdict::kDone);
    step.version = version;
    return step;
  }
  // Done, and the access is to note this lease by the clock.
  static Step done_under(uint64_t lease) {
    Step step = done();
    step.word = kOffsetOfRts;
    step.desired = lease;
    return step;
  }
  // What the access is to note as its lease; `sundial`: SUNDIAL's word, as it was read.
  uint64_t lease_or(uint64_t sundial) const { return word == kOffsetOfRts ? desired : sundial; }
  static Step again(int verbs) { return Step(Verdict::kLookAgain, verbs); }
  // Looks again, and asks the holder of the lock to give way.
  static Step wound(int verbs, uint64_t holder) {
    Step step = again(verbs | kWound);
    step.desired = holder;
    return step;
  }
  // Looks again once this microsecond of the cluster's clock is over.
  static Step await(uint64_t us) {
    Step step = again(kAwait);
    step.desired = us;
    return step;
  }
  static Step abort(AbortReason reason) { return Step(Verdict::kAbort, kNoVerbs, reason); }
};

// What the rounds so far saw of one record. In registered memory.
struct HeaderSnapshot {
  Header pre_read;         // loaded in ascending order, before the record, or with it (kReadRecord)
  Header post_read;        // loaded in descending order, after the record
  uint64_t cas_seen;       // what the CAS found
  uint64_t version_stamp;  // of the old version that was read, after its bytes
  uint64_t versions_at;    // kReadReference: their block's offset, or that there is none
  uint64_t wound;          // kReadWound: the ctts of what was wounded last, of some of its worker
  uint64_t wounded;        // what kWound writes
  uint64_t over_us;        // kAwait: what is over by the cluster's clock
  // Not filled by verbs:
  Step posted;            // what the latest round did
  VersionHead* versions;  // of all old versions (kReadStamps)
  uint32_t history;       // how many there are
};

// What a rule may know of its transaction.
struct TxnStamps {
  uint64_t ctts = 0;  // what its lock words hold; MVCC's timestamp
  // Once everything is locked: SUNDIAL's logical time of the commit; DRTM's, of the clock.
  uint64_t commit_tts = 0;
  uint64_t lease = 0;  // DRTM: what it takes (lease_word.h); 0: none
  // It reads to write, or to lock: others' early locks are in its way as locks for a commit are.
  bool reads_to_write = false;
  // It reads what it is about to lock for itself alone: what others share is in its way, too.
  bool reads_to_lock = false;
  // MAAT: what it reads now it registers for.
  bool registers = false;
  // MAAT: others know its commit_tts, and come behind it with what it is registered for.
  bool fixed = false;

  // No version that the transaction reads is later, and it writes none that early.
  uint64_t just_before() const { return ctts - 1; }
};

// An untorn read: the record between a pre-read and a post-read of its header, and whether both
// saw the same version of it.
constexpr int kUntornRead = kPreRead | kReadRecord | kPostRead;
inline bool same_version(const Header& before, const Header& after) {
  return before.wts == after.wts && before.incarnation == after.incarnation;
}

// `seen` is nullptr before the first round. The identity of the header was checked already, and
// locks that a CAS has taken are noted in `access`.
using Rule = Step (*)(const Access& access, const HeaderSnapshot* seen, const TxnStamps& txn);

// What a gap header says of the entries that were read between these two looks at it: kDone, they
// are the group's; kTry, after this CAS they are to be read again.
using GapRule = Step (*)(const Header& before, const Header& after, const TxnStamps& txn);

class FirstLook;
class RowReads;
struct ScannedRead;
struct StageContext;
struct RecordState;
struct LockWork;

// A rule and the code that carries it out, compiled for this rule alone: `driven_by<rule>`
// (driver.h), for rules that read `read_by<rule>` (look_in_place.h), which has the first look at
// keys as well, for those of them that lock nothing `scanned_by<rule>` (scan_in_place.h), for rules
// that lock at the commit what was read without a lock `locked_by<rule>` (lock_in_place.h), and for
// rules that validate `checked_by<rule>` (check_in_place.h). A plain function is carried out
// through its pointer.
struct StageRule {
  using Drive = Status (*)(StageContext& context, Rule rule, std::span<RecordState> records);
  using Look = Status (*)(StageContext& context, Rule rule, FirstLook& first);
  using Check = Status (*)(StageContext& context, Rule rule, std::span<Access* const> accesses);
  using CheckReads = Status (*)(StageContext& context, Rule rule, TableId table,
                                std::span<const ScannedRead> reads);
  using Scan = Status (*)(StageContext& context, Rule rule, RowReads& reads);
  using Lock = Status (*)(StageContext& context, Rule rule, std::span<LockWork> works);

  StageRule() = default;
  StageRule(Rule rule);  // NOLINT(google-explicit-constructor): any function of the type is a rule
  // NOLINTNEXTLINE(bugprone-easily-swappable-parameters): of different types
  constexpr StageRule(Rule rule, Drive by, Look look_by = nullptr, Check check_by = nullptr,
                      CheckReads check_reads_by = nullptr, Scan scan_by = nullptr)
      : step(rule),
        drive(by),
        look(look_by),
        check(check_by),
        check_reads(check_reads_by),
        scan(scan_by) {}
  constexpr StageRule that_locks(Lock by) const {
    StageRule rule = *this;
    rule.lock = by;
    return rule;
  }
  explicit constexpr operator bool() const { return step != nullptr; }
  Step operator()(const Access& access, const HeaderSnapshot* seen, const TxnStamps& txn) const {
    return step(access, seen, txn);
  }

  Rule step = nullptr;
  Drive drive = nullptr;
  Look look = nullptr;    // nullptr: through the rule's pointer
  Check check = nullptr;  // nullptr: by the driver
  CheckReads check_reads = nullptr;
  Scan scan = nullptr;
  Lock lock = nullptr;  // nullptr: by the driver
};

// The lock word as the last round has seen it.
inline uint64_t lock_seen(const HeaderSnapshot& seen) {
  return (seen.posted.verbs & kCas) != 0 ? seen.cas_seen : seen.pre_read.lock;
}

// One more of those that share it, and `verbs` behind the CAS; a transaction that finds it locked
// exclusively aborts, but for a node's cleaning lock.
inline Step share_lock(uint64_t word, int verbs) {
  if (is_cleaning_lock(word)) return Step::again(kPreRead);
  if (word >= kReadersMax) return Step::abort(AbortReason::kLockHeld);
  return Step::cas(verbs, kOffsetOfLock, word, word + 1);
}

// May the transaction read what this lock covers, as protocols see it that do not lock what they
// read? What it has locked itself, or several share, no other writes.
inline bool leaves_readable(uint64_t lock, const TxnStamps& txn) {
  if (lock == 0 || lock == txn.ctts) return true;
  if (locked_shared(lock)) return !txn.reads_to_lock;
  return locked_early(lock) && (!txn.reads_to_write || ctts_of_lock(lock) == txn.ctts);
}

// Apart, since most words are 0: inlined, GCC asks all of this of each of them.
[[gnu::noinline]] inline bool leaves_commit_free(uint64_t lock, uint64_t own_ctts) {
  return !locked_exclusively(lock) || locked_early(lock) || lock == own_ctts ||
         is_cleaning_lock(lock);
}

// No other transaction is about to change it.
inline Step if_free_to_commit(uint64_t lock, const TxnStamps& txn) {
  const bool free = lock == 0 || leaves_commit_free(lock, txn.ctts);
  return free ? Step::done() : Step::abort(AbortReason::kValidationFailed);
}

// What was read is what is there, and no other transaction is about to change it. Rts, lock, then
// stamps: a writer that locks after the lock was seen free stamps after that read, and is
// ordered behind this transaction.
inline Step still_current(const Access& access, const HeaderSnapshot* seen, const TxnStamps& txn) {
  if (seen == nullptr) return Step::attempt(kPostRead);
  if (seen->post_read.wts != access.read_wts) {
    return Step::abort(access.gap ? AbortReason::kGapChanged : AbortReason::kValidationFailed);
  }
  return if_free_to_commit(seen->post_read.lock, txn);
}

// The same of what was read as of the ctts: nothing later is there. An absence was noted as of just
// before the ctts, under whatever stamp.
inline Step still_newest(const Access& access, const HeaderSnapshot* seen, const TxnStamps& txn) {
  if (seen == nullptr) return Step::attempt(kPostRead);
  if (seen->post_read.wts > access.read_wts) return Step::abort(AbortReason::kTooLate);
  return if_free_to_commit(seen->post_read.lock, txn);
}

// What the Commit stage does to a header, in the order of a list; what does not concern a write
// (entries of a tuple, say) is skipped. The list is carried out for each header in one chain.
enum class Effect : uint8_t {
  kVersionStamp,   // stamp of the old version that makes room for the newest
  kVersionRecord,  // its length, flags and record
  kStamp,          // wts
  kLength,         // length and flags
  kIdentity,       // table and incarnation, of an unlinked tuple
  kRecord,
  kEntries,  // of a gap header's group
  kLease,    // SUNDIAL's word, unlocked
  kUnlock,
};

// In an Access, in the place of the lease, of a version that was not the newest when it was read.
constexpr uint64_t kLeaseOfOldVersion = ~uint64_t{0} >> 1;

// What an Access notes of the lease.
struct HeldLease {
  bool locked;
  uint64_t word;
};

struct ProtocolRules {
  Protocol protocol;
  LockMode lock_mode = LockMode::kExclusive;
  // Its rules where shared locks are asked for; nullptr: it has these alone.
  const ProtocolRules* with_shared_locks = nullptr;
  uint16_t stages;                      // bits of Stage that it has
  Stage validation = Stage::kValidate;  // which of them checks the read set
  // What validation finds is that all that was read is current at one moment.
  bool validates_moment = false;
  // One record read and nothing else commits without validation.
  bool single_read_is_atomic = false;
  // Everything happens at the ctts. Multi-version, too, unless it keeps one version alone: updates
  // keep the version before, and a delete leaves a tombstone.
  bool reads_at_ctts = false;
  bool keeps_one_version = false;
  // Histories respect real time, too, not only some serial order.
  bool strictly_serializable = true;
  // A restarted attempt keeps the ctts of the first, and with it its age.
  bool keeps_age = false;
  // Deterministic: commit hands the transaction over to be executed in a global order
  // (ordered_request.h) in place of the stages from Lock on.
  bool commits_in_order = false;
  // A transaction under these rules skips what others have locked; what it reads is no part of its
  // read set (row_lock.h).
  bool skips_locked = false;
  // Or takes it as it is in memory (ScanMode::kAsStored).
  bool reads_as_stored = false;
  // Rounds of waiting for another transaction before the attempt aborts.
  int looks_max = 200;
  StageRule read;
  GapRule read_gap = nullptr;
  StageRule lock;
  StageRule lock_early = {};  // of a row before the commit; empty: as at the commit
  StageRule validate = {};    // empty when it validates nothing
  // What a CAS of the word of the protocol's own has changed; lock and waiter are the driver's. By
  // values: what a function that is not compiled into the driver may look at lives in memory.
  HeldLease (*note_cas)(uint64_t word, uint64_t expected, uint64_t desired) = nullptr;
  // Nothing is left for its lock rule to do.
  bool (*locked_whole)(const Access& access) = [](const Access& access) {
    return access.locked_to_commit();
  };
  // Once everything that is written is locked: the commit_tts is the largest of these. nullptr: the
  // protocol has no such time.
  uint64_t (*commits_at_least)(const Access& access) = nullptr;
  // What was read holds at the commit_tts as it is, and is not validated. nullptr: nothing does.
  bool (*holds_until_commit)(const Access& access, const TxnStamps& txn) = nullptr;
  // What is read is leased by the clock, and a transaction commits at the latest time that it may
  // be.
  bool leases_by_clock = false;
  // Readers register in the waiter word of what they read, and stay there until their end; writers
  // agree with them on their times (engine/txn/transaction/agree_on_time.cc).
  bool registers_readers = false;
  // May a row be put into this slot, whose former lives left a stamp? nullptr: into any.
  bool (*may_take_slot)(const Access& slot, const TxnStamps& txn) = nullptr;
  std::span<const Effect> effects;

  constexpr bool keeps_versions() const { return reads_at_ctts && !keeps_one_version; }
  // Two-phase locking: the gap headers of absent keys and of scans are not read but locked, by
  // `read`, too. A read is the Lock stage then, and there is nothing to validate.
  constexpr bool locks_what_it_reads() const { return read_gap == nullptr; }
  // To read changes no header, and all that was read is validated at one moment: so rows may be
  // read in any order, and more than once.
  constexpr bool leaves_no_trace_of_reads() const { return validates_moment && !leases_by_clock; }
  // Transactions of other coordinators may read for one under these rules: what they have read is
  // validated like its own, or of its timestamp.
  constexpr bool may_have_guests() const {
    return reads_at_ctts ? !validate : leaves_no_trace_of_reads();
  }
  // Rows happen when they are committed, and not at a stamp that the transaction has beforehand or
  // finds at its end. So what it loads into a table of its own may be there before it commits
  // (Session::load_rows).
  constexpr bool may_load_beforehand() const {
    return !reads_at_ctts && commits_at_least == nullptr && !commits_in_order;
  }
};

// The stages that every protocol but CALVIN has.
constexpr uint16_t kCommonStages =
    static_cast<uint16_t>(Stage::kLock) | static_cast<uint16_t>(Stage::kLog) |
    static_cast<uint16_t>(Stage::kRelease) | static_cast<uint16_t>(Stage::kCommit);

}  // namespace rdmacc
