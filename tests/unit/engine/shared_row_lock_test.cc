// Rows that sessions share with each other before their commit (FOR SHARE), under protocols that
// lock no reads: others read them and share them, and none of them writes them.
#include "engine/storage/layout/control_area.h"
#include "engine/txn/stages/row_lock.h"
#include "tests/unit/engine/locking_sessions.h"

namespace rdmacc {
namespace {

class SharedRowLockTest : public LockingSessions {
 protected:
  void share(Session& session, const char* key) {
    ASSERT_TRUE(session.begin(options()).ok());
    EXPECT_EQ(outcome(session.try_lock(table_, key, RowLockMode::kShare)), RowLock::kGot);
  }
  static void end(Session& session) {
    const Status committed = session.commit();
    EXPECT_TRUE(committed.ok()) << committed.to_string();
  }
  // Another transaction locks the row to write it: no lock is left of those that have ended.
  void expect_free(Session& session, const char* key) {
    ASSERT_TRUE(session.begin(options()).ok());
    EXPECT_EQ(outcome(session.try_lock(table_, key, RowLockMode::kExclusive)), RowLock::kGot);
    session.abort();
  }
};

TEST_P(SharedRowLockTest, SeveralHaveItAndNoneTheRowAlone) {
  as_one([&] { share(one_, "a"); });
  as_other([&] {
    share(other_, "a");
    EXPECT_EQ(outcome(other_.try_lock(table_, "a", RowLockMode::kExclusive)), RowLock::kBusy);
  });
  as_one([&] {
    EXPECT_EQ(outcome(one_.try_lock(table_, "a", RowLockMode::kShare)), RowLock::kGot);
    EXPECT_EQ(outcome(one_.try_lock(table_, "a", RowLockMode::kExclusive)), RowLock::kBusy);
    ASSERT_TRUE(one_.put(table_, "c", "one").ok());
    end(one_);
  });
  as_other([&] {
    EXPECT_EQ(outcome(other_.try_lock(table_, "a", RowLockMode::kExclusive)), RowLock::kGot);
    ASSERT_TRUE(other_.put(table_, "a", "other").ok());
    end(other_);
  });
  as_one([&] {
    RowView row;
    ASSERT_TRUE(one_.begin(options()).ok());
    ASSERT_TRUE(one_.get(table_, "a", row).ok());
    EXPECT_EQ(row.row, "other");
    one_.abort();
    expect_free(one_, "a");
  });
}

TEST_P(SharedRowLockTest, KeepsWritersOutUntilItsEnd) {
  as_one([&] { share(one_, "a"); });
  const auto write = [&] {
    RowView row;
    EXPECT_TRUE(other_.begin(options()).ok());
    EXPECT_TRUE(other_.get(table_, "a", row).ok());
    EXPECT_TRUE(other_.put(table_, "a", "other").ok());
    return other_.commit();
  };
  as_other([&] { EXPECT_EQ(reason_of(write()), AbortReason::kLockHeld); });
  as_one([&] { end(one_); });
  as_other([&] {
    const Status written = write();
    EXPECT_TRUE(written.ok()) << written.to_string();
  });
}

TEST_P(SharedRowLockTest, IsNotGotOfARowThatIsHeldAlone) {
  lock_and_write();
  as_other([&] {
    ASSERT_TRUE(other_.begin(options()).ok());
    EXPECT_EQ(outcome(other_.try_lock(table_, "b", RowLockMode::kShare)), RowLock::kBusy);
    EXPECT_EQ(worker_of_ctts(other_.held_by()), here_.worker().id());
    EXPECT_EQ(outcome(other_.try_lock(table_, "b", RowLockMode::kKeyShare)), RowLock::kBusy);
    EXPECT_EQ(outcome(other_.try_lock(table_, "z", RowLockMode::kShare)), RowLock::kAbsent);
    other_.abort();
  });
  as_one([&] { end(one_); });
}

// Reads of a row and shared locks of it are in each other's way in no order.
TEST_P(SharedRowLockTest, IsPassedByReaders) {
  as_one([&] { share(one_, "a"); });
  as_other([&] {
    std::set<std::string> keys;
    RowView row;
    ASSERT_TRUE(other_.begin(options()).ok());
    ASSERT_TRUE(other_.get(table_, "a", row).ok());
    EXPECT_EQ(outcome(other_.try_lock(table_, "a", RowLockMode::kKeyShare)), RowLock::kGot);
    EXPECT_EQ(skipping(other_), (std::set<std::string>{"a", "b", "c"}));
    ASSERT_TRUE(scan(other_, ScanMode::kNoWait, keys).ok());
    EXPECT_EQ(keys.size(), 3u);
    EXPECT_TRUE(other_.check_reads().ok());
    end(other_);
    ASSERT_TRUE(other_.begin(options()).ok());
    ASSERT_TRUE(other_.put(table_, "c", "other").ok());
    end(other_);
  });
  as_one([&] {
    end(one_);
    expect_free(one_, "a");
  });
}

// A younger transaction that wants the row alone, and does not get it, leaves no trace for which an
// older sharer would be too late.
TEST_P(SharedRowLockTest, IsWrittenBesideOnesThatWantItAlone) {
  as_one([&] { share(one_, "a"); });
  as_other([&] {
    ASSERT_TRUE(other_.begin(options()).ok());
    EXPECT_EQ(outcome(other_.try_lock(table_, "a", RowLockMode::kExclusive)), RowLock::kBusy);
    EXPECT_EQ(other_.held_by(), 0u) << "a count names no holder";
    other_.abort();
  });
  as_one([&] {
    ASSERT_TRUE(one_.put(table_, "a", "one").ok());
    end(one_);
    expect_free(one_, "a");
  });
}

// A sharer that is the only one writes the row, whether or not it locks it first.
TEST_P(SharedRowLockTest, OfTheOnlyOneIsNoHindranceToItself) {
  as_one([&] {
    share(one_, "a");
    EXPECT_EQ(outcome(one_.try_lock(table_, "b", RowLockMode::kShare)), RowLock::kGot);
    ASSERT_TRUE(one_.put(table_, "a", "one").ok());
    EXPECT_EQ(outcome(one_.try_lock(table_, "b", RowLockMode::kExclusive)), RowLock::kGot);
    ASSERT_TRUE(one_.put(table_, "b", "one").ok());
    end(one_);
    expect_free(one_, "a");
    expect_free(one_, "b");
  });
}

TEST_P(SharedRowLockTest, IsGivenBackWithItsSavepoint) {
  as_one([&] {
    share(one_, "a");
    const uint32_t savepoint = one_.savepoint();
    EXPECT_EQ(outcome(one_.try_lock(table_, "b", RowLockMode::kShare)), RowLock::kGot);
    // It has been shared before: it is not less locked than it was.
    EXPECT_EQ(outcome(one_.try_lock(table_, "a", RowLockMode::kExclusive)), RowLock::kGot);
    one_.rollback_to(savepoint);
    ASSERT_TRUE(one_.let_go().ok());
  });
  as_other([&] {
    expect_free(other_, "b");
    ASSERT_TRUE(other_.begin(options()).ok());
    EXPECT_EQ(outcome(other_.try_lock(table_, "a", RowLockMode::kExclusive)), RowLock::kBusy);
    other_.abort();
  });
  as_one([&] {
    end(one_);
    expect_free(one_, "a");
  });
}

// What it has not read in time it does not share, and nothing of the attempt is left.
TEST_P(SharedRowLockTest, IsOfTheVersionThatWasRead) {
  RowView row;
  as_one([&] {
    ASSERT_TRUE(one_.begin(options()).ok());
    ASSERT_TRUE(one_.get(table_, "a", row).ok());
  });
  as_other([&] {
    ASSERT_TRUE(other_.begin(options()).ok());
    ASSERT_TRUE(other_.put(table_, "a", "other").ok());
    end(other_);
  });
  as_one([&] {
    const auto shared = one_.try_lock(table_, "a", RowLockMode::kShare);
    EXPECT_EQ(shared.status().code(), Code::kAborted) << shared.status().to_string();
    one_.abort();
    expect_free(one_, "a");
  });
}

// A worker's line at the gate says so before its first shared lock: what it leaves in lock words
// when it dies is swept.
TEST_P(SharedRowLockTest, IsToldToTheGate) {
  const auto tells = [&] {
    Worker& worker = here_.worker();
    const RegionLayout layout(one_.topology());
    VerbArena arena(worker.pool());
    auto* line = arena.allocate_array<WorkerLine>(1);
    DoorbellBatch batch(worker.scheduler(), worker.counters());
    batch.read(GlobalAddress::make(0, layout.worker_line(worker.id())), line, sizeof(*line));
    EXPECT_TRUE(batch.execute().ok());
    return line->shares != 0;
  };
  as_other([&] {
    ASSERT_TRUE(other_.begin(options()).ok());
    EXPECT_EQ(outcome(other_.try_lock(table_, "a", RowLockMode::kExclusive)), RowLock::kGot);
  });
  as_one([&] {
    RowView row;
    ASSERT_TRUE(one_.begin(options()).ok());
    ASSERT_TRUE(one_.get(table_, "a", row).ok());
    ASSERT_TRUE(one_.get(table_, "b", row).ok());
    EXPECT_EQ(outcome(one_.try_lock(table_, "c", RowLockMode::kExclusive)), RowLock::kGot);
    EXPECT_FALSE(tells());
    EXPECT_EQ(outcome(one_.try_lock(table_, "a", RowLockMode::kShare)), RowLock::kBusy);
    EXPECT_TRUE(tells()) << "before its first, which it does not get";
    end(one_);
  });
}

INSTANTIATE_TEST_SUITE_P(Protocols, SharedRowLockTest, every_protocol_with_early_locks(), name_of);

}  // namespace
}  // namespace rdmacc
