// The rules of locks that readers share: what was seen, and what must come next.
#include <gtest/gtest.h>

#include "engine/protocols/registry.h"
#include "engine/txn/rule/rule.h"

namespace rdmacc {
namespace {

// A ctts is larger than any reader count: microseconds above a worker's number.
constexpr uint64_t age(uint64_t microseconds) { return microseconds << 16; }
constexpr TxnStamps kAged{.ctts = age(900)};

HeaderSnapshot snapshot(uint64_t lock) {
  HeaderSnapshot seen{};
  seen.posted = Step::attempt(kPreRead | kReadRecord | kPostRead);
  seen.pre_read.lock = lock;
  return seen;
}

// A look behind a CAS on the lock word that has lost.
HeaderSnapshot snapshot_behind_cas(uint64_t lock) {
  HeaderSnapshot seen = snapshot(lock);
  seen.posted = Step::cas(kPreRead, kOffsetOfLock, 0, kAged.ctts);
  seen.cas_seen = lock;
  return seen;
}

TEST(NowaitShared, CountsItselfInAndUpgradesOnlyAlone) {
  const ProtocolRules* rules = rules_of(Protocol::kNowait, LockMode::kShared);
  EXPECT_EQ(rules->read(Access{}, nullptr, kAged).verbs, kPreRead);
  const HeaderSnapshot two_others = snapshot(2), writer = snapshot(age(16));
  const Step count = rules->read(Access{}, &two_others, kAged);
  EXPECT_EQ(count.expected, 2u);
  EXPECT_EQ(count.desired, 3u);
  EXPECT_NE(count.verbs & kReadRecord, 0) << "the record is read behind the CAS";
  EXPECT_EQ(rules->read(Access{}, &writer, kAged).reason, AbortReason::kLockHeld);
  HeaderSnapshot lost = two_others;  // another came or went: once more, from what is there now
  lost.posted = count;
  lost.cas_seen = 5;
  EXPECT_EQ(rules->read(Access{}, &lost, kAged).expected, 5u);
  Access sharing;
  sharing.reader_count = 1;
  EXPECT_EQ(rules->read(sharing, &two_others, kAged).verdict, Verdict::kDone);
  const Step upgrade = rules->lock(sharing, nullptr, kAged);
  EXPECT_EQ(upgrade.expected, 1u) << "no other reader may share";
  EXPECT_EQ(upgrade.desired, kAged.ctts);
}

HeaderSnapshot with_waiter(HeaderSnapshot seen, uint64_t waiter) {
  seen.pre_read.waiter = waiter;
  return seen;
}

TEST(WaitdieShared, SharesBesideReadersAndBehindNoOlderWaiter) {
  const ProtocolRules* rules = rules_of(Protocol::kWaitdie, LockMode::kShared);
  EXPECT_EQ(rules->read(Access{}, nullptr, kAged).verbs, kPreRead);
  const HeaderSnapshot two = snapshot(2), older = snapshot(age(800)),
                       writer_waits = with_waiter(two, age(850)),
                       younger_waits = with_waiter(two, age(950));
  const Step count = rules->read(Access{}, &two, kAged);
  EXPECT_EQ(count.expected, 2u);
  EXPECT_EQ(count.desired, 3u);
  EXPECT_NE(count.verbs & kReadRecord, 0) << "the record is read behind the CAS";
  EXPECT_EQ(rules->read(Access{}, &writer_waits, kAged).reason, AbortReason::kDied);
  EXPECT_EQ(rules->read(Access{}, &younger_waits, kAged).desired, 3u);
  constexpr TxnStamps kOld{.ctts = age(700)};
  EXPECT_EQ(rules->read(Access{}, &older, kAged).reason, AbortReason::kDied);
  EXPECT_EQ(rules->read(Access{}, &older, kOld).word, kOffsetOfWaiter);
}

TEST(WaitdieShared, AWriterWaitsForReadersWhateverItsAge) {
  const ProtocolRules* rules = rules_of(Protocol::kWaitdie, LockMode::kShared);
  const HeaderSnapshot two = snapshot(2), alone = snapshot(1);
  const Step wait = rules->lock(Access{}, &two, kAged);
  EXPECT_EQ(wait.word, kOffsetOfWaiter);
  EXPECT_EQ(wait.desired, kAged.ctts);
  const HeaderSnapshot waits = with_waiter(two, age(900)), older_waits = with_waiter(two, age(850));
  EXPECT_EQ(rules->lock(Access{}, &waits, kAged).verdict, Verdict::kLookAgain);
  EXPECT_EQ(rules->lock(Access{}, &older_waits, kAged).reason, AbortReason::kDied);
  Access sharing;
  sharing.reader_count = 1;
  const Step upgrade = rules->lock(sharing, &alone, kAged);
  EXPECT_EQ(upgrade.expected, 1u) << "no other reader may share";
  EXPECT_EQ(upgrade.desired, kAged.ctts);
  EXPECT_EQ(rules->lock(sharing, &two, kAged).word, kOffsetOfWaiter);
  EXPECT_EQ(rules->lock(sharing, &older_waits, kAged).reason, AbortReason::kDied)
      << "of two that share and want to write one gives way";
  EXPECT_LT(rules->looks_max, rules_of(Protocol::kWaitdie)->looks_max)
      << "a circle through shares ends soon";
}

TEST(WoundwaitShared, YoungerReadersWaitBehindAnOlderWriter) {
  const ProtocolRules* rules = rules_of(Protocol::kWoundwait, LockMode::kShared);
  EXPECT_EQ(rules->read(Access{}, nullptr, kAged).verbs, kPreRead);
  const HeaderSnapshot two = snapshot(2), writer_waits = with_waiter(two, age(850)),
                       younger_waits = with_waiter(two, age(950));
  EXPECT_EQ(rules->read(Access{}, &two, kAged).desired, 3u);
  EXPECT_EQ(rules->read(Access{}, &younger_waits, kAged).desired, 3u);
  const Step wait = rules->read(Access{}, &writer_waits, kAged);
  EXPECT_EQ(wait.verdict, Verdict::kLookAgain);
  EXPECT_EQ(wait.verbs, kPreRead | kReadWound) << "one that waits looks for its own wound";
  constexpr TxnStamps kOld{.ctts = age(700)};
  const HeaderSnapshot held = snapshot(age(800));
  EXPECT_EQ(rules->read(Access{}, &held, kAged).verbs, kPreRead | kReadWound);
  EXPECT_EQ(rules->read(Access{}, &held, kOld).desired, age(800));
  HeaderSnapshot wounded = held;
  wounded.posted = wait;
  wounded.wound = kAged.ctts;
  EXPECT_EQ(rules->read(Access{}, &wounded, kAged).reason, AbortReason::kWounded);
}

TEST(WoundwaitShared, AWriterWaitsForReadersAndTheYoungerSharerGivesWay) {
  const ProtocolRules* rules = rules_of(Protocol::kWoundwait, LockMode::kShared);
  const HeaderSnapshot two = snapshot_behind_cas(2);
  const Step wait = rules->lock(Access{}, &two, kAged);
  EXPECT_EQ(wait.word, kOffsetOfWaiter);
  EXPECT_NE(wait.verbs & kReadWound, 0);
  EXPECT_EQ(wait.verbs & kWound, 0) << "a count names none that could be wounded";
  const HeaderSnapshot waits = with_waiter(two, age(900)), older_waits = with_waiter(two, age(850));
  EXPECT_EQ(rules->lock(Access{}, &waits, kAged).verdict, Verdict::kLookAgain);
  EXPECT_EQ(rules->lock(Access{}, &older_waits, kAged).verdict, Verdict::kLookAgain);
  Access sharing;
  sharing.reader_count = 1;
  EXPECT_EQ(rules->lock(sharing, nullptr, kAged).expected, 1u) << "no other reader may share";
  EXPECT_EQ(rules->lock(sharing, &older_waits, kAged).reason, AbortReason::kWounded);
  EXPECT_LT(rules->looks_max, rules_of(Protocol::kWoundwait)->looks_max);
}

}  // namespace
}  // namespace rdmacc
