// Locks that do not wait, and scans that pass over locked rows, under every protocol and with
// stages one-sided and by RPC: two sessions of a simulated cluster take turns.
#include "engine/txn/stages/row_lock.h"

#include "tests/unit/engine/locking_sessions.h"

namespace rdmacc {
namespace {

class RowLockTest : public LockingSessions {};

TEST_P(RowLockTest, WhatOneHoldsTheOtherDoesNotGet) {
  as_one([&] {
    ASSERT_TRUE(one_.begin(options()).ok());
    EXPECT_EQ(outcome(one_.try_lock(table_, "a", RowLockMode::kExclusive)), RowLock::kGot);
    EXPECT_EQ(outcome(one_.try_lock(table_, "a", RowLockMode::kExclusive)), RowLock::kGot);
    EXPECT_EQ(outcome(one_.try_lock(table_, "z", RowLockMode::kExclusive)), RowLock::kAbsent);
  });
  as_other([&] {
    ASSERT_TRUE(other_.begin(options()).ok());
    EXPECT_EQ(outcome(other_.try_lock(table_, "a", RowLockMode::kExclusive)), RowLock::kBusy);
    EXPECT_EQ(outcome(other_.try_lock(table_, "a", RowLockMode::kShare)), RowLock::kBusy);
    EXPECT_EQ(skipping(other_), (std::set<std::string>{"b", "c"}));
    EXPECT_EQ(outcome(other_.try_lock(table_, "b", RowLockMode::kExclusive)), RowLock::kGot);
    ASSERT_TRUE(other_.put(table_, "b", "other").ok());
    const Status committed = other_.commit();
    EXPECT_TRUE(committed.ok()) << committed.to_string();
  });
  as_one([&] {
    EXPECT_EQ(skipping(one_), (std::set<std::string>{"a", "b", "c"}));
    ASSERT_TRUE(one_.put(table_, "a", "one").ok());
    const Status committed = one_.commit();
    EXPECT_TRUE(committed.ok()) << committed.to_string();
    ASSERT_TRUE(one_.begin(options()).ok());
    RowView row;
    ASSERT_TRUE(one_.get(table_, "a", row).ok());
    EXPECT_EQ(row.row, "one");
    ASSERT_TRUE(one_.get(table_, "b", row).ok());
    EXPECT_EQ(row.row, "other");
    EXPECT_TRUE(one_.commit().ok());
  });
}

// A share that its scan has taken is the transaction's own, and hinders no lock of its.
TEST_P(RowLockTest, WhatItHasScannedItGets) {
  for (const LockMode mode : {LockMode::kExclusive, LockMode::kShared}) {
    TxnOptions asked = options();
    asked.lock_mode = mode;
    as_one([&] {
      ASSERT_TRUE(one_.begin(asked).ok());
      std::set<std::string> keys;
      ASSERT_TRUE(scan(one_, ScanMode::kNoWait, keys).ok());
      for (const std::string& key : keys) {
        EXPECT_EQ(outcome(one_.try_lock(table_, key, RowLockMode::kExclusive)), RowLock::kGot)
            << key;
        EXPECT_TRUE(one_.put(table_, key, "mine").ok());
      }
      const Status committed = one_.commit();
      EXPECT_TRUE(committed.ok()) << committed.to_string();
    });
  }
}

// Also where nothing is locked.
class AnyRowLockTest : public RowLockTest {};

TEST_P(AnyRowLockTest, NoLockIsLeftWhateverBecameOfTheWrite) {
  as_one([&] {
    for (const bool commits : {false, true}) {
      ASSERT_TRUE(one_.begin(options()).ok());
      const uint32_t level = one_.savepoint();
      EXPECT_EQ(outcome(one_.try_lock(table_, "a", RowLockMode::kExclusive)), RowLock::kGot);
      ASSERT_TRUE(one_.put(table_, "a", "undone").ok());
      one_.rollback_to(level);
      std::set<std::string> keys;
      EXPECT_TRUE(scan(one_, ScanMode::kSerializable, keys).ok()) << "its own lock is no obstacle";
      EXPECT_EQ(keys.size(), 3u);
      if (commits) {
        ASSERT_TRUE(one_.put(table_, "b", "done").ok());
        const Status committed = one_.commit();
        EXPECT_TRUE(committed.ok()) << committed.to_string();
      } else {
        one_.abort();
      }
    }
  });
  as_other([&] {
    ASSERT_TRUE(other_.begin(options()).ok());
    EXPECT_EQ(skipping(other_).size(), 3u);
    RowView row;
    ASSERT_TRUE(other_.get(table_, "a", row).ok());
    EXPECT_EQ(row.row, "0");
    ASSERT_TRUE(other_.put(table_, "a", "1").ok());
    EXPECT_TRUE(other_.commit().ok());
  });
}

// Of a level that is rolled back, where reads are not locked, other sessions get the rows at once;
// what was read under the lock holds at the commit, or the attempt loses.
TEST_P(RowLockTest, RollingBackLetsGoOfWhatTheLevelHasLocked) {
  const bool lets_go = !locks_what_it_reads(protocol());
  for (const bool written : {false, true}) {
    as_one([&] {
      ASSERT_TRUE(one_.begin(options()).ok());
      EXPECT_EQ(outcome(one_.try_lock(table_, "a", RowLockMode::kExclusive)), RowLock::kGot);
      const uint32_t level = one_.savepoint();
      EXPECT_EQ(outcome(one_.try_lock(table_, "a", RowLockMode::kExclusive)), RowLock::kGot);
      EXPECT_EQ(outcome(one_.try_lock(table_, "b", RowLockMode::kExclusive)), RowLock::kGot);
      ASSERT_TRUE(one_.put(table_, "b", "undone").ok());
      const uint32_t inner = one_.savepoint();
      EXPECT_EQ(outcome(one_.try_lock(table_, "c", RowLockMode::kExclusive)), RowLock::kGot);
      one_.release(inner);
      one_.rollback_to(level);
      EXPECT_EQ(one_.has_to_let_go(), lets_go);
      EXPECT_TRUE(one_.let_go().ok());
      EXPECT_FALSE(one_.has_to_let_go());
    });
    as_other([&] {
      ASSERT_TRUE(other_.begin(options()).ok());
      EXPECT_EQ(outcome(other_.try_lock(table_, "a", RowLockMode::kExclusive)), RowLock::kBusy);
      const RowLock expected = lets_go ? RowLock::kGot : RowLock::kBusy;
      EXPECT_EQ(outcome(other_.try_lock(table_, "b", RowLockMode::kExclusive)), expected);
      EXPECT_EQ(outcome(other_.try_lock(table_, "c", RowLockMode::kExclusive)), expected);
      if (written && lets_go) {
        ASSERT_TRUE(other_.put(table_, "b", "other").ok());
        const Status committed = other_.commit();
        EXPECT_TRUE(committed.ok()) << committed.to_string();
      } else {
        other_.abort();
      }
    });
    as_one([&] {
      ASSERT_TRUE(one_.put(table_, "a", "one").ok());
      // "b" was read: OCC finds it changed, MVCC comes before that, and leases do if they can.
      const Status committed = one_.commit();
      const bool loses = written && (protocol() == Protocol::kOcc || protocol() == Protocol::kDrtm);
      const bool has_leases = protocol() == Protocol::kSundial || protocol() == Protocol::kTictoc ||
                              protocol() == Protocol::kMaat;
      if (!written || !has_leases) {
        EXPECT_EQ(committed.ok(), !loses) << committed.to_string();
      }
      RowView row;
      ASSERT_TRUE(one_.begin(options()).ok());
      ASSERT_TRUE(one_.get(table_, "b", row).ok());
      EXPECT_EQ(row.row, written && lets_go ? "other" : "0");
      EXPECT_TRUE(one_.commit().ok());
    });
  }
}

TEST_P(RowLockTest, AScanThatDoesNotWaitSeesAllOrFails) {
  as_one([&] {
    ASSERT_TRUE(one_.begin(options()).ok());
    EXPECT_EQ(outcome(one_.try_lock(table_, "a", RowLockMode::kExclusive)), RowLock::kGot);
  });
  as_other([&] {
    ASSERT_TRUE(other_.begin(options()).ok());
    std::set<std::string> keys;
    const Status status = scan(other_, ScanMode::kNoWait, keys);
    EXPECT_TRUE(is_held_by_another(reason_of(status))) << status.to_string();
    other_.abort();
  });
  as_one([&] { one_.abort(); });
  as_other([&] {
    ASSERT_TRUE(other_.begin(options()).ok());
    std::set<std::string> keys;
    EXPECT_TRUE(scan(other_, ScanMode::kNoWait, keys).ok());
    EXPECT_EQ(keys.size(), 3u);
    EXPECT_TRUE(other_.commit().ok());
  });
}

// A transaction that meets a lock learns whose it is, may wait for it, and goes on: it has not
// lost.
class MetLockTest : public RowLockTest {
 protected:
  void commit_one() {
    as_one([&] {
      const Status committed = one_.commit();
      EXPECT_TRUE(committed.ok()) << committed.to_string();
    });
  }
};

TEST_P(MetLockTest, ALookUpGoesOnOnceItIsFree) {
  lock_and_write();
  const std::array<std::string_view, 3> keys = {"a", "b", "c"};
  std::array<RowView, 3> rows;
  as_other([&] {
    ASSERT_TRUE(other_.begin(options()).ok());
    const Status met = other_.get_many(table_, keys, rows, kEveryCommand, /*to_write=*/true);
    EXPECT_TRUE(is_held_by_another(reason_of(met))) << met.to_string();
    EXPECT_EQ(outcome(other_.try_lock(table_, "b", RowLockMode::kShare)), RowLock::kBusy);
    EXPECT_EQ(worker_of_ctts(other_.held_by()), here_.worker().id());
    EXPECT_EQ(outcome(other_.try_lock(table_, "b", RowLockMode::kExclusive)), RowLock::kBusy);
    EXPECT_EQ(worker_of_ctts(other_.held_by()), here_.worker().id());
  });
  commit_one();
  as_other([&] {
    EXPECT_EQ(outcome(other_.try_lock(table_, "b", RowLockMode::kShare)), RowLock::kGot);
    EXPECT_EQ(other_.held_by(), 0u);
    ASSERT_TRUE(other_.get_many(table_, keys, rows).ok());
    EXPECT_EQ(rows[1].row, "one");
    EXPECT_EQ(outcome(other_.try_lock(table_, "b", RowLockMode::kExclusive)), RowLock::kGot);
    for (const std::string_view key : keys) ASSERT_TRUE(other_.put(table_, key, "other").ok());
    const Status committed = other_.commit();
    EXPECT_TRUE(committed.ok()) << committed.to_string();
  });
}

TEST_P(MetLockTest, AScanGoesOnOnceItIsFree) {
  lock_and_write();
  ScanHandle cursor;
  std::vector<RowView> batch;
  as_other([&] {
    ASSERT_TRUE(other_.begin(options()).ok());
    Result<ScanHandle> opened =
        other_.scan(table_, kEveryCommand, ScanMode::kSerializable, {.to_write = true});
    ASSERT_TRUE(opened.ok());
    cursor = std::move(opened.value());
    std::set<std::string> seen;
    Status met;
    do {
      met = other_.scan_next(*cursor, batch);
      for (const RowView& row : batch) EXPECT_TRUE(seen.insert(std::string(row.key)).second);
    } while (met.ok() && !batch.empty());
    EXPECT_TRUE(is_held_by_another(reason_of(met))) << met.to_string();
    EXPECT_TRUE(is_held_by_another(reason_of(other_.scan_next(*cursor, batch))));
    EXPECT_EQ(worker_of_ctts(other_.held_by()), here_.worker().id());
    EXPECT_FALSE(seen.contains("b"));
    keys_ = seen;
  });
  commit_one();
  as_other([&] {
    do {
      const Status went_on = other_.scan_next(*cursor, batch);
      ASSERT_TRUE(went_on.ok()) << went_on.to_string();
      for (const RowView& row : batch) {
        EXPECT_TRUE(keys_.insert(std::string(row.key)).second) << row.key;
        if (row.key == "b") {
          EXPECT_EQ(row.row, "one");
        }
      }
    } while (!batch.empty());
    EXPECT_EQ(keys_.size(), 3u);
    cursor.reset();
    for (const std::string& key : keys_) ASSERT_TRUE(other_.put(table_, key, "other").ok());
    const Status committed = other_.commit();
    EXPECT_TRUE(committed.ok()) << committed.to_string();
  });
}

// A lock that is got late proves what was read before it.
TEST_P(RowLockTest, AChangeBetweenTheReadAndTheLockIsAConflict) {
  as_one([&] {
    ASSERT_TRUE(one_.begin(options()).ok());
    std::set<std::string> keys;
    ASSERT_TRUE(scan(one_, ScanMode::kSkipLocked, keys).ok());
  });
  as_other([&] {
    ASSERT_TRUE(other_.begin(options()).ok());
    ASSERT_TRUE(other_.put(table_, "a", "newer").ok());
    ASSERT_TRUE(other_.commit().ok());
  });
  as_one([&] {
    // Seen without protection, so nothing is lost yet; but the time of what happens at its ctts has
    // passed.
    auto lock = one_.try_lock(table_, "a", RowLockMode::kExclusive);
    if (happens_at_ctts(protocol())) {
      EXPECT_EQ(reason_of(lock.status()), AbortReason::kTooLate);
      one_.abort();
      return;
    }
    EXPECT_EQ(outcome(std::move(lock)), RowLock::kGot);
    RowView row;
    ASSERT_TRUE(one_.get(table_, "a", row).ok());
    EXPECT_EQ(row.row, "newer");
    ASSERT_TRUE(one_.put(table_, "a", "newest").ok());
    const Status committed = one_.commit();
    EXPECT_TRUE(committed.ok()) << committed.to_string();
  });
}

// Pairs of rows of which at most one may be "1", and a row that counts: sessions lock one of a pair
// early, look at the other and write. Write skew would break a pair, a lost update the count.
TEST_P(AnyRowLockTest, StormsKeepPairsAndCounts) {
  constexpr int kPairs = 2, kSessions = 4, kTransactions = 40;
  const auto key_of = [](int pair, int side) {
    return "pair" + std::to_string(pair) + (side == 0 ? "left" : "right");
  };
  as_one([&] {
    ASSERT_TRUE(one_.begin(options()).ok());
    for (int pair = 0; pair < kPairs; pair++) {
      for (const int side : {0, 1}) {
        ASSERT_TRUE(one_.insert(table_, key_of(pair, side), "0").ok());
      }
    }
    ASSERT_TRUE(one_.commit().ok());
  });
  int running = kSessions, counted = 0, broken = 0, busy = 0;
  const auto transaction = [&](Session& session, Random& random) -> Status {
    const auto pair = static_cast<int>(random.below(kPairs));
    const auto side = static_cast<int>(random.below(2));
    RowView other, mine, count;
    const auto lock = session.try_lock(table_, key_of(pair, side), RowLockMode::kExclusive);
    if (!lock.ok()) return lock.status();
    if (lock.value() == RowLock::kBusy) busy++;
    if (lock.value() != RowLock::kGot) return Status();
    session.scheduler().sleep_for(random.below(20));
    RDMACC_RETURN_IF_ERROR(session.get(table_, key_of(pair, 1 - side), other));
    RDMACC_RETURN_IF_ERROR(session.get(table_, key_of(pair, side), mine));
    const bool both = other.row == "1" && mine.row == "1";
    const bool takes = other.row == "0" && mine.row == "0";
    RDMACC_RETURN_IF_ERROR(session.put(table_, key_of(pair, side), takes ? "1" : "0"));
    RDMACC_RETURN_IF_ERROR(session.get(table_, "a", count));
    const int next = std::stoi(std::string(count.row)) + 1;
    RDMACC_RETURN_IF_ERROR(session.put(table_, "a", std::to_string(next)));
    RDMACC_RETURN_IF_ERROR(session.commit());
    counted++;
    broken += both ? 1 : 0;
    return Status();
  };
  for (int i = 0; i < kSessions; i++) {
    Coordinator& coordinator = engine_.add_coordinator();
    ASSERT_TRUE(coordinator.worker().scheduler().spawn([&, i] {
      Random random(static_cast<uint64_t>(i) + 77);
      Session session(coordinator);
      for (int n = 0; n < kTransactions; n++) {
        ASSERT_TRUE(session.begin(options()).ok());
        const Status status = transaction(session, random);
        EXPECT_TRUE(status.ok() || status.code() == Code::kAborted) << status.to_string();
        session.abort();
      }
      running--;
    }));
  }
  ASSERT_TRUE(engine_.run_until([&] { return running == 0; }));
  EXPECT_EQ(broken, 0);
  EXPECT_GT(counted, 0);
  EXPECT_GT(busy + (std::get<0>(GetParam()) == Protocol::kCalvin ? 1 : 0), 0)
      << "no two transactions met";
  as_one([&] {
    ASSERT_TRUE(one_.begin(options()).ok());
    RowView row;
    ASSERT_TRUE(one_.get(table_, "a", row).ok());
    EXPECT_EQ(row.row, std::to_string(counted));
    for (int pair = 0; pair < kPairs; pair++) {
      RowView left, right;
      ASSERT_TRUE(one_.get(table_, key_of(pair, 0), left).ok());
      ASSERT_TRUE(one_.get(table_, key_of(pair, 1), right).ok());
      EXPECT_FALSE(left.row == "1" && right.row == "1");
    }
    EXPECT_TRUE(one_.commit().ok());
  });
}

INSTANTIATE_TEST_SUITE_P(Protocols, RowLockTest, every_protocol_without_order(), name_of);
INSTANTIATE_TEST_SUITE_P(Protocols, MetLockTest, every_protocol_without_order(), name_of);
INSTANTIATE_TEST_SUITE_P(Protocols, AnyRowLockTest, every_protocol(), name_of);

}  // namespace
}  // namespace rdmacc
