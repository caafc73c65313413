// Rows that are written while they are scanned, as by an UPDATE or DELETE of a whole table: taken
// from the scan as it is, and held against what others do like any that was looked up.
#include <algorithm>
#include <map>
#include <string>

#include "engine/workloads/workload.h"
#include "tests/unit/engine/two_sessions.h"

namespace rdmacc {
namespace {

constexpr int kRowsScanned = 300;  // some groups, so some batches

std::string key_of(int number) { return "row" + std::to_string(number); }

class ScannedRowsTest : public TwoSessions {
 protected:
  void SetUp() override {
    as_one([&] {
      ASSERT_TRUE(one_.begin(options()).ok());
      for (int i = 0; i < kRowsScanned; i++) ASSERT_TRUE(one_.insert(table_, key_of(i), "0").ok());
      ASSERT_TRUE(one_.commit().ok());
    });
  }
  // What is said beforehand to be written, and what is written all the same.
  void write_all(bool said);
  void overtake(bool said);
  template <typename Write>
  void write_one_beside(const Write& theirs);

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

void ScannedRowsTest::write_all(bool said) {
  as_one([&] {
    ASSERT_TRUE(one_.begin(options()).ok());
    int number = 0;
    const auto write = [&](const RowView& row) {
      return number++ % 2 == 0 ? one_.put(table_, row.key, std::string(row.key) + " again")
                               : one_.remove(table_, row.key);
    };
    const Status status = for_each_row(one_, table_, write, {.to_write = said});
    ASSERT_TRUE(status.ok()) << status.to_string();
    const Status committed = one_.commit();
    ASSERT_TRUE(committed.ok()) << committed.to_string();
    EXPECT_EQ(number, kRowsScanned + 3);
  });
  as_other([&] {
    ASSERT_TRUE(other_.begin(options()).ok());
    const auto rows = rows_of(other_);
    EXPECT_EQ(rows.size(), (kRowsScanned + 3u + 1) / 2);
    for (const auto& [key, row] : rows) EXPECT_EQ(row, key + " again");
    EXPECT_TRUE(other_.commit().ok());
  });
}

TEST_P(ScannedRowsTest, AreWrittenAndRemovedOnTheWay) { write_all(true); }
TEST_P(ScannedRowsTest, AreWrittenAfterAScanThatOnlyReads) { write_all(false); }

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
    EXPECT_EQ(rows_of(one_).size(), kRowsScanned + 3u) << "a second scan of the same table";
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
void ScannedRowsTest::overtake(bool said) {
  bool scanned = false;
  as_one([&] {
    ASSERT_TRUE(one_.begin(options()).ok());
    const auto write = [&](const RowView& row) { return one_.put(table_, row.key, "mine"); };
    const Status status = for_each_row(one_, table_, write, {.to_write = said});
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

TEST_P(ScannedRowsTest, AWriteOfAnotherSessionIsNotOverwritten) { overtake(true); }
TEST_P(ScannedRowsTest, NorAfterAScanThatOnlyReads) { overtake(false); }

// Where nothing comes between, a row that was just scanned is not read again.
TEST_P(ScannedRowsTest, TakeNoVerbsBeforeTheCommit) {
  if (protocol() == Protocol::kCalvin) GTEST_SKIP() << "its requests name what was looked up";
  as_one([&] {
    ASSERT_TRUE(one_.begin(options()).ok());
    const auto write = [&](const RowView& row) {
      const uint64_t before = one_.verb_counters().round_trips;
      const Status put = one_.put(table_, row.key, "1");
      EXPECT_EQ(one_.verb_counters().round_trips, before);
      return put;
    };
    const Status status = for_each_row(one_, table_, write, {.to_write = true});
    ASSERT_TRUE(status.ok()) << status.to_string();
    ASSERT_TRUE(one_.commit().ok());
  });
}

// A reader of the whole table that writes elsewhere, and a writer of one of its rows: not both
// before the other.
TEST_P(ScannedRowsTest, OfAScanThatOnlyReadsAreValidated) {
  size_t rows = 0;
  Status read;
  as_one([&] {
    ASSERT_TRUE(one_.begin(options()).ok());
    rows = rows_of(one_).size();
  });
  EXPECT_EQ(rows, kRowsScanned + 3u);
  Status written;
  as_other([&] {
    ASSERT_TRUE(other_.begin(options()).ok());
    written = other_.put(table_, key_of(11), "theirs");
    if (written.ok()) written = other_.commit();
    if (!written.ok()) other_.abort();
  });
  as_one([&] {
    read = one_.insert(table_, "of the reader", "1");
    if (read.ok()) read = one_.commit();
    if (!read.ok()) one_.abort();
  });
  // The reader comes before the writer by timestamps and leases alone.
  const bool orders_by_time = !strictly_serializable(protocol());
  EXPECT_TRUE(read.ok() || written.ok());
  EXPECT_FALSE(read.ok() && written.ok() && !orders_by_time);
}

// Of the rows that a statement looks through in order to write some, the others are read as well.
template <typename Write>
void ScannedRowsTest::write_one_beside(const Write& theirs) {
  Status mine;
  as_one([&] {
    ASSERT_TRUE(one_.begin(options()).ok());
    const auto write = [&](const RowView& row) {
      return row.key == key_of(5) ? one_.put(table_, row.key, "mine") : Status();
    };
    mine = for_each_row(one_, table_, write, {.to_write = true});
  });
  Status written;
  as_other([&] {
    ASSERT_TRUE(other_.begin(options()).ok());
    written = theirs();
    if (written.ok()) written = other_.commit();
    if (!written.ok()) other_.abort();
  });
  as_one([&] {
    if (mine.ok()) mine = one_.commit();
    if (!mine.ok()) one_.abort();
  });
  const bool orders_by_time = !strictly_serializable(protocol());
  EXPECT_TRUE(mine.ok() || written.ok());
  EXPECT_FALSE(mine.ok() && written.ok() && !orders_by_time);
  as_other([&] {
    ASSERT_TRUE(other_.begin(options()).ok());
    EXPECT_EQ(rows_of(other_).at(key_of(5)), mine.ok() ? "mine" : "0");
    EXPECT_TRUE(other_.commit().ok());
  });
}

TEST_P(ScannedRowsTest, ThatAreLookedThroughAreValidated) {
  write_one_beside([&] { return other_.put(table_, key_of(11), "theirs"); });
}
TEST_P(ScannedRowsTest, AsAreTheGapsBetweenThem) {
  write_one_beside([&] { return other_.insert(table_, "of the other", "theirs"); });
}

// Nothing is validated for what has been alone, and its locks are given back.
TEST_P(ScannedRowsTest, SomeAreWrittenAndOthersLeftTwice) {
  for (const std::string value : {"1", "2"}) {
    as_one([&] {
      ASSERT_TRUE(one_.begin(options()).ok());
      int number = 0;
      const auto write = [&](const RowView& row) {
        return number++ % 50 == 7 ? one_.put(table_, row.key, value) : Status();
      };
      const Status status = for_each_row(one_, table_, write, {.to_write = true});
      ASSERT_TRUE(status.ok()) << status.to_string();
      const Status committed = one_.commit();
      ASSERT_TRUE(committed.ok()) << committed.to_string();
    });
    as_other([&] {
      ASSERT_TRUE(other_.begin(options()).ok());
      EXPECT_TRUE(other_.put(table_, key_of(3), value).ok());
      const Status committed = other_.commit();
      ASSERT_TRUE(committed.ok()) << committed.to_string();
      ASSERT_TRUE(other_.begin(options()).ok());
      const auto rows = rows_of(other_);
      const auto has_value = [&](const auto& row) { return row.second == value; };
      EXPECT_GE(std::count_if(rows.begin(), rows.end(), has_value), kRowsScanned / 50);
      EXPECT_TRUE(other_.commit().ok());
    });
  }
}

TEST_P(ScannedRowsTest, AreCounted) {
  const auto count = [&](Session& session) {
    uint64_t all = 0, rows = 0;
    auto cursor =
        session.scan(table_, kEveryCommand, ScanMode::kSerializable, {.count_only = true});
    EXPECT_TRUE(cursor.ok());
    do {
      const Status status = session.scan_count(**cursor, rows);
      EXPECT_TRUE(status.ok()) << status.to_string();
      all += rows;
    } while (rows > 0);
    return all;
  };
  as_one([&] {
    ASSERT_TRUE(one_.begin(options()).ok());
    EXPECT_EQ(count(one_), kRowsScanned + 3u);
    ASSERT_TRUE(one_.insert(table_, "one more", "1").ok());
    ASSERT_TRUE(one_.remove(table_, key_of(1)).ok());
    ASSERT_TRUE(one_.remove(table_, key_of(2)).ok());
    EXPECT_EQ(count(one_), kRowsScanned + 2u) << "own writes count";
    const Status committed = one_.commit();
    ASSERT_TRUE(committed.ok()) << committed.to_string();
  });
  as_other([&] {
    ASSERT_TRUE(other_.begin(options()).ok());
    EXPECT_EQ(count(other_), kRowsScanned + 2u);
    EXPECT_TRUE(other_.commit().ok());
  });
}

INSTANTIATE_TEST_SUITE_P(, ScannedRowsTest, every_protocol(), name_of);

}  // namespace
}  // namespace rdmacc
