// A row that was locked and whose write was rolled back stays as it is, and histories tell of no
// other version.
#include "engine/check/checker.h"
#include "engine/check/history_file.h"
#include "tests/unit/engine/two_sessions.h"

namespace rdmacc {
namespace {

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
