// DRTM: its rules as tables, the draws of leases, and what two sessions see of them.
#include "engine/cluster/lease_clock.h"
#include "tests/unit/engine/two_sessions.h"

namespace rdmacc {
namespace {

constexpr uint64_t kNowUs = 1'000'000, kEndUs = kNowUs + kLeaseUs;
constexpr uint64_t kOwn = lease_word(kEndUs, 7);
constexpr TxnStamps kReader{.ctts = 900, .lease = kOwn};
constexpr uint64_t kOtherLock = 700ull << 16;  // a ctts is larger than any count of readers
constexpr TxnStamps kReadsToWrite{.ctts = 900, .lease = kOwn, .reads_to_write = true};

StageRule drtm_read() { return rules_of(Protocol::kDrtm)->read; }
StageRule drtm_lock() { return rules_of(Protocol::kDrtm)->lock; }

HeaderSnapshot untorn(uint64_t lock, uint64_t rts) {
  HeaderSnapshot seen{};
  seen.posted = Step::attempt(kUntornRead);
  seen.pre_read.wts = seen.post_read.wts = 5;
  seen.pre_read.lock = seen.post_read.lock = lock;
  seen.pre_read.rts = seen.post_read.rts = rts;
  return seen;
}

// What a read comes to that finds `rts` there, of a row that is free.
Step read_of(uint64_t rts, const TxnStamps& txn = kReader) {
  const HeaderSnapshot seen = untorn(0, rts);
  return drtm_read()(Access{}, &seen, txn);
}

HeaderSnapshot locked(uint64_t rts) {
  HeaderSnapshot seen = untorn(900, rts);
  seen.posted = Step::cas(kPreRead, kOffsetOfLock, 0, kReader.ctts);
  return seen;
}
Access held_access(uint64_t lease = 0) {
  Access access;
  access.locked = true;
  access.lease = lease;
  return access;
}

TEST(LeaseWord, ComparesByItsEndAndThenByWhetherItIsShared) {
  EXPECT_LT(lease_word(5, 7), shared_lease(lease_word(5, 7)));
  EXPECT_LT(shared_lease(lease_word(5, 7)), lease_word(6, 0));
  EXPECT_EQ(lease_end_us(shared_lease(kOwn)), kEndUs);
  EXPECT_EQ(shared_lease(0), 0u);
  // What is over when a lease is drawn, by a clock that is off by as much as may be.
  const uint64_t earliest_us = kEndUs - kLeaseUs - kClockWidthUsMax;
  EXPECT_TRUE(may_draw_lease(kEndUs, earliest_us));
  EXPECT_FALSE(may_draw_lease(kEndUs, earliest_us - 1));
  EXPECT_TRUE(over_at_draw(lease_word(earliest_us - 1, 3), kOwn));
  EXPECT_FALSE(over_at_draw(lease_word(earliest_us, 3), kOwn));
  EXPECT_FALSE(over_at_draw(0, 0)) << "nothing is known without a draw";
}

TEST(DrtmRead, TakesALeaseWhereThereIsNone) {
  const Step take = read_of(0);
  EXPECT_EQ(take.verbs, kCas | kPostRead);
  EXPECT_EQ(take.word, kOffsetOfRts);
  EXPECT_EQ(take.expected, 0u);
  EXPECT_EQ(take.desired, kOwn) << "alone: no other's lasts";
  EXPECT_EQ(read_of(lease_word(kNowUs / 2, 3)).desired, kOwn) << "that one is over";
  const Step taken = read_of(kOwn);
  EXPECT_EQ(taken.verdict, Verdict::kDone);
  EXPECT_EQ(taken.lease_or(0), kOwn);
}

TEST(DrtmRead, SharesWhatLastsLongEnough) {
  const uint64_t alone = lease_word(kEndUs - 10, 3), shared = shared_lease(alone);
  EXPECT_EQ(read_of(alone).desired, shared_lease(kOwn)) << "its owner has to learn of it";
  EXPECT_EQ(read_of(shared).verdict, Verdict::kDone);
  EXPECT_EQ(read_of(shared).lease_or(0), shared);
  const uint64_t brief = lease_word(kEndUs - kLeaseUs / 2 - 1, kSharedLease);
  EXPECT_EQ(read_of(brief).desired, shared_lease(kOwn)) << "extended";
  const uint64_t longer = lease_word(kEndUs + 5, 3);
  EXPECT_EQ(read_of(longer).desired, shared_lease(longer)) << "no lease gets shorter";
}

TEST(DrtmRead, TakesNoneOfWhatItLocksAnywayOrScans) {
  EXPECT_EQ(read_of(0, kReadsToWrite).verdict, Verdict::kDone);
  EXPECT_EQ(read_of(0, kReadsToWrite).lease_or(1), 0u);
  const uint64_t alone = lease_word(kEndUs, 3);
  EXPECT_EQ(read_of(alone, kReadsToWrite).lease_or(1), 0u) << "its owner does not know";
  EXPECT_EQ(read_of(shared_lease(alone), kReadsToWrite).lease_or(1), shared_lease(alone));
  Access row;
  row.tag_only = true;
  const HeaderSnapshot seen = untorn(0, 0);
  EXPECT_EQ(drtm_read()(row, &seen, kReader).verdict, Verdict::kDone);
  constexpr TxnStamps kInexact{.ctts = 900};
  EXPECT_EQ(read_of(0, kInexact).verdict, Verdict::kDone) << "a clock that is off by too much";
}

TEST(DrtmRead, LeasesNothingUnderAWriter) {
  const HeaderSnapshot before = untorn(kOtherLock, 0);
  EXPECT_EQ(drtm_read()(Access{}, &before, kReader).verdict, Verdict::kLookAgain);
  HeaderSnapshot behind = untorn(0, kOwn);
  behind.post_read.lock = kOtherLock;
  EXPECT_EQ(drtm_read()(Access{}, &behind, kReader).verdict, Verdict::kLookAgain)
      << "it may have looked at rts before the lease was there";
  behind.post_read.lock = early_lock(kOtherLock);
  EXPECT_EQ(drtm_read()(Access{}, &behind, kReader).verdict, Verdict::kDone);
}

TEST(DrtmGap, IsLeasedLikeARow) {
  const GapRule gap = rules_of(Protocol::kDrtm)->read_gap;
  HeaderSnapshot seen = untorn(0, 0);
  EXPECT_EQ(gap(seen.pre_read, seen.post_read, kReader).desired, kOwn);
  seen.post_read.rts = kOwn;  // an entry was read before the lease was there
  EXPECT_EQ(gap(seen.pre_read, seen.post_read, kReader).lease_or(0), kOwn)
      << "no inserter was there at the end";
  seen.post_read.lock = kOtherLock;
  EXPECT_EQ(gap(seen.pre_read, seen.post_read, kReader).verdict, Verdict::kLookAgain);
}

TEST(DrtmLock, WaitsUntilOthersLeasesAreOver) {
  const uint64_t others = lease_word(kEndUs - 10, kSharedLease);
  HeaderSnapshot seen = locked(others);
  const Step wait = drtm_lock()(held_access(), &seen, kReader);
  EXPECT_EQ(wait.verdict, Verdict::kLookAgain);
  EXPECT_EQ(wait.verbs, kAwait) << "the lock is held: nothing is read again";
  EXPECT_EQ(wait.desired, kEndUs - 10);
  seen.posted = wait;
  seen.over_us = kEndUs - 11;
  EXPECT_EQ(drtm_lock()(held_access(), &seen, kReader).verdict, Verdict::kLookAgain);
  seen.over_us = kEndUs - 10;
  EXPECT_EQ(drtm_lock()(held_access(), &seen, kReader).verdict, Verdict::kDone);
  seen = locked(lease_word(kNowUs / 2, kSharedLease));
  EXPECT_EQ(drtm_lock()(held_access(), &seen, kReader).verdict, Verdict::kDone);
}

TEST(DrtmLock, IsNotKeptOutByALeaseOfItsOwn) {
  const HeaderSnapshot alone = locked(kOwn), joined = locked(shared_lease(kOwn));
  EXPECT_EQ(drtm_lock()(held_access(kOwn), &alone, kReader).verdict, Verdict::kDone);
  EXPECT_EQ(drtm_lock()(held_access(kOwn), &joined, kReader).verbs, kAwait);
  EXPECT_EQ(drtm_lock()(held_access(shared_lease(kOwn)), &joined, kReader).verbs, kAwait);
  EXPECT_EQ(drtm_lock()(held_access(), &alone, kReader).verbs, kAwait) << "it has not read the row";
}

TEST(DrtmLock, WantsTheVersionThatWasRead) {
  Access read = held_access(kOwn);
  read.read = true;
  read.read_wts = 4;
  const HeaderSnapshot seen = locked(kOwn);
  EXPECT_EQ(drtm_lock()(read, &seen, kReader).reason, AbortReason::kVersionChanged);
}

TEST(DrtmConfirm, HoldsWhatLastsBeyondTheLatestTime) {
  const auto holds = rules_of(Protocol::kDrtm)->holds_until_commit;
  const auto at = [](uint64_t latest_us) {
    return TxnStamps{.ctts = 900, .commit_tts = lease_word(latest_us, kSharedLease)};
  };
  Access access;
  EXPECT_FALSE(holds(access, at(kNowUs)));
  for (const uint64_t word : {kOwn, shared_lease(kOwn)}) {
    access.lease = word;
    EXPECT_TRUE(holds(access, at(kEndUs - 1)));
    EXPECT_FALSE(holds(access, at(kEndUs)));
  }
}

// ---- Two sessions

class LeaseTest : public TwoSessions {
 protected:
  uint64_t now_us() { return engine_.fabric().now_ns() / 1000; }
  void begin_and_read(Session& session, std::initializer_list<const char*> keys) {
    ASSERT_TRUE(session.begin(options()).ok());
    for (const char* key : keys) {
      RowView row;
      ASSERT_TRUE(session.get(table_, key, row).ok());
    }
  }
  // How long it takes.
  uint64_t write(Session& session, const char* key, const char* row) {
    const uint64_t begin_us = now_us();
    if (!session.active()) {
      EXPECT_TRUE(session.begin(options()).ok());
    }
    EXPECT_TRUE(session.put(table_, key, row).ok());
    const Status committed = session.commit();
    EXPECT_TRUE(committed.ok()) << committed.to_string();
    return now_us() - begin_us;
  }
};

TEST_P(LeaseTest, AWriterWaitsForAReaderThatMayBeGone) {
  const uint64_t begin_us = now_us();
  as_one([&] { begin_and_read(one_, {"a"}); });
  as_other([&] { write(other_, "a", "other"); });
  EXPECT_GE(now_us() - begin_us, kLeaseUs / 2);  // as much is left of a lease that is used again
  as_one([&] {
    ASSERT_TRUE(one_.put(table_, "b", "one").ok());
    EXPECT_EQ(reason_of(one_.commit()), AbortReason::kValidationFailed) << "its lease is over";
  });
}

TEST_P(LeaseTest, ALeaseOfOnesOwnKeepsNothingOut) {
  as_one([&] {
    begin_and_read(one_, {"a", "b", "new"});
    ASSERT_TRUE(one_.insert(table_, "new", "one").ok());
    EXPECT_LT(write(one_, "a", "one"), kLeaseUs / 2);
    begin_and_read(one_, {"a"});  // what the transaction before has leased, too
    EXPECT_LT(write(one_, "b", "one"), kLeaseUs / 2);
  });
}

TEST_P(LeaseTest, ASharedLeaseKeepsItsOwnerOut) {
  as_one([&] { begin_and_read(one_, {"a"}); });
  as_other([&] { begin_and_read(other_, {"a"}); });
  as_one([&] { EXPECT_GE(write(one_, "a", "one"), kLeaseUs / 2); });
  as_other([&] {
    ASSERT_TRUE(other_.put(table_, "b", "other").ok());
    EXPECT_EQ(reason_of(other_.commit()), AbortReason::kValidationFailed);
  });
}

TEST_P(LeaseTest, AbsentKeysAreLeased) {
  const uint64_t begin_us = now_us();
  as_one([&] { begin_and_read(one_, {"new"}); });
  as_other([&] {
    ASSERT_TRUE(other_.begin(options()).ok());
    ASSERT_TRUE(other_.insert_unchecked(table_, "new", "other").ok());
    EXPECT_TRUE(other_.commit().ok());
  });
  EXPECT_GE(now_us() - begin_us, kLeaseUs / 2);
  as_one([&] {
    ASSERT_TRUE(one_.put(table_, "b", "one").ok());
    EXPECT_EQ(reason_of(one_.commit()), AbortReason::kGapChanged);
  });
}

// No verb tells that leases last.
TEST_P(LeaseTest, WhatIsLeasedIsNotValidated) {
  const auto reads = [&] { return here_.stats().verbs.reads + here_.stats().verbs.messages; };
  as_one([&] {
    begin_and_read(one_, {"a", "b"});
    ASSERT_TRUE(one_.commit().ok());
    const auto before = reads();
    begin_and_read(one_, {"a", "b"});
    ASSERT_TRUE(one_.commit().ok());
    const auto early = reads() - before;
    begin_and_read(one_, {"a", "b"});
    one_.abort();
    EXPECT_EQ(reads() - before - early, early) << "a commit takes no more than an abort";
  });
}

// A lease is a reader's trace to MVCC, whose readers leave leases that are over.
TEST_P(LeaseTest, OutlastsAChangeOfProtocol) {
  TxnOptions by_stamps = options();
  by_stamps.protocol = Protocol::kMvcc;
  as_one([&] {
    begin_and_read(one_, {"a", "new"});
    ASSERT_TRUE(one_.commit().ok());
  });
  as_other([&] {
    Status status(Code::kAborted);
    for (int attempt = 0; attempt < 2 && !status.ok(); attempt++) {  // the first may be too late
      ASSERT_TRUE(other_.begin(by_stamps).ok());
      status = other_.put(table_, "a", "other");
      if (status.ok()) status = other_.insert(table_, "new", "other");
      if (status.ok()) status = other_.commit();
      other_.abort();
    }
    EXPECT_TRUE(status.ok()) << status.to_string();
    ASSERT_TRUE(other_.begin(by_stamps).ok());
    RowView row;
    ASSERT_TRUE(other_.get(table_, "b", row).ok());
    EXPECT_TRUE(other_.commit().ok());
  });
  as_one([&] {
    for (const char* key : {"a", "b", "new"}) EXPECT_LT(write(one_, key, "one"), 2 * kLeaseUs);
  });
}

INSTANTIATE_TEST_SUITE_P(Protocols, LeaseTest,
                         testing::Combine(testing::Values(Protocol::kDrtm),
                                          testing::Values(kOneSided, kRpc)),
                         name_of);

// ---- Draws

class SetClock : public Endpoint {
 public:
  ClockBounds bounds{kNowUs, kNowUs + 1};

