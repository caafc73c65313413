// TICTOC, TIMESTAMP and CICADA: their rules as tables, and what two sessions see of them.
#include "engine/storage/layout/sundial_word.h"
#include "tests/unit/engine/two_sessions.h"

namespace rdmacc {
namespace {

// Of lock words: a ctts is larger than any count of readers.
constexpr uint64_t kOwnTime = 900ull << 16, kOlderTime = kOwnTime - 50,
                   kYoungerTime = kOwnTime + 50;
constexpr TxnStamps kTxn{.ctts = kOwnTime, .commit_tts = 20};

HeaderSnapshot seen_untorn(uint64_t lock, uint64_t wts, uint64_t rts) {
  HeaderSnapshot seen{};
  seen.posted = Step::attempt(kUntornRead);
  seen.pre_read.lock = seen.post_read.lock = lock;
  seen.pre_read.wts = seen.post_read.wts = wts;
  seen.pre_read.rts = seen.post_read.rts = rts;
  return seen;
}

Access read_access(uint64_t wts) {
  Access read;
  read.read = true;
  read.read_wts = wts;
  return read;
}

TEST(TictocRules, ALockTellsWhereTheLeaseEnds) {
  Access locked;
  locked.locked = true;
  HeaderSnapshot seen = seen_untorn(kOwnTime, 5, 0);
  seen.posted = Step::cas(kPreRead, kOffsetOfLock, 0, kTxn.ctts);
  seen.pre_read.sundial = sundial_unlocked_word(3, 4);
  const Step freeze = rules_of(Protocol::kTictoc)->lock(locked, &seen, kTxn);
  EXPECT_EQ(freeze.expected, sundial_unlocked_word(3, 4));
  EXPECT_TRUE(sundial_locked(freeze.desired));
  EXPECT_EQ(sundial_wts(freeze.desired), 7u);
}

TEST(TictocRules, WhatIsLockedHoldsUntilItsEnd) {
  const StageRule validate = rules_of(Protocol::kTictoc)->validate;
  Access read = read_access(5);
  read.lease = sundial_unlocked_word(3, 4);
  HeaderSnapshot seen = seen_untorn(0, 5, 0);
  seen.posted = validate(read, nullptr, kTxn);
  EXPECT_EQ(seen.posted.desired, sundial_unlocked_word(3, 17));
  seen.cas_seen = sundial_locked_word(20, 2);
  EXPECT_EQ(validate(read, &seen, kTxn).verdict, Verdict::kDone);
  seen.cas_seen = sundial_locked_word(19, 2);
  EXPECT_EQ(validate(read, &seen, kTxn).reason, AbortReason::kLeaseLost);
  seen.cas_seen = sundial_unlocked_word(3, 9);  // another has extended it, but not as far
  EXPECT_EQ(validate(read, &seen, kTxn).desired, sundial_unlocked_word(3, 17));
  seen.cas_seen = sundial_locked_word(20, 2);
  seen.post_read.wts = 6;  // the holder has begun to write
  EXPECT_EQ(validate(read, &seen, kTxn).reason, AbortReason::kLeaseLost);
  seen.cas_seen = read.lease;
  EXPECT_EQ(validate(read, &seen, kTxn).verdict, Verdict::kDone) << "extended";
}

// A slot that a row is being put into has a stamp of this life and a lease of the one before: its
// lease is not locked.
TEST(LeasedRules, WhatIsBeingInstalledIsWaitedFor) {
  for (const Protocol protocol : {Protocol::kSundial, Protocol::kTictoc, Protocol::kMaat}) {
    const StageRule read = rules_of(protocol)->read;
    HeaderSnapshot seen = seen_untorn(kYoungerTime, 5, 0);
    seen.pre_read.sundial = seen.post_read.sundial = sundial_unlocked_word(3, 4);
    EXPECT_EQ(read(Access{}, &seen, kTxn).verdict, Verdict::kLookAgain) << protocol_name(protocol);
    for (const uint64_t lock : {uint64_t{0}, kOwnTime, early_lock(kYoungerTime), uint64_t{3}}) {
      seen.pre_read.lock = lock;
      EXPECT_EQ(read(Access{}, &seen, kTxn).verdict, Verdict::kDone) << lock;
    }
  }
}

TEST(TimestampRules, ReadsNothingThatWasWrittenLater) {
  const StageRule read = rules_of(Protocol::kTimestamp)->read;
  HeaderSnapshot seen = seen_untorn(0, 5, 0);
  const Step raise = read(Access{}, &seen, kTxn);
  EXPECT_EQ(raise.word, kOffsetOfRts);
  EXPECT_EQ(raise.desired, kTxn.ctts);
  seen = seen_untorn(kOlderTime, 5, kOwnTime);
  EXPECT_EQ(read(Access{}, &seen, kTxn).verdict, Verdict::kLookAgain) << "an older writer";
  seen = seen_untorn(kYoungerTime, 5, kOwnTime);
  EXPECT_EQ(read(Access{}, &seen, kTxn).verdict, Verdict::kDone) << "a younger one";
  seen = seen_untorn(kYoungerTime, kYoungerTime, kOwnTime);
  EXPECT_EQ(read(Access{}, &seen, kTxn).reason, AbortReason::kTooLate);
  const GapRule gap = rules_of(Protocol::kTimestamp)->read_gap;
  EXPECT_EQ(gap(seen.pre_read, seen.post_read, kTxn).reason, AbortReason::kTooLate);
  seen = seen_untorn(0, 5, kOwnTime);
  EXPECT_EQ(gap(seen.pre_read, seen.post_read, kTxn).verdict, Verdict::kDone);
}

TEST(CicadaRules, ReadsLeaveNoTrace) {
  const StageRule read = rules_of(Protocol::kCicada)->read;
  HeaderSnapshot seen = seen_untorn(0, 5, 0);
  EXPECT_EQ(read(Access{}, &seen, kTxn).verdict, Verdict::kDone);
  seen.post_read.flags = kFlagDeleted;  // an absence is protected at once
  EXPECT_EQ(read(Access{}, &seen, kTxn).word, kOffsetOfRts);
  seen = seen_untorn(kOlderTime, 5, 0);
  EXPECT_EQ(read(Access{}, &seen, kTxn).verdict, Verdict::kLookAgain);
}

TEST(CicadaRules, ValidatesWhatCouldStillChange) {
  const StageRule validate = rules_of(Protocol::kCicada)->validate;
  const Access read = read_access(5);
  EXPECT_EQ(validate(read_access(kTxn.just_before()), nullptr, kTxn).verdict, Verdict::kDone)
      << "an absence";
  Access old = read;
  old.lease = kLeaseOfOldVersion;
  EXPECT_EQ(validate(old, nullptr, kTxn).verdict, Verdict::kDone);
  EXPECT_EQ(validate(read, nullptr, kTxn).verbs, kPostRead);
  HeaderSnapshot seen = seen_untorn(0, 5, 0);
  seen.posted = Step::attempt(kPostRead);
  EXPECT_EQ(validate(read, &seen, kTxn).desired, kTxn.ctts);
  seen = seen_untorn(0, 5, kOwnTime);
  EXPECT_EQ(validate(read, &seen, kTxn).verdict, Verdict::kDone);
  seen = seen_untorn(kOlderTime, 5, kOwnTime);
  EXPECT_EQ(validate(read, &seen, kTxn).verdict, Verdict::kLookAgain);
  seen = seen_untorn(early_lock(kOlderTime), 5, kOwnTime);
  EXPECT_EQ(validate(read, &seen, kTxn).verdict, Verdict::kDone);
  seen = seen_untorn(0, 6, kOwnTime);
  EXPECT_EQ(validate(read, &seen, kTxn).reason, AbortReason::kValidationFailed);
}

TEST(CicadaRules, FindsAmongOldVersionsWhatItHasRead) {
  const StageRule validate = rules_of(Protocol::kCicada)->validate;
  HeaderSnapshot seen = seen_untorn(0, kYoungerTime, kYoungerTime);
  seen.posted = Step::attempt(kPostRead);
  EXPECT_EQ(validate(read_access(5), &seen, kTxn).verbs, kReadReference);
  seen.posted = Step::attempt(kReadReference);
  seen.versions_at = 4096;
  EXPECT_EQ(validate(read_access(5), &seen, kTxn).verbs, kReadStamps);
  VersionHead versions[] = {{5, 0, 0}, {kYoungerTime, 0, 0}, {3, 0, 0}};
  seen.versions = versions;
  seen.history = 3;
  seen.posted = Step::attempt(kReadStamps);
  EXPECT_EQ(validate(read_access(5), &seen, kTxn).verdict, Verdict::kDone);
  versions[2].stamp = kOlderTime;  // an older transaction has written between
  EXPECT_EQ(validate(read_access(5), &seen, kTxn).reason, AbortReason::kValidationFailed);
  versions[0].stamp = versions[2].stamp = kYoungerTime;
  EXPECT_EQ(validate(read_access(5), &seen, kTxn).reason, AbortReason::kValidationFailed);
}

TEST(CicadaRules, WritesTheNewestOfWhatItHasRead) {
  const StageRule lock = rules_of(Protocol::kCicada)->lock;
  Access read = read_access(5);
  read.locked = true;
  HeaderSnapshot seen = seen_untorn(kOwnTime, 5, 0);
  seen.posted = Step::cas(kPreRead, kOffsetOfLock, 0, kTxn.ctts);
  EXPECT_EQ(lock(read, &seen, kTxn).verdict, Verdict::kDone);
  seen.pre_read.wts = 6;
  EXPECT_EQ(lock(read, &seen, kTxn).reason, AbortReason::kVersionChanged);
  seen.pre_read.wts = 5;
  seen.pre_read.rts = kYoungerTime;
  EXPECT_EQ(lock(read, &seen, kTxn).reason, AbortReason::kTooLate);
}

// ---- Two sessions

class TimeOrder : public TwoSessions {
 protected:
  Status write(Session& session, const char* key, const char* row) {
    RDMACC_RETURN_IF_ERROR(session.put(table_, key, row));
    return session.commit();
  }
  void other_writes(const char* key, const char* and_reads = nullptr) {
    as_other([&] {
      RowView row;
      ASSERT_TRUE(other_.begin(options()).ok());
      if (and_reads != nullptr) {
        ASSERT_TRUE(other_.get(table_, and_reads, row).ok());
      }
      const Status status = write(other_, key, "other");
      ASSERT_TRUE(status.ok()) << status.to_string();
    });
  }
  void begin_and_read(Session& session, const char* key) {
    RowView row;
    ASSERT_TRUE(session.begin(options()).ok());
    ASSERT_TRUE(session.get(table_, key, row).ok());
    EXPECT_EQ(row.row, "0");
  }
};

// What others have extended since holds, although yet another is about to write the row.
class LeaseOrderTest : public TimeOrder {};

TEST_P(LeaseOrderTest, ALockedRowHoldsUntilItsEnd) {
  as_one([&] { begin_and_read(one_, "a"); });
  for (int i = 0; i < 5; ++i) other_writes("c", "a");
  as_other([&] {
    ASSERT_TRUE(other_.begin(options()).ok());
    ASSERT_TRUE(other_.put(table_, "a", "other").ok());
    ASSERT_TRUE(other_.prepare(Gtid{7, 1}).ok());
  });
  as_one([&] {
    const Status committed = write(one_, "b", "one");
    EXPECT_EQ(committed.ok(), protocol() != Protocol::kSundial) << committed.to_string();
  });
  as_other([&] { EXPECT_TRUE(other_.commit_prepared().ok()); });
  as_one([&] {
    RowView row;
    ASSERT_TRUE(one_.begin(options()).ok());
    ASSERT_TRUE(one_.get(table_, "a", row).ok());
    EXPECT_EQ(row.row, "other");
    EXPECT_TRUE(one_.commit().ok());
  });
}

// A word has no room for later times: what needs one is refused, and changes nothing.
TEST_P(LeaseOrderTest, EndsWithTheLogicalTime) {
  as_one([&] {
    ASSERT_TRUE(one_.begin(options()).ok());
    ASSERT_TRUE(one_.try_lock(table_, "a", RowLockMode::kExclusive).ok());
  });
  for (NodeId node = 0; node < 2; ++node) {
    Worker& worker = engine_.node(node).worker();
    bool done = false;
    ASSERT_TRUE(worker.scheduler().spawn([&] {
      for (const GlobalAddress at : engine_.node(node).storage()->locks_of(here_.worker().id())) {
        std::byte* const header = worker.endpoint().local_region() + at.offset();
        reinterpret_cast<Header*>(header)->sundial = sundial_unlocked_word(kSundialWtsMax / 2, 0);
      }
      done = true;
    }));
    ASSERT_TRUE(engine_.run_until([&] { return done; }));
  }
  as_one([&] {
    const Status committed = write(one_, "a", "one");
    EXPECT_EQ(committed.code(), Code::kUnavailable) << committed.to_string();
  });
  other_writes("b");
  as_other([&] {
    RowView row;
    ASSERT_TRUE(other_.begin(options()).ok());
    auto lock = other_.try_lock(table_, "a", RowLockMode::kExclusive);
    EXPECT_TRUE(lock.ok() && *lock == RowLock::kGot) << "its lock was given back";
    ASSERT_TRUE(other_.get(table_, "a", row).ok());
    EXPECT_EQ(row.row, "0");
    other_.abort();
  });
}

INSTANTIATE_TEST_SUITE_P(Protocols, LeaseOrderTest,
                         testing::Combine(testing::Values(Protocol::kSundial, Protocol::kTictoc,
                                                          Protocol::kMaat),
                                          testing::Values(kOneSided, kRpc)),
                         name_of);

class StampOrderTest : public TimeOrder {};

// Where there are old versions what was read stays what a transaction of that time reads.
TEST_P(StampOrderTest, AYoungerWriterComesBehindWhatWasRead) {
  as_one([&] { begin_and_read(one_, "a"); });
  other_writes("a");
  as_one([&] {
    const Status committed = write(one_, "b", "one");
    EXPECT_TRUE(committed.ok()) << committed.to_string();
  });
}

// A reader's trace makes an older writer too late. Without one the reader finds that it has come.
TEST_P(StampOrderTest, AnOlderWriterIsNotMissed) {
  as_other([&] { begin_and_read(other_, "c"); });
  as_one([&] { begin_and_read(one_, "a"); });
  Status older, younger;
  as_other([&] { older = write(other_, "a", "other"); });
  as_one([&] { younger = write(one_, "b", "one"); });
  const bool optimistic = protocol() == Protocol::kCicada;
  EXPECT_EQ(older.ok(), optimistic) << older.to_string();
  EXPECT_EQ(younger.ok(), !optimistic) << younger.to_string();
  EXPECT_EQ(reason_of(optimistic ? younger : older),
            optimistic ? AbortReason::kValidationFailed : AbortReason::kTooLate);
}

TEST_P(StampOrderTest, AnOldReaderIsTooLateOnlyWhereNothingIsKept) {
  const bool keeps = rules_of(protocol())->keeps_versions();
  for (const char* key : {"a", "b", "new"}) {
    as_one([&] { begin_and_read(one_, "c"); });
    as_other([&] {
      ASSERT_TRUE(other_.begin(options()).ok());
      const Status status = *key == 'b'   ? other_.remove(table_, key)
                            : *key == 'n' ? other_.insert(table_, key, "other")
                                          : other_.put(table_, key, "other");
      ASSERT_TRUE(status.ok()) << status.to_string();
      ASSERT_TRUE(other_.commit().ok());
    });
    as_one([&] {
      RowView row;
      const Status read = one_.get(table_, key, row);
      EXPECT_EQ(reason_of(read), keeps ? AbortReason::kNone : AbortReason::kTooLate) << key;
      EXPECT_EQ(row.found, keeps && *key != 'n') << key;
      one_.abort();
      ASSERT_TRUE(one_.begin(options()).ok());  // and later it is not
      const Status again = one_.get(table_, key, row);
      EXPECT_TRUE(again.ok()) << again.to_string();
      EXPECT_EQ(row.found, *key != 'b');
      EXPECT_TRUE(one_.commit().ok());
    });
  }
}

INSTANTIATE_TEST_SUITE_P(Protocols, StampOrderTest,
                         testing::Combine(testing::Values(Protocol::kMvcc, Protocol::kTimestamp,
                                                          Protocol::kCicada),
                                          testing::Values(kOneSided, kRpc)),
                         name_of);

// A table that a transaction takes away, which has begun before others used it.
class TakenAway : public TwoSessions {
 protected:
  // What comes of it when the other one has done `use` in between.
  Code take_away_after(const std::function<void()>& use) {
    Code code{};
    as_one([&] {
      ASSERT_TRUE(one_.begin(options()).ok());
      RowView row;
      ASSERT_TRUE(one_.get(table_, "a", row).ok());
    });
    as_other([&] {
      ASSERT_TRUE(other_.begin(options()).ok());
      use();
      ASSERT_TRUE(other_.commit().ok());
    });
    as_one([&] {
      code = one_.lose_if_used_since(table_).code();
      one_.abort();
    });
    return code;
  }
};

TEST_P(TakenAway, WhatWasUsedSinceStays) {
  RowView row;
  const auto reads = [&](const char* key) {
    return [&, key] {
      ASSERT_TRUE(other_.get(table_, key, row).ok());
      ASSERT_TRUE(other_.get(table_, "b", row).ok());  // one alone may be of any time
    };
  };
  EXPECT_EQ(take_away_after([] {}), Code::kOk);
  EXPECT_EQ(take_away_after(reads("c")), Code::kAborted);
  EXPECT_EQ(take_away_after(reads("none")), Code::kAborted);
  const auto wrote = [](const Status& status) { ASSERT_TRUE(status.ok()) << status.to_string(); };
  EXPECT_EQ(take_away_after([&] { wrote(other_.put(table_, "b", "1")); }), Code::kAborted);
  EXPECT_EQ(take_away_after([&] { wrote(other_.insert(table_, "new", "1")); }), Code::kAborted);
  EXPECT_EQ(take_away_after([&] { wrote(other_.remove(table_, "c")); }), Code::kAborted);
  EXPECT_EQ(take_away_after([] {}), Code::kOk);
}

INSTANTIATE_TEST_SUITE_P(AsOfATime, TakenAway,
                         testing::Combine(testing::Values(Protocol::kMvcc, Protocol::kTimestamp,
                                                          Protocol::kCicada),
                                          testing::Values(kOneSided, kRpc)),
                         name_of);

// Another one's locks in a table that a transaction wants to take away.
class LockedByOthers : public TwoSessions {
 protected:
  bool locked() {
    bool found = false;
    as_one([&] {
      const Result<bool> asked = one_.locked_by_others(std::span(&table_, 1));
      ASSERT_TRUE(asked.ok()) << asked.status().to_string();
      found = asked.value();
    });
    return found;
  }
};

TEST_P(LockedByOthers, AreSeenUntilTheyAreReleased) {
  const bool locks = rules_of(protocol())->locks_what_it_reads();
  for (const char* key : {"c", "none"}) {
    RowView row;
    as_other([&] {
      ASSERT_TRUE(other_.begin(options()).ok());
      ASSERT_TRUE(other_.get(table_, key, row).ok());
    });
    as_one([&] { ASSERT_TRUE(one_.begin(options()).ok()); });
    EXPECT_EQ(locked(), locks) << key;
    as_other([&] { other_.abort(); });
    as_one([&] {  // its own are no others'
      ASSERT_TRUE(one_.get(table_, "b", row).ok());
      ASSERT_TRUE(one_.get(table_, "nothing", row).ok());
    });
    EXPECT_FALSE(locked()) << key;
    as_one([&] { one_.abort(); });
  }
}

INSTANTIATE_TEST_SUITE_P(Protocols, LockedByOthers,
                         testing::Combine(testing::Values(Protocol::kNowait, Protocol::kWaitdie,
                                                          Protocol::kWoundwait, Protocol::kOcc),
                                          testing::Values(kOneSided, kRpc)),
                         name_of);

}  // namespace
}  // namespace rdmacc
