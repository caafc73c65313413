// MAAT: its rules as tables, and what two sessions see of them.
#include "engine/storage/layout/sundial_word.h"
#include "tests/unit/engine/locking_sessions.h"

namespace rdmacc {
namespace {

constexpr uint64_t kOwnTime = 900ull << 16, kOlderTime = kOwnTime - 50,
                   kYoungerTime = kOwnTime + 50;
constexpr TxnStamps kReader{.ctts = kOwnTime, .commit_tts = 20, .registers = true};
constexpr TxnStamps kFixed{.ctts = kOwnTime, .commit_tts = 20, .fixed = true};

HeaderSnapshot seen_with(uint64_t wts, uint64_t lock, uint64_t sundial) {
  HeaderSnapshot seen{};
  seen.posted = Step::attempt(kPostRead);
  seen.pre_read.wts = seen.post_read.wts = wts;
  seen.pre_read.lock = seen.post_read.lock = lock;
  seen.pre_read.sundial = seen.post_read.sundial = sundial;
  return seen;
}

Access registered_read() {
  Access read;
  read.read = true;
  read.read_wts = 5;
  read.lease = sundial_unlocked_word(3, 4);
  read.registered = true;
  return read;
}

TEST(MaatRules, RegistersInFrontOfTheLookThatItBelieves) {
  const StageRule read = rules_of(Protocol::kMaat)->read;
  const Step first = read(Access{}, nullptr, kReader);
  EXPECT_EQ(first.verbs, kCas | kUntornRead);
  EXPECT_EQ(first.word, kOffsetOfWaiter);
  EXPECT_EQ(first.expected, 0u);
  EXPECT_EQ(first.desired, kOwnTime);
  EXPECT_EQ(read(Access{}, nullptr, TxnStamps{.ctts = kOwnTime}).verbs, kUntornRead) << "a scan";
  EXPECT_EQ(read(registered_read(), nullptr, kReader).verbs, kUntornRead);
  // Another reader is registered: it is read all the same.
  HeaderSnapshot seen = seen_with(5, 0, sundial_unlocked_word(3, 4));
  seen.posted = first;
  seen.cas_seen = kOlderTime;
  EXPECT_EQ(read(Access{}, &seen, kReader).verdict, Verdict::kDone);
  seen.pre_read.sundial = sundial_locked_word(7, 1);
  EXPECT_EQ(read(Access{}, &seen, kReader).verdict, Verdict::kLookAgain);
}

TEST(MaatRules, WhatHasBeenReplacedHoldsUnderAFixedTime) {
  const StageRule validate = rules_of(Protocol::kMaat)->validate;
  const Access read = registered_read();
  EXPECT_EQ(validate(read, nullptr, kFixed).verbs, kPostRead);
  HeaderSnapshot replaced = seen_with(6, 0, sundial_unlocked_word(30, 0));
  EXPECT_EQ(validate(read, &replaced, kFixed).verdict, Verdict::kDone);
  Access other = read;
  other.registered = false;
  replaced.posted = validate(other, nullptr, kFixed);
  replaced.cas_seen = sundial_unlocked_word(30, 0);
  EXPECT_EQ(validate(other, &replaced, kFixed).reason, AbortReason::kLeaseLost);
  EXPECT_EQ(validate(read, &replaced, TxnStamps{.ctts = kOwnTime, .commit_tts = 20}).reason,
            AbortReason::kLeaseLost)
      << "others do not know its time";
}

// Its holder may abort, and the next writer knows nothing of this time.
TEST(MaatRules, WhatIsOnlyLockedIsExtendedOrWaitedFor) {
  const StageRule validate = rules_of(Protocol::kMaat)->validate;
  const Access read = registered_read();
  const HeaderSnapshot by_older = seen_with(5, kOlderTime, sundial_locked_word(7, 1)),
                       by_younger = seen_with(5, kYoungerTime, sundial_locked_word(7, 1)),
                       lasting = seen_with(5, kYoungerTime, sundial_locked_word(20, 1));
  EXPECT_EQ(validate(read, &by_older, kFixed).verdict, Verdict::kLookAgain);
  EXPECT_EQ(validate(read, &by_older, kFixed).verbs, kPostRead);
  EXPECT_EQ(validate(read, &by_younger, kFixed).reason, AbortReason::kLeaseLost);
  EXPECT_EQ(validate(read, &lasting, kFixed).verdict, Verdict::kDone);
  HeaderSnapshot free = seen_with(5, 0, sundial_unlocked_word(3, 9));
  const Step extend = validate(read, &free, kFixed);
  EXPECT_EQ(extend.expected, sundial_unlocked_word(3, 9));
  EXPECT_EQ(extend.desired, sundial_unlocked_word(3, 17));
  free.posted = extend;
  free.cas_seen = extend.expected;
  EXPECT_EQ(validate(read, &free, kFixed).verdict, Verdict::kDone);
  free.cas_seen = sundial_locked_word(9, 1);  // lost against a lock
  free.post_read.sundial = free.cas_seen;
  free.post_read.lock = kOlderTime;
  EXPECT_EQ(validate(read, &free, kFixed).verdict, Verdict::kLookAgain);
}

// ---- Two sessions

class MaatTest : public LockingSessions {
 protected:
  void write(Session& session, const char* key) {
    ASSERT_TRUE(session.begin(options()).ok());
    put(session, key);
    const Status status = session.commit();
    ASSERT_TRUE(status.ok()) << status.to_string();
  }
  void put(Session& session, const char* key) {
    const Status status = session.put(table_, key, "new");
    ASSERT_TRUE(status.ok()) << status.to_string();
  }
  void read(Session& session, const char* key, const char* expected = "0") {
    RowView row;
    const Status status = session.get(table_, key, row);
    ASSERT_TRUE(status.ok()) << status.to_string();
    EXPECT_EQ(row.row, expected);
  }
  void begin_and_read(Session& session, const char* key) {
    ASSERT_TRUE(session.begin(options()).ok());
    read(session, key);
  }
  // No reader is left registered.
  void expect_at_rest() {
    as_one([&] {
      for (NodeId node = 0; node < 2; ++node) {
        auto locked = one_.locked_headers(node, 0);
        ASSERT_TRUE(locked.ok());
        EXPECT_TRUE(locked->headers.empty());
      }
    });
  }
};

// TICTOC's reader loses here.
TEST_P(MaatTest, AReaderComesBeforeTheWriterOfWhatItHasRead) {
  as_one([&] { begin_and_read(one_, "a"); });
  as_other([&] { write(other_, "a"); });
  as_one([&] {
    put(one_, "b");
    const Status committed = one_.commit();
    EXPECT_TRUE(committed.ok()) << committed.to_string();
  });
  expect_at_rest();
}

TEST_P(MaatTest, NotAfterItHasReadWhatComesBehindThatWriter) {
  as_one([&] { begin_and_read(one_, "a"); });
  as_other([&] {
    write(other_, "a");
    ASSERT_TRUE(other_.begin(options()).ok());
    read(other_, "a", "new");
    put(other_, "b");
    EXPECT_TRUE(other_.commit().ok());
  });
  as_one([&] {
    read(one_, "b", "new");
    EXPECT_EQ(reason_of(one_.commit()), AbortReason::kOutOfTime);
  });
  expect_at_rest();
}

TEST_P(MaatTest, OneOfTwoThatReadWhatTheOtherWritesLoses) {
  as_one([&] { begin_and_read(one_, "a"); });
  as_other([&] {
    begin_and_read(other_, "b");
    put(other_, "a");
    EXPECT_TRUE(other_.commit().ok());
  });
  as_one([&] {
    put(one_, "b");
    EXPECT_FALSE(one_.commit().ok());
  });
  expect_at_rest();
}

// A second reader finds the place taken, and validates as under TICTOC.
TEST_P(MaatTest, OneReaderIsRegistered) {
  as_one([&] { begin_and_read(one_, "a"); });
  as_other([&] {
    begin_and_read(other_, "a");
    put(other_, "c");
    EXPECT_TRUE(other_.commit().ok());
  });
  as_one([&] { EXPECT_TRUE(one_.commit().ok()); });
  as_other([&] { begin_and_read(other_, "a"); });
  as_one([&] { begin_and_read(one_, "a"); });
  Coordinator& third = engine_.add_coordinator();
  engine_.run(third, [&] {
    Session session(third);
    write(session, "a");
  });
  as_other([&] {
    put(other_, "b");
    EXPECT_TRUE(other_.commit().ok()) << "registered";
  });
  as_one([&] {
    put(one_, "c");
    EXPECT_EQ(reason_of(one_.commit()), AbortReason::kLeaseLost) << "not registered";
  });
  expect_at_rest();
}

TEST_P(MaatTest, AnAbortLeavesNoReader) {
  as_one([&] {
    begin_and_read(one_, "a");
    read(one_, "b");
    one_.abort();
  });
  expect_at_rest();
}

// One that has read without a registration, and registers behind a writer's look in a look that is
// given up, is not put before that writer, which knows nothing of it.
TEST_P(MaatTest, ARegistrationInVainIsNone) {
  as_other([&] {
    begin_and_read(other_, "b");
    put(other_, "a");
  });
  as_one([&] {
    ASSERT_TRUE(one_.begin(options()).ok());
    ASSERT_TRUE(scan(one_, ScanMode::kSerializable, keys_).ok());
  });
  as_other([&] { ASSERT_TRUE(other_.prepare(Gtid{7, 1}).ok()); });
  as_one([&] {
    RowView row;
    EXPECT_EQ(reason_of(one_.get(table_, "a", row)), AbortReason::kReadUnstable);
    // A session that has met another's lock may go on.
    EXPECT_EQ(outcome(one_.try_lock(table_, "c", RowLockMode::kNone)), RowLock::kGot);
  });
  as_other([&] { EXPECT_TRUE(other_.commit_prepared().ok()); });
  as_one([&] {
    put(one_, "b");
    EXPECT_EQ(reason_of(one_.commit()), AbortReason::kLeaseLost) << "or it is write skew";
  });
  expect_at_rest();
}

// What has to be current at the commit is not put before anything.
TEST_P(MaatTest, WhatHasToBeCurrentIs) {
  as_one([&] {
    ASSERT_TRUE(one_.begin(options()).ok());
    one_.need_current_reads();
    read(one_, "a");
  });
  as_other([&] { write(other_, "a"); });
  as_one([&] {
    put(one_, "b");
    EXPECT_EQ(reason_of(one_.commit()), AbortReason::kLeaseLost);
  });
}

INSTANTIATE_TEST_SUITE_P(Primitives, MaatTest,
                         testing::Combine(testing::Values(Protocol::kMaat),
                                          testing::Values(kOneSided, kRpc)),
                         name_of);

}  // namespace
}  // namespace rdmacc