  SetClock() { worker_ = 7; }
  ClockBounds clock_bounds() override { return bounds; }
  void ring(NodeId, std::span<const Verb>, Completion*) override {}
  bool send(WorkerId, std::span<const std::byte>) override { return false; }
  void set_datagram_handler(DatagramHandler) override {}
  bool poll() override { return false; }
  void wait(uint64_t) override {}
  uint64_t now_us() override { return bounds.earliest_us; }
  uint64_t now_ns() override { return now_us() * 1000; }
  Random& random() override { return random_; }
  Result<std::byte*> allocate_registered(size_t) override { return Status(Code::kNoSpace); }
  std::byte* local_region() override { return nullptr; }
  Status back_region(uint64_t, uint64_t) override { return Status(); }
  uint32_t incarnation_of(WorkerId) override { return 1; }

 private:
  Random random_{1};
};

TEST(LeaseClock, DrawsNoneTwiceAndNoneByAClockThatIsOff) {
  SetClock endpoint;
  LeaseClock clock(endpoint);
  EXPECT_EQ(clock.next(), lease_word(kNowUs + 1 + kLeaseUs, 7));
  EXPECT_EQ(clock.next(), lease_word(kNowUs + 2 + kLeaseUs, 7));
  endpoint.bounds = {kNowUs + 10, kNowUs + 10 + kClockWidthUsMax};
  EXPECT_NE(clock.next(), 0u);
  EXPECT_EQ(clock.next(), 0u) << "it would be a lease too long";
  endpoint.bounds = {kNowUs + 100, kNowUs + 101 + kClockWidthUsMax};
  EXPECT_EQ(clock.next(), 0u);
}

}  // namespace
}  // namespace rdmacc
