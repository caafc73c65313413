// Rows that one session has locked before its commit, and another reads: under protocols that lock
// no reads it passes the lock, and both are serializable.
#include "engine/check/checker.h"
#include "engine/check/history_file.h"
#include "engine/txn/stages/row_lock.h"
#include "tests/unit/engine/locking_sessions.h"

namespace rdmacc {
namespace {

// What only reads need not wait for a lock that its holder has taken before its commit; what was
// read is as good as that of any other row.
class EarlyLockTest : public LockingSessions {
 protected:
  // By a look-up, a look-up that does not wait, and a scan.
  void read_all(Session& session, const char* expected) {
    RowView row;
    std::set<std::string> keys;
    EXPECT_EQ(outcome(session.try_lock(table_, "b", RowLockMode::kNone)), RowLock::kGot);
    const Status got = session.get(table_, "b", row);
    ASSERT_TRUE(got.ok()) << got.to_string();
    EXPECT_EQ(row.row, expected);
    const Status scanned = scan(session, ScanMode::kSerializable, keys);
    EXPECT_TRUE(scanned.ok()) << scanned.to_string();
    EXPECT_EQ(keys, (std::set<std::string>{"a", "b", "c"}));
    EXPECT_TRUE(session.check_reads().ok());
  }
};

TEST_P(EarlyLockTest, IsPassedByReadersThatEndBeforeItsHolder) {
  as_other([&] {
    RowView row;  // so it is older than the holder
    ASSERT_TRUE(other_.begin(options()).ok());
    ASSERT_TRUE(other_.get(table_, "a", row).ok());
  });
  lock_and_write();
  as_other([&] {
    read_all(other_, "0");
    const Status committed = other_.commit();
    EXPECT_TRUE(committed.ok()) << committed.to_string();
  });
  as_one([&] {
    const Status committed = one_.commit();
    EXPECT_TRUE(committed.ok()) << committed.to_string();
  });
  as_other([&] {
    ASSERT_TRUE(other_.begin(options()).ok());
    read_all(other_, "one");
    EXPECT_TRUE(other_.commit().ok());
  });
}

// A younger reader is ordered behind what was there when it read: the holder is too late for that
// where transactions happen at their timestamps, and begins anew.
TEST_P(EarlyLockTest, IsPassedByYoungerReaders) {
  lock_and_write();
  as_other([&] {
    ASSERT_TRUE(other_.begin(options()).ok());
    read_all(other_, "0");
    const Status committed = other_.commit();
    EXPECT_TRUE(committed.ok()) << committed.to_string();
  });
  as_one([&] {
    const Status committed = one_.commit();
    EXPECT_EQ(committed.ok(), !happens_at_ctts(protocol())) << committed.to_string();
    if (!committed.ok()) {
      EXPECT_EQ(reason_of(committed), AbortReason::kTooLate);
    }
  });
}

// A row that is locked and not written does not hinder a transaction that has read it.
TEST_P(EarlyLockTest, OfARowThatIsNotWrittenChangesNothing) {
  as_one([&] {
    ASSERT_TRUE(one_.begin(options()).ok());
    EXPECT_EQ(outcome(one_.try_lock(table_, "b", RowLockMode::kExclusive)), RowLock::kGot);
    ASSERT_TRUE(one_.put(table_, "a", "one").ok());
  });
  as_other([&] {
    ASSERT_TRUE(other_.begin(options()).ok());
    RowView row;
    ASSERT_TRUE(other_.get(table_, "b", row).ok());
    ASSERT_TRUE(other_.put(table_, "c", "other").ok());
  });
  as_one([&] {
    const Status committed = one_.commit();
    EXPECT_TRUE(committed.ok()) << committed.to_string();
  });
  as_other([&] {
    const Status committed = other_.commit();
    EXPECT_TRUE(committed.ok()) << committed.to_string();
    ASSERT_TRUE(other_.begin(options()).ok());
    EXPECT_EQ(outcome(other_.try_lock(table_, "b", RowLockMode::kExclusive)), RowLock::kGot)
        << "no lock is left";
    other_.abort();
  });
}

// Two that lock a row each, and read the other's: not both of them may write.
TEST_P(EarlyLockTest, LeavesNoRoomForWriteSkew) {
  RowView row;
  as_one([&] {
    ASSERT_TRUE(one_.begin(options()).ok());
    EXPECT_EQ(outcome(one_.try_lock(table_, "a", RowLockMode::kExclusive)), RowLock::kGot);
  });
  as_other([&] {
    ASSERT_TRUE(other_.begin(options()).ok());
    EXPECT_EQ(outcome(other_.try_lock(table_, "b", RowLockMode::kExclusive)), RowLock::kGot);
    ASSERT_TRUE(other_.get(table_, "a", row).ok());
  });
  bool both = true;
  as_one([&] {
    ASSERT_TRUE(one_.get(table_, "b", row).ok());
    ASSERT_TRUE(one_.put(table_, "a", "one").ok());
    both = one_.commit().ok();
  });
  as_other([&] {
    ASSERT_TRUE(other_.put(table_, "b", "other").ok());
    both = other_.commit().ok() && both;
  });
  EXPECT_FALSE(both);
}

// What was locked and not written was read, at the time of the commit: what writes it comes later,
// and not at an earlier logical time at which what that one has read still held.
TEST_P(EarlyLockTest, IsARead) {
  RowView row;
  as_one([&] {
    for (int i = 0; i < 5; i++) {  // the lease of "c" grows long
      ASSERT_TRUE(one_.begin(options()).ok());
      ASSERT_TRUE(one_.get(table_, "c", row).ok());
      ASSERT_TRUE(one_.put(table_, "b", "newer").ok());
      ASSERT_TRUE(one_.commit().ok());
    }
  });
  as_other([&] {
    ASSERT_TRUE(other_.begin(options()).ok());
    ASSERT_TRUE(other_.get(table_, "c", row).ok());
  });
  as_one([&] {
    ASSERT_TRUE(one_.begin(options()).ok());
    EXPECT_EQ(outcome(one_.try_lock(table_, "a", RowLockMode::kExclusive)), RowLock::kGot);
    ASSERT_TRUE(one_.put(table_, "c", "one").ok());
    const Status committed = one_.commit();
    EXPECT_TRUE(committed.ok()) << committed.to_string();
  });
  as_other([&] {
    ASSERT_TRUE(other_.put(table_, "a", "other").ok());
    EXPECT_FALSE(other_.commit().ok());
  });
}

// A transaction that could not lock what it wanted to write waits for the lock when it begins anew:
// to read past it would only lose again.
TEST_P(EarlyLockTest, IsWaitedForByTheNextAttemptOfAWriter) {
  lock_and_write();
  const auto read_and_write = [&]() -> Status {
    RowView row;
    RDMACC_RETURN_IF_ERROR(other_.get(table_, "b", row));
    RDMACC_RETURN_IF_ERROR(other_.put(table_, "b", "other"));
    return other_.commit();
  };
  as_other([&] {
    ASSERT_TRUE(other_.begin(options()).ok());
    const Status lost = read_and_write();
    EXPECT_EQ(reason_of(lost), AbortReason::kLockHeld) << lost.to_string();
    ASSERT_TRUE(other_.begin(options()).ok());
    RowView row;
    const Status met = other_.get(table_, "b", row);
    EXPECT_TRUE(is_held_by_another(reason_of(met))) << met.to_string();
    EXPECT_EQ(outcome(other_.try_lock(table_, "b", RowLockMode::kNone)), RowLock::kBusy);
    EXPECT_EQ(worker_of_ctts(other_.held_by()), here_.worker().id());
    other_.abort();
  });
}

INSTANTIATE_TEST_SUITE_P(Protocols, EarlyLockTest, every_protocol_with_early_locks(), name_of);

// A row that was locked and whose write was rolled back stays as it is, and histories tell of no
// other version.
class RolledBackLockTest : public TwoSessions {
 protected:
  RolledBackLockTest() {
    here_.set_history(&history_);
    there_.set_history(&history_);
  }
  HistoryMemory history_;
};

TEST_P(RolledBackLockTest, LeavesTheRowAsTheHistoryKnowsIt) {
  as_one([&] {
    ASSERT_TRUE(one_.begin(options()).ok());
    ASSERT_TRUE(one_.insert(table_, "k", "1").ok());
    ASSERT_TRUE(one_.commit().ok());
    ASSERT_TRUE(one_.begin(options()).ok());
    const uint32_t savepoint = one_.savepoint();
    ASSERT_TRUE(one_.try_lock(table_, "k", RowLockMode::kExclusive).ok());
    ASSERT_TRUE(one_.put(table_, "k", "2").ok());
    one_.rollback_to(savepoint);
    ASSERT_TRUE(one_.commit().ok());
  });
  as_other([&] {
    ASSERT_TRUE(other_.begin(options()).ok());
    RowView row;
    ASSERT_TRUE(other_.get(table_, "k", row).ok());
    EXPECT_EQ(row.row, "1");
    ASSERT_TRUE(other_.commit().ok());
  });
  const CheckReport report = check_serializable(history_.transactions(), {});
  EXPECT_TRUE(report.serializable) << report.problem;
}

INSTANTIATE_TEST_SUITE_P(EveryProtocol, RolledBackLockTest, every_protocol(), name_of);

}  // namespace
}  // namespace rdmacc
