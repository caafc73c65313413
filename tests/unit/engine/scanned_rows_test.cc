// Rows that are written while they are scanned, as by an UPDATE or DELETE of a whole table: taken
// from the scan as it is, and held against what others do like any that was looked up.
#include <map>
#include <string>

#include "engine/workloads/workload.h"
#include "tests/unit/engine/two_sessions.h"

namespace rdmacc {
namespace {

constexpr int kRows = 300;  // some groups, so some batches

std::string key_of(int number) { return "row" + std::to_string(number); }

class ScannedRowsTest : public TwoSessions {
 protected:
  void SetUp() override {
    as_one([&] {
      ASSERT_TRUE(one_.begin(options()).ok());
      for (int i = 0; i < kRows; i++) ASSERT_TRUE(one_.insert(table_, key_of(i), "0").ok());
      ASSERT_TRUE(one_.commit().ok());
    });
  }
  std::map<std::string, std::string> rows_of(Session& session) {
    std::map<std::string, std::string> rows;
    const Status status = for_each_row(session, table_, [&](const RowView& row) {
      EXPECT_TRUE(rows.emplace(row.key, row.row).second) << row.key << " came twice";
      return Status();
    });
    EXPECT_TRUE(status.ok()) << status.to_string();
    return rows;
  }
};

TEST_P(ScannedRowsTest, AreWrittenAndRemovedOnTheWay) {
  as_one([&] {
    ASSERT_TRUE(one_.begin(options()).ok());
    int number = 0;
    const Status status = for_each_row(one_, table_, [&](const RowView& row) {
      return number++ % 2 == 0 ? one_.put(table_, row.key, std::string(row.key) + " again")
                               : one_.remove(table_, row.key);
    });
    ASSERT_TRUE(status.ok()) << status.to_string();
    const Status committed = one_.commit();
    ASSERT_TRUE(committed.ok()) << committed.to_string();
    EXPECT_EQ(number, kRows + 3);
  });
  as_other([&] {
    ASSERT_TRUE(other_.begin(options()).ok());
    const auto rows = rows_of(other_);
    EXPECT_EQ(rows.size(), (kRows + 3u + 1) / 2);
    for (const auto& [key, row] : rows) EXPECT_EQ(row, key + " again");
    EXPECT_TRUE(other_.commit().ok());
  });
}

// The rows of batches before are found again, as is what no scan has shown.
TEST_P(ScannedRowsTest, RowsOfEarlierBatchesAreFoundAsWell) {
  as_one([&] {
    ASSERT_TRUE(one_.begin(options()).ok());
    std::string before;
    const Status status = for_each_row(one_, table_, [&](const RowView& row) {
      const std::string now(row.key);
      Status written = before.empty() ? Status() : one_.put(table_, before, "1");
      before = now;
      return written;
    });
    ASSERT_TRUE(status.ok()) << status.to_string();
    ASSERT_TRUE(one_.put(table_, before, "1").ok());
    EXPECT_EQ(one_.put(table_, "none", "1").code(), Code::kNotFound);
    EXPECT_EQ(rows_of(one_).size(), kRows + 3u) << "a second scan of the same table";
    const Status committed = one_.commit();
    ASSERT_TRUE(committed.ok()) << committed.to_string();
  });
  as_other([&] {
    ASSERT_TRUE(other_.begin(options()).ok());
    for (const auto& [key, row] : rows_of(other_)) EXPECT_EQ(row, "1") << key;
    EXPECT_TRUE(other_.commit().ok());
  });
}

// What was written after the scan had returned it is lost to no transaction.
TEST_P(ScannedRowsTest, AWriteOfAnotherSessionIsNotOverwritten) {
  bool scanned = false;
  as_one([&] {
    ASSERT_TRUE(one_.begin(options()).ok());
    const Status status = for_each_row(
        one_, table_, [&](const RowView& row) { return one_.put(table_, row.key, "mine"); });
    scanned = status.ok();
  });
  ASSERT_TRUE(scanned);
  bool overtaken = false;
  as_other([&] {
    ASSERT_TRUE(other_.begin(options()).ok());
    Status status = other_.put(table_, key_of(7), "theirs");
    if (status.ok()) status = other_.commit();
    overtaken = status.ok();
    if (!overtaken) other_.abort();
  });
  Status committed;
  as_one([&] {
    committed = one_.commit();
    if (!committed.ok()) one_.abort();
  });
  as_other([&] {
    ASSERT_TRUE(other_.begin(options()).ok());
    const auto rows = rows_of(other_);
    EXPECT_EQ(rows.at(key_of(7)), committed.ok() ? "mine" : "theirs");
    EXPECT_EQ(rows.at(key_of(8)), committed.ok() ? "mine" : "0");
    EXPECT_TRUE(other_.commit().ok());
  });
  // Under one serial order or the other, but not both having read the row as it was.
  EXPECT_TRUE(committed.ok() || overtaken);
}

// Where nothing comes between, a row that was just scanned is not read again.
TEST_P(ScannedRowsTest, TakeNoVerbsBeforeTheCommit) {
  if (protocol() == Protocol::kCalvin) GTEST_SKIP() << "its requests name what was looked up";
  as_one([&] {
    ASSERT_TRUE(one_.begin(options()).ok());
    const Status status = for_each_row(one_, table_, [&](const RowView& row) {
      const uint64_t before = one_.verb_counters().round_trips;
      const Status put = one_.put(table_, row.key, "1");
      EXPECT_EQ(one_.verb_counters().round_trips, before);
      return put;
    });
    ASSERT_TRUE(status.ok()) << status.to_string();
    ASSERT_TRUE(one_.commit().ok());
  });
}

INSTANTIATE_TEST_SUITE_P(, ScannedRowsTest, every_protocol(), name_of);

}  // namespace
}  // namespace rdmacc
