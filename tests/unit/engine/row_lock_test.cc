// Locks that do not wait, and scans that pass over locked rows, under every protocol and with
// stages one-sided and by RPC: two sessions of a simulated cluster take turns.
#include "engine/txn/row_lock.h"

#include <gtest/gtest.h>

#include <set>

#include "engine/protocols/registry.h"
#include "tests/unit/engine/sim_engine.h"

namespace rdmacc {
namespace {

using Case = std::tuple<Protocol, uint16_t>;  // stages

class RowLockTest : public testing::TestWithParam<Case> {
 protected:
  RowLockTest()
      : engine_(std::get<1>(GetParam()) + 3u, 1),
        here_(engine_.add_coordinator()),
        there_(engine_.add_coordinator()),
        one_(here_),
        other_(there_) {
    engine_.run(here_, [&] {
      TableSpec spec;
      spec.relfilenode = 1;
      spec.record_size = 64;
      spec.history = 3;
      auto table = one_.create_table(spec);
      ASSERT_TRUE(table.ok());
      table_ = table->id;
      ASSERT_TRUE(one_.begin(options()).ok());
      for (const char* key : {"a", "b", "c"}) ASSERT_TRUE(one_.insert(table_, key, "0").ok());
      ASSERT_TRUE(one_.commit().ok());
    });
  }
  // What a failed test has left under way.
  ~RowLockTest() override {
    engine_.run(here_, [&] { one_.abort(); });
    engine_.run(there_, [&] { other_.abort(); });
  }

  TxnOptions options() const {
    TxnOptions options;
    options.protocol = std::get<0>(GetParam());
    options.plan = StagePlan(std::get<1>(GetParam()));
    return options;
  }
  void as_one(const std::function<void()>& body) { engine_.run(here_, body); }
  void as_other(const std::function<void()>& body) { engine_.run(there_, body); }
  static RowLock outcome(Result<RowLock> result) {
    EXPECT_TRUE(result.ok()) << result.status().to_string();
    return result.ok() ? result.value() : RowLock::kAbsent;
  }
  // The keys of a scan; nothing when it fails.
  Status scan(Session& session, ScanMode mode, std::set<std::string>& keys) {
    auto cursor = session.scan(table_, kEveryCommand, mode);
    if (!cursor.ok()) return cursor.status();
    std::vector<RowView> batch;
    do {
      RDMACC_RETURN_IF_ERROR(session.scan_next(**cursor, batch));
      for (const RowView& row : batch) keys.insert(std::string(row.key));
    } while (!batch.empty());
    return Status();
  }
  std::set<std::string> skipping(Session& session) {
    std::set<std::string> keys;
    EXPECT_TRUE(scan(session, ScanMode::kSkipLocked, keys).ok());
    return keys;
  }

  SimEngine engine_;
  Coordinator& here_;
  Coordinator& there_;
  Session one_, other_;
  TableId table_ = kNoTable;
};

TEST_P(RowLockTest, WhatOneHoldsTheOtherDoesNotGet) {
  as_one([&] {
    ASSERT_TRUE(one_.begin(options()).ok());
    EXPECT_EQ(outcome(one_.try_lock(table_, "a", true)), RowLock::kGot);
    EXPECT_EQ(outcome(one_.try_lock(table_, "a", true)), RowLock::kGot);
    EXPECT_EQ(outcome(one_.try_lock(table_, "z", true)), RowLock::kAbsent);
  });
  as_other([&] {
    ASSERT_TRUE(other_.begin(options()).ok());
    EXPECT_EQ(outcome(other_.try_lock(table_, "a", true)), RowLock::kBusy);
    EXPECT_EQ(outcome(other_.try_lock(table_, "a", false)), RowLock::kBusy);
    EXPECT_EQ(skipping(other_), (std::set<std::string>{"b", "c"}));
    EXPECT_EQ(outcome(other_.try_lock(table_, "b", true)), RowLock::kGot);
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

// Also where nothing is locked.
class AnyRowLockTest : public RowLockTest {};

TEST_P(AnyRowLockTest, NoLockIsLeftWhateverBecameOfTheWrite) {
  as_one([&] {
    for (const bool commits : {false, true}) {
      ASSERT_TRUE(one_.begin(options()).ok());
      const uint32_t level = one_.savepoint();
      EXPECT_EQ(outcome(one_.try_lock(table_, "a", true)), RowLock::kGot);
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

TEST_P(RowLockTest, AScanThatDoesNotWaitSeesAllOrFails) {
  as_one([&] {
    ASSERT_TRUE(one_.begin(options()).ok());
    EXPECT_EQ(outcome(one_.try_lock(table_, "a", true)), RowLock::kGot);
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
    // Seen without protection, so nothing is lost yet; but MVCC's time has passed.
    auto lock = one_.try_lock(table_, "a", true);
    if (std::get<0>(GetParam()) == Protocol::kMvcc) {
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

std::string name_of(const testing::TestParamInfo<Case>& each) {
  return std::string(protocol_name(std::get<0>(each.param))) + "_" +
         std::to_string(std::get<1>(each.param));
}

constexpr uint16_t kOneSided = 511, kRpc = 0;

INSTANTIATE_TEST_SUITE_P(Protocols, RowLockTest,
                         testing::Combine(testing::Values(Protocol::kNowait, Protocol::kWaitdie,
                                                          Protocol::kOcc, Protocol::kMvcc,
                                                          Protocol::kSundial),
                                          testing::Values(kOneSided, kRpc)),
                         name_of);
INSTANTIATE_TEST_SUITE_P(Protocols, AnyRowLockTest,
                         testing::Combine(testing::Values(Protocol::kNowait, Protocol::kWaitdie,
                                                          Protocol::kOcc, Protocol::kMvcc,
                                                          Protocol::kSundial, Protocol::kCalvin),
                                          testing::Values(kOneSided, kRpc)),
                         name_of);

}  // namespace
}  // namespace rdmacc
