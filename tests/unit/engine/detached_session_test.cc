// A session on rows that were given beforehand: what a procedure runs on.
#include <gtest/gtest.h>

#include "engine/session.h"
#include "engine/txn/transaction/detached_transaction.h"

namespace rdmacc {
namespace {

constexpr TableId kTable = 7;

class DetachedSession : public testing::Test {
 protected:
  DetachedSession() {
    transaction_.give(kTable, "there", OrderedRow{true, 5, "old"});
    transaction_.give(kTable, "absent", OrderedRow{false, 6, ""});
  }
  std::string row(std::string_view key) {
    RowView view;
    EXPECT_TRUE(session_.get(kTable, key, view).ok());
    return view.found ? std::string(view.row) : "-";
  }

  DetachedTransaction transaction_{nullptr};
  Session session_{transaction_};
};

TEST_F(DetachedSession, SeesWhatWasGivenAndItsOwnWrites) {
  EXPECT_EQ(row("there"), "old");
  EXPECT_EQ(row("absent"), "-");
  EXPECT_EQ(session_.insert(kTable, "there", "x").code(), Code::kDuplicateKey);
  EXPECT_EQ(session_.put(kTable, "absent", "x").code(), Code::kNotFound);
  EXPECT_EQ(session_.remove(kTable, "absent").code(), Code::kNotFound);
  EXPECT_TRUE(transaction_.writes().empty());
  EXPECT_TRUE(session_.insert(kTable, "absent", "new").ok());
  EXPECT_TRUE(session_.remove(kTable, "there").ok());
  EXPECT_EQ(row("there"), "-");
  EXPECT_EQ(row("absent"), "new");
  const std::vector<OrderedWrite> writes = transaction_.writes();
  ASSERT_EQ(writes.size(), 2u);
  EXPECT_TRUE(writes[0].deleted);
  EXPECT_EQ(writes[0].key, "there");
  EXPECT_EQ(writes[1].row, "new");
}

TEST_F(DetachedSession, RefusesWhatWasNotGiven) {
  RowView view;
  EXPECT_FALSE(transaction_.asked_for_more());
  EXPECT_EQ(session_.get(kTable, "other", view).code(), Code::kInvalidArgument);
  EXPECT_EQ(session_.get(kTable + 1, "there", view).code(), Code::kInvalidArgument);
  EXPECT_EQ(session_.put(kTable, "other", "x").code(), Code::kInvalidArgument);
  EXPECT_TRUE(transaction_.asked_for_more());
  EXPECT_EQ(session_.scan(kTable).status().code(), Code::kInvalidArgument);
  // Its key follows from what was given, which its caller has seen to.
  EXPECT_TRUE(session_.insert_unchecked(kTable, "derived", "row").ok());
  EXPECT_EQ(transaction_.writes().size(), 1u);
}

TEST_F(DetachedSession, ForgetsWhatIsRolledBackToASavepoint) {
  EXPECT_TRUE(session_.put(kTable, "there", "one").ok());
  const uint32_t outer = session_.savepoint();
  EXPECT_TRUE(session_.put(kTable, "there", "two").ok());
  const uint32_t inner = session_.savepoint();
  EXPECT_TRUE(session_.insert(kTable, "absent", "three").ok());
  session_.release(inner);
  session_.rollback_to(outer);
  EXPECT_EQ(row("there"), "one");
  EXPECT_EQ(row("absent"), "-");
  ASSERT_EQ(transaction_.writes().size(), 1u);
  EXPECT_EQ(transaction_.writes()[0].row, "one");
}

TEST_F(DetachedSession, LeavesNothingOfAKeyThatCameAndWent) {
  EXPECT_TRUE(session_.insert(kTable, "absent", "x").ok());
  EXPECT_TRUE(session_.remove(kTable, "absent").ok());
  EXPECT_TRUE(transaction_.writes().empty());
}

}  // namespace
}  // namespace rdmacc
