// The rules of each protocol as tables: what was seen, and what must come next.
#include <gtest/gtest.h>

#include "engine/protocols/registry.h"
#include "engine/storage/layout/sundial_word.h"
#include "engine/txn/rule/rule.h"

namespace rdmacc {
namespace {

// Of lock words: a ctts is larger than any count of readers.
constexpr uint64_t kOwnCtts = 900ull << 16, kOtherCtts = 700ull << 16;
constexpr TxnStamps kTxn{.ctts = kOwnCtts};

// Where a lock word may count readers, too, a ctts has to be as large as one is: microseconds above
// a worker's number.
constexpr uint64_t age(uint64_t microseconds) { return microseconds << 16; }
constexpr TxnStamps kAged{.ctts = age(900)};

HeaderSnapshot snapshot(uint64_t lock, uint64_t first_wts, uint64_t last_wts) {
  HeaderSnapshot seen{};
  seen.posted = Step::attempt(kPreRead | kReadRecord | kPostRead);
  seen.pre_read.lock = seen.post_read.lock = lock;
  seen.pre_read.wts = first_wts;
  seen.post_read.wts = last_wts;
  return seen;
}

// A look behind a CAS on the lock word; `access` says whether it won.
HeaderSnapshot snapshot_behind_cas(uint64_t cas_seen, uint64_t lock, uint64_t first_wts) {
  HeaderSnapshot seen = snapshot(lock, first_wts, 0);
  seen.posted = Step::cas(kPreRead, kOffsetOfLock, 0, kTxn.ctts);
  seen.cas_seen = cas_seen;
  return seen;
}

Access locked_access() {
  Access access;
  access.locked = true;
  return access;
}

TEST(NowaitLock, LooksBehindItsCas) {
  const Step step = rules_of(Protocol::kNowait)->lock(Access{}, nullptr, kTxn);
  EXPECT_EQ(step.verdict, Verdict::kTry);
  EXPECT_EQ(step.verbs, kCas | kPreRead | kReadRecord);
  EXPECT_EQ(step.word, kOffsetOfLock);
  EXPECT_EQ(step.expected, 0u);
  EXPECT_EQ(step.desired, kTxn.ctts);
}

TEST(NowaitLock, TakesWhatItHoldsAndAbortsAtAnothers) {
  const StageRule lock = rules_of(Protocol::kNowait)->lock;
  const HeaderSnapshot free = snapshot_behind_cas(0, 0, 5),
                       other = snapshot_behind_cas(kOtherCtts, kOtherCtts, 5);
  EXPECT_EQ(lock(locked_access(), &free, kTxn).verdict, Verdict::kDone);
  const Step lost = lock(Access{}, &other, kTxn);
  EXPECT_EQ(lost.verdict, Verdict::kAbort);
  EXPECT_EQ(lost.reason, AbortReason::kLockHeld);
}

TEST(NowaitLock, DoesNotLockWhatItHoldsAgain) {
  const Step step = rules_of(Protocol::kNowait)->lock(locked_access(), nullptr, kTxn);
  EXPECT_EQ(step.verbs & kCas, 0);
  EXPECT_NE(step.verbs & kReadRecord, 0);
}

TEST(WoundwaitLock, OlderWoundsAndYoungerWaits) {
  const StageRule lock = rules_of(Protocol::kWoundwait)->lock;
  EXPECT_EQ(lock(Access{}, nullptr, kAged).desired, kAged.ctts) << "the CAS comes first";
  const HeaderSnapshot older = snapshot_behind_cas(age(800), age(800), 5),
                       younger = snapshot_behind_cas(age(1000), age(1000), 5);
  const Step wait = lock(Access{}, &older, kAged), wound = lock(Access{}, &younger, kAged);
  EXPECT_EQ(wait.verdict, Verdict::kLookAgain);
  EXPECT_EQ(wait.verbs, kPreRead | kReadWound) << "one that waits looks for its own wound";
  EXPECT_EQ(wound.verdict, Verdict::kLookAgain);
  EXPECT_EQ(wound.verbs, kPreRead | kReadWound | kWound);
  EXPECT_EQ(wound.desired, age(1000));

  const auto looked = [&wait](uint64_t holder, uint64_t wounded) {
    HeaderSnapshot seen = snapshot(holder, 5, 0);
    seen.posted = wait;
    seen.wound = wounded;
    return seen;
  };
  const HeaderSnapshot other_is = looked(age(800), age(850)), is = looked(age(800), age(900)),
                       free = looked(0, age(850));
  EXPECT_EQ(lock(Access{}, &other_is, kAged).verdict, Verdict::kLookAgain);
  EXPECT_EQ(lock(Access{}, &is, kAged).reason, AbortReason::kWounded);
  EXPECT_EQ(lock(Access{}, &free, kAged).expected, 0u);
}

TEST(WaitdieLock, OlderWaitsAndYoungerDies) {
  const StageRule lock = rules_of(Protocol::kWaitdie)->lock;
  const auto seen = [](uint64_t holder, uint64_t waiter) {
    HeaderSnapshot at = snapshot(holder, 5, 0);
    at.pre_read.waiter = waiter;
    return at;
  };
  EXPECT_EQ(lock(Access{}, nullptr, kAged).verbs, kPreRead) << "the waiter word comes first";
  const HeaderSnapshot free = seen(0, 0), older = seen(age(800), 0), younger = seen(age(1000), 0);
  EXPECT_EQ(lock(Access{}, &free, kAged).desired, kAged.ctts);
  EXPECT_EQ(lock(Access{}, &older, kAged).reason, AbortReason::kDied);
  const Step wait = lock(Access{}, &younger, kAged);
  EXPECT_EQ(wait.word, kOffsetOfWaiter);
  EXPECT_EQ(wait.desired, kAged.ctts);
  const HeaderSnapshot waiting = seen(age(1000), age(900)), passed_by = seen(age(1000), age(850)),
                       overtaken = seen(0, age(850));
  EXPECT_EQ(lock(Access{}, &waiting, kAged).verdict, Verdict::kLookAgain);
  EXPECT_EQ(lock(Access{}, &passed_by, kAged).reason, AbortReason::kDied);
  EXPECT_EQ(lock(Access{}, &overtaken, kAged).reason, AbortReason::kDied)
      << "a free lock is the oldest waiter's";
  const HeaderSnapshot younger_waits = seen(0, age(950));
  EXPECT_EQ(lock(Access{}, &younger_waits, kAged).word, kOffsetOfLock);
}

TEST(OccRead, TakesOnlyAnUntornUnlockedRecord) {
  const StageRule read = rules_of(Protocol::kOcc)->read;
  EXPECT_EQ(read(Access{}, nullptr, kTxn).verbs, kPreRead | kReadRecord | kPostRead);
  const HeaderSnapshot whole = snapshot(0, 5, 5), torn = snapshot(0, 5, 6),
                       locked = snapshot(kOtherCtts, 5, 5);
  EXPECT_EQ(read(Access{}, &whole, kTxn).verdict, Verdict::kDone);
  EXPECT_EQ(read(Access{}, &torn, kTxn).verdict, Verdict::kLookAgain);
  EXPECT_EQ(read(Access{}, &locked, kTxn).verdict, Verdict::kLookAgain);
  HeaderSnapshot late_lock =
      whole;  // locked after the record was read: the bytes are still the old ones
  late_lock.post_read.lock = kOtherCtts;
  EXPECT_EQ(read(Access{}, &late_lock, kTxn).verdict, Verdict::kDone);
  HeaderSnapshot reused = whole;  // another row in the same slot
  reused.post_read.incarnation = 1;
  EXPECT_EQ(read(Access{}, &reused, kTxn).verdict, Verdict::kLookAgain);
}

TEST(OccLock, WantsTheVersionThatWasRead) {
  const StageRule lock = rules_of(Protocol::kOcc)->lock;
  Access read;
  read.read = true;
  read.read_wts = 5;
  read.locked = true;
  const HeaderSnapshot same = snapshot_behind_cas(0, kOwnCtts, 5),
                       newer = snapshot_behind_cas(0, kOwnCtts, 6);
  const HeaderSnapshot held = snapshot_behind_cas(kOtherCtts, kOtherCtts, 5);
  EXPECT_EQ(lock(read, &same, kTxn).verdict, Verdict::kDone);
  EXPECT_EQ(lock(read, &newer, kTxn).reason, AbortReason::kVersionChanged);
  EXPECT_EQ(lock(Access{}, &held, kTxn).reason, AbortReason::kLockHeld);
  EXPECT_EQ(lock(locked_access(), &newer, kTxn).verdict, Verdict::kDone) << "a blind write";
  read.gap = true;
  EXPECT_EQ(lock(read, &newer, kTxn).reason, AbortReason::kGapChanged);
}

TEST(OccValidate, WantsTheSameVersionUnlockedOrOwn) {
  const StageRule validate = rules_of(Protocol::kOcc)->validate;
  EXPECT_EQ(validate(Access{}, nullptr, kTxn).verbs, kPostRead);
  Access read;
  read.read = true;
  read.read_wts = 5;
  const HeaderSnapshot same = snapshot(0, 0, 5), own = snapshot(kOwnCtts, 0, 5),
                       locked = snapshot(kOtherCtts, 0, 5), newer = snapshot(0, 0, 6);
  EXPECT_EQ(validate(read, &same, kTxn).verdict, Verdict::kDone);
  EXPECT_EQ(validate(read, &own, kTxn).verdict, Verdict::kDone);
  EXPECT_EQ(validate(read, &locked, kTxn).reason, AbortReason::kValidationFailed);
  EXPECT_EQ(validate(read, &newer, kTxn).reason, AbortReason::kValidationFailed);
}

// Others' early locks are in the way of what reads to write, and of nothing else that reads.
TEST(EarlyLock, IsNoLockToReaders) {
  constexpr TxnStamps kWriter{.ctts = kOwnCtts, .reads_to_write = true};
  for (const Protocol protocol :
       {Protocol::kOcc, Protocol::kDrtm, Protocol::kMvcc, Protocol::kSundial, Protocol::kTictoc,
        Protocol::kMaat, Protocol::kTimestamp, Protocol::kCicada}) {
    const StageRule read = rules_of(protocol)->read;
    HeaderSnapshot other = snapshot(early_lock(kOtherCtts), 5, 5),
                   own = snapshot(early_lock(kOwnCtts), 5, 5);
    other.post_read.rts = own.post_read.rts = kOwnCtts;
    EXPECT_EQ(read(Access{}, &other, kTxn).verdict, Verdict::kDone) << protocol_name(protocol);
    EXPECT_EQ(read(Access{}, &other, kWriter).verdict, Verdict::kLookAgain);
    EXPECT_EQ(read(Access{}, &own, kTxn).verdict, Verdict::kDone);
    EXPECT_EQ(read(Access{}, &own, kWriter).verdict, Verdict::kDone);
  }
  Access seen;
  seen.read = true;
  seen.read_wts = 5;
  const HeaderSnapshot other = snapshot(early_lock(kOtherCtts), 5, 5),
                       newer = snapshot(early_lock(kOtherCtts), 5, 6);
  EXPECT_EQ(still_current(seen, &other, kTxn).verdict, Verdict::kDone);
  EXPECT_EQ(still_current(seen, &newer, kTxn).verdict, Verdict::kAbort);
}

// What others share changes for no reader and no validator, and keeps out what wants it alone.
TEST(EarlyLock, MayBeShared) {
  constexpr TxnStamps kLocker{.ctts = kOwnCtts, .reads_to_write = true, .reads_to_lock = true};
  constexpr TxnStamps kWriter{.ctts = kOwnCtts, .reads_to_write = true};
  for (const Protocol protocol :
       {Protocol::kOcc, Protocol::kDrtm, Protocol::kMvcc, Protocol::kSundial, Protocol::kTictoc,
        Protocol::kMaat, Protocol::kTimestamp, Protocol::kCicada}) {
    const StageRule read = rules_of(protocol)->read;
    HeaderSnapshot shared = snapshot(2, 5, 5);
    shared.post_read.rts = kOwnCtts;
    EXPECT_EQ(read(Access{}, &shared, kTxn).verdict, Verdict::kDone) << protocol_name(protocol);
    EXPECT_EQ(read(Access{}, &shared, kWriter).verdict, Verdict::kDone);
    EXPECT_EQ(read(Access{}, &shared, kLocker).verdict, Verdict::kLookAgain);
    Access access;
    access.reader_count = 1;
    const Step alone = rules_of(protocol)->lock(access, nullptr, kTxn);
    EXPECT_EQ(alone.expected, 1u) << "its own count and no other";
    const HeaderSnapshot others = snapshot_behind_cas(2, 2, 5);
    EXPECT_EQ(rules_of(protocol)->lock(access, &others, kTxn).reason, AbortReason::kLockHeld);
  }
  Access seen;
  seen.read = true;
  seen.read_wts = 5;
  const HeaderSnapshot shared = snapshot(2, 5, 5);
  EXPECT_EQ(still_current(seen, &shared, kTxn).verdict, Verdict::kDone);
}

TEST(EarlyLock, BecomesALockForTheCommit) {
  for (const Protocol protocol :
       {Protocol::kOcc, Protocol::kDrtm, Protocol::kMvcc, Protocol::kSundial, Protocol::kTictoc,
        Protocol::kMaat, Protocol::kTimestamp, Protocol::kCicada}) {
    const ProtocolRules& rules = *rules_of(protocol);
    const Step early = rules.lock_early(Access{}, nullptr, kTxn);
    EXPECT_EQ(early.expected, 0u);
    EXPECT_EQ(early.desired, early_lock(kTxn.ctts));
    Access access = locked_access();
    access.early = true;
    EXPECT_FALSE(rules.locked_whole(access));
    const HeaderSnapshot won = snapshot_behind_cas(0, early_lock(kOwnCtts), 5);
    EXPECT_EQ(rules.lock_early(access, &won, kTxn).verdict, Verdict::kDone);
    const Step whole = rules.lock(access, nullptr, kTxn);
    EXPECT_EQ(whole.expected, early_lock(kTxn.ctts));
    EXPECT_EQ(whole.desired, kTxn.ctts);
    const HeaderSnapshot lost = snapshot_behind_cas(0, 0, 5);
    EXPECT_EQ(rules.lock(access, &lost, kTxn).reason, AbortReason::kNodeRestarted);
  }
}

// Readers have passed the early lock: only what is read behind the CAS of Lock tells of them.
TEST(EarlyLock, IsTooLateOnceAYoungerOneHasRead) {
  const StageRule lock = rules_of(Protocol::kMvcc)->lock;
  HeaderSnapshot seen = snapshot_behind_cas(early_lock(kOwnCtts), kOwnCtts, 5);
  seen.pre_read.rts = kOwnCtts + 1;
  EXPECT_EQ(lock(locked_access(), &seen, kTxn).reason, AbortReason::kTooLate);
  seen.pre_read.rts = kOwnCtts;
  EXPECT_EQ(lock(locked_access(), &seen, kTxn).verdict, Verdict::kDone);
}

TEST(MvccRead, RaisesRtsBeforeItBelievesTheNewest) {
  const StageRule read = rules_of(Protocol::kMvcc)->read;
  HeaderSnapshot seen = snapshot(0, 5, 5);
  const Step raise = read(Access{}, &seen, kTxn);
  EXPECT_EQ(raise.word, kOffsetOfRts);
  EXPECT_EQ(raise.desired, kTxn.ctts);
  EXPECT_NE(raise.verbs & kPostRead, 0) << "judged by a header read after the CAS";
  seen.posted = raise;
  seen.post_read.rts = kOwnCtts;
  EXPECT_EQ(read(Access{}, &seen, kTxn).verdict, Verdict::kDone);
  seen.post_read.lock = kOwnCtts - 50;  // an older writer came before the CAS
  EXPECT_EQ(read(Access{}, &seen, kTxn).verdict, Verdict::kLookAgain);
  seen.post_read.lock = kOwnCtts + 50;  // a younger one hinders none
  EXPECT_EQ(read(Access{}, &seen, kTxn).verdict, Verdict::kDone);
  seen.post_read.wts = kOwnCtts - 20;
  EXPECT_EQ(read(Access{}, &seen, kTxn).verdict, Verdict::kLookAgain);
}

TEST(MvccRead, TakesTheYoungestVersionBeforeIt) {
  const StageRule read = rules_of(Protocol::kMvcc)->read;
  HeaderSnapshot seen = snapshot(0, kOwnCtts + 100, kOwnCtts + 100);
  VersionHead versions[] = {{kOwnCtts - 50, 0, 0}, {kOwnCtts - 200, 0, 0}, {kOwnCtts + 30, 0, 0}};
  seen.versions = versions;
  seen.history = 3;
  EXPECT_EQ(read(Access{}, &seen, kTxn).verbs, kReadReference);
  seen.posted = Step::attempt(kReadReference);
  seen.versions_at = 4096;
  EXPECT_EQ(read(Access{}, &seen, kTxn).verbs, kReadStamps);
  seen.posted = Step::attempt(kReadStamps);
  const Step version = read(Access{}, &seen, kTxn);
  EXPECT_EQ(version.version, 0);
  seen.posted = version;
  seen.version_stamp = kOwnCtts - 50;
  EXPECT_EQ(read(Access{}, &seen, kTxn).version, 0);
  EXPECT_EQ(read(Access{}, &seen, kTxn).verdict, Verdict::kDone);
  seen.version_stamp = kOwnCtts + 100;  // written over while we read it
  EXPECT_EQ(read(Access{}, &seen, kTxn).verdict, Verdict::kLookAgain);
  versions[0].stamp = versions[1].stamp = kOwnCtts + 50;
  seen.posted = Step::attempt(kReadStamps);
  EXPECT_EQ(read(Access{}, &seen, kTxn).reason, AbortReason::kNoVersion);
  versions[2].stamp = kLostVersionStamp;
  EXPECT_EQ(read(Access{}, &seen, kTxn).reason, AbortReason::kNoVersion);
  versions[2].stamp = kNoVersionStamp;  // none was ever lost, so the key was absent
  EXPECT_EQ(read(Access{}, &seen, kTxn).version, kBeforeFirstVersion);
  seen.posted = Step::attempt(kReadReference);
  seen.versions_at = kNoOlderVersion;
  EXPECT_EQ(read(Access{}, &seen, kTxn).version, kBeforeFirstVersion);
  seen.versions_at = kOlderVersionsLost;
  EXPECT_EQ(read(Access{}, &seen, kTxn).reason, AbortReason::kNoVersion);
}

TEST(MvccLock, ComesTooLateBehindLaterReadersAndWriters) {
  const StageRule lock = rules_of(Protocol::kMvcc)->lock;
  HeaderSnapshot seen = snapshot_behind_cas(0, kOwnCtts, 5);
  seen.pre_read.rts = kOwnCtts;  // our own read
  EXPECT_EQ(lock(locked_access(), &seen, kTxn).verdict, Verdict::kDone);
  seen.pre_read.rts = kOwnCtts + 1;
  EXPECT_EQ(lock(locked_access(), &seen, kTxn).reason, AbortReason::kTooLate);
  seen.pre_read.rts = 0;
  seen.pre_read.wts = kOwnCtts + 1;
  EXPECT_EQ(lock(locked_access(), &seen, kTxn).reason, AbortReason::kTooLate);
}

TEST(SundialLock, FreezesTheLeaseUnderTheLock) {
  const StageRule lock = rules_of(Protocol::kSundial)->lock;
  HeaderSnapshot seen = snapshot_behind_cas(0, kOwnCtts, 5);
  seen.pre_read.sundial = sundial_unlocked_word(3, 4);
  const Step freeze = lock(locked_access(), &seen, kTxn);
  EXPECT_EQ(freeze.word, kOffsetOfSundial);
  EXPECT_EQ(freeze.expected, seen.pre_read.sundial);
  EXPECT_TRUE(sundial_locked(freeze.desired));
  seen.posted = freeze;
  seen.cas_seen = sundial_unlocked_word(3, 9);  // renewed by a reader: again from there
  EXPECT_EQ(lock(locked_access(), &seen, kTxn).expected, seen.cas_seen);
  Access frozen = locked_access();
  frozen.lease_locked = true;
  EXPECT_EQ(lock(frozen, &seen, kTxn).verdict, Verdict::kDone);
}

TEST(SundialRenew, ExtendsOnlyTheVersionThatWasRead) {
  const StageRule renew = rules_of(Protocol::kSundial)->validate;
  const TxnStamps txn{.ctts = kOwnCtts, .commit_tts = 20};
  Access read;
  read.read = true;
  read.read_wts = 5;
  read.lease = sundial_unlocked_word(3, 4);
  const Step extend = renew(read, nullptr, txn);
  EXPECT_EQ(extend.desired, sundial_unlocked_word(3, 17));
  HeaderSnapshot seen = snapshot(0, 0, 5);
  seen.posted = extend;
  seen.cas_seen = read.lease;
  EXPECT_EQ(renew(read, &seen, txn).verdict, Verdict::kDone);
  seen.cas_seen = sundial_unlocked_word(3, 30);  // another renewal went further
  EXPECT_EQ(renew(read, &seen, txn).verdict, Verdict::kDone);
  seen.cas_seen = sundial_locked_word(3, 2);
  EXPECT_EQ(renew(read, &seen, txn).reason, AbortReason::kLeaseLost);
  seen.cas_seen = sundial_unlocked_word(8, 0);
  seen.post_read.wts = 6;  // another version
  EXPECT_EQ(renew(read, &seen, txn).reason, AbortReason::kLeaseLost);
  read.lease = sundial_unlocked_word(3, 30);
  EXPECT_EQ(renew(read, nullptr, txn).verdict, Verdict::kDone) << "long enough";
}

TEST(SundialWord, MovesWtsAlongWhenTheDeltaIsTooLarge) {
  const uint64_t word = sundial_renewed(sundial_unlocked_word(3, 4), 100'000);
  EXPECT_EQ(sundial_rts_bound(word), 100'000u);
  EXPECT_EQ(sundial_wts(word), 100'000 - kSundialDeltaMax);
}

TEST(Registry, NamesWhatThereIsAndRefusesTheRest) {
  EXPECT_EQ(stages_of(Protocol::kNowait), 29);
  EXPECT_EQ(stages_of(Protocol::kWaitdie), 29);
  EXPECT_EQ(stages_of(Protocol::kOcc), 63);
  EXPECT_EQ(stages_of(Protocol::kDrtm), 63);
  EXPECT_EQ(stages_of(Protocol::kMvcc), 31);
  EXPECT_EQ(stages_of(Protocol::kSundial), 95);
  EXPECT_EQ(stages_of(Protocol::kTictoc), 95);
  EXPECT_EQ(stages_of(Protocol::kMaat), 95);
  EXPECT_EQ(stages_of(Protocol::kTimestamp), 31);
  EXPECT_EQ(stages_of(Protocol::kCicada), 63);
  EXPECT_EQ(parse_protocol("NoWait"), Protocol::kNowait);
  EXPECT_EQ(parse_lock_mode("SHARED"), LockMode::kShared);
  EXPECT_FALSE(parse_protocol("2pl").has_value());
}

TEST(Identity, ChecksTableKeyIncarnationAndDepth) {
  Access access;
  access.table = 3;
  access.key_hash = 77;
  Header header{};
  header.table = 3;
  header.key_hash = 77;
  header.incarnation = 9;
  EXPECT_TRUE(same_identity(access, header));
  access.incarnation = 8;
  EXPECT_FALSE(same_identity(access, header));
  access.incarnation = 9;
  EXPECT_TRUE(same_identity(access, header));
  header.key_hash = 78;
  EXPECT_FALSE(same_identity(access, header));
  access.tag_only = true;
  EXPECT_TRUE(same_identity(access, header));
  access.gap = true;
  access.depth = 4;
  EXPECT_FALSE(same_identity(access, header));
}

}  // namespace
}  // namespace rdmacc
