// The rules of each protocol as tables: what was seen, and what must come next.
#include <gtest/gtest.h>

#include "engine/protocols/registry.h"
#include "engine/txn/rule.h"

namespace rdmacc {
namespace {

constexpr TxnStamps kTxn{.ctts = 900};

Look look(uint64_t cas_seen, uint64_t lock, uint64_t first_wts, uint64_t last_wts) {
  Look seen{};
  seen.cas_seen = cas_seen;
  seen.first.lock = seen.last.lock = lock;
  seen.first.wts = first_wts;
  seen.last.wts = last_wts;
  return seen;
}

TEST(NowaitLock, LooksBehindItsCas) {
  const Step step = rules_of(Protocol::kNowait)->lock(Access{}, nullptr, kTxn);
  EXPECT_EQ(step.verdict, Verdict::kTry);
  EXPECT_EQ(step.verbs, kCasLock | kFirstLook | kReadRecord);
  EXPECT_EQ(step.expected, 0u);
  EXPECT_EQ(step.desired, kTxn.ctts);
}

TEST(NowaitLock, TakesAFreeLockAndItsOwnAndAbortsAtAnothers) {
  const Rule lock = rules_of(Protocol::kNowait)->lock;
  const Look free = look(0, 0, 5, 5), own = look(kTxn.ctts, 900, 5, 5), other = look(7, 7, 5, 5);
  EXPECT_EQ(lock(Access{}, &free, kTxn).verdict, Verdict::kDone);
  EXPECT_EQ(lock(Access{}, &own, kTxn).verdict, Verdict::kDone);
  const Step lost = lock(Access{}, &other, kTxn);
  EXPECT_EQ(lost.verdict, Verdict::kAbort);
  EXPECT_EQ(lost.reason, AbortReason::kLockHeld);
}

TEST(NowaitLock, DoesNotLockWhatItHoldsAgain) {
  Access held;
  held.locked = true;
  const Step step = rules_of(Protocol::kNowait)->lock(held, nullptr, kTxn);
  EXPECT_EQ(step.verbs & kCasLock, 0);
  EXPECT_NE(step.verbs & kReadRecord, 0);
}

TEST(OccRead, TakesOnlyAnUntornUnlockedRecord) {
  const Rule read = rules_of(Protocol::kOcc)->read;
  EXPECT_EQ(read(Access{}, nullptr, kTxn).verbs, kFirstLook | kReadRecord | kLastLook);
  const Look whole = look(0, 0, 5, 5), torn = look(0, 0, 5, 6), locked = look(0, 7, 5, 5);
  EXPECT_EQ(read(Access{}, &whole, kTxn).verdict, Verdict::kDone);
  EXPECT_EQ(read(Access{}, &torn, kTxn).verdict, Verdict::kLookAgain);
  EXPECT_EQ(read(Access{}, &locked, kTxn).verdict, Verdict::kLookAgain);
  Look late_lock = whole;  // locked after the record was read: the bytes are still the old ones
  late_lock.last.lock = 7;
  EXPECT_EQ(read(Access{}, &late_lock, kTxn).verdict, Verdict::kDone);
  Look reused = whole;  // another row in the same slot
  reused.last.incarnation = 1;
  EXPECT_EQ(read(Access{}, &reused, kTxn).verdict, Verdict::kLookAgain);
}

TEST(OccLock, WantsTheVersionThatWasRead) {
  const Rule lock = rules_of(Protocol::kOcc)->lock;
  Access read;
  read.read = true;
  read.read_wts = 5;
  const Look same = look(0, 900, 5, 0), newer = look(0, 900, 6, 0), held = look(7, 7, 5, 0);
  EXPECT_EQ(lock(read, &same, kTxn).verdict, Verdict::kDone);
  EXPECT_EQ(lock(read, &newer, kTxn).reason, AbortReason::kVersionChanged);
  EXPECT_EQ(lock(read, &held, kTxn).reason, AbortReason::kLockHeld);
  EXPECT_EQ(lock(Access{}, &newer, kTxn).verdict, Verdict::kDone) << "a blind write takes any";
  read.gap = true;
  EXPECT_EQ(lock(read, &newer, kTxn).reason, AbortReason::kGapChanged);
}

TEST(OccValidate, WantsTheSameVersionUnlockedOrOwn) {
  const Rule validate = rules_of(Protocol::kOcc)->validate;
  EXPECT_EQ(validate(Access{}, nullptr, kTxn).verbs, kLastLook);
  Access read;
  read.read = true;
  read.read_wts = 5;
  const Look same = look(0, 0, 0, 5), own = look(0, 900, 0, 5), locked = look(0, 7, 0, 5),
             newer = look(0, 0, 0, 6);
  EXPECT_EQ(validate(read, &same, kTxn).verdict, Verdict::kDone);
  EXPECT_EQ(validate(read, &own, kTxn).verdict, Verdict::kDone);
  EXPECT_EQ(validate(read, &locked, kTxn).reason, AbortReason::kValidationFailed);
  EXPECT_EQ(validate(read, &newer, kTxn).reason, AbortReason::kValidationFailed);
}

TEST(Registry, NamesWhatThereIsAndRefusesTheRest) {
  EXPECT_EQ(available_protocol_names(), "nowait, occ");
  EXPECT_EQ(stages_of(Protocol::kNowait), 29);
  EXPECT_EQ(stages_of(Protocol::kOcc), 63);
  EXPECT_EQ(rules_of(Protocol::kCalvin), nullptr);
  EXPECT_EQ(parse_protocol("NoWait"), Protocol::kNowait);
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
  access.key_known = false;
  EXPECT_TRUE(same_identity(access, header));
  access.gap = true;
  access.depth = 4;
  EXPECT_FALSE(same_identity(access, header));
}

}  // namespace
}  // namespace rdmacc
