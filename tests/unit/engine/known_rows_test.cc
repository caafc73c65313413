// Rows that a transaction knows are written without a verb, and so outside of a coroutine.
#include "tests/unit/engine/two_sessions.h"

namespace rdmacc {
namespace {

class KnownRowsTest : public TwoSessions {
 protected:
  std::string read(Session& session, std::string_view key) {
    RowView row;
    EXPECT_TRUE(session.get(table_, key, row).ok());
    return row.found ? std::string(row.row) : "none";
  }
  void begin_one() {
    as_one([&] { ASSERT_TRUE(one_.begin(options()).ok()); });
  }
};

TEST_P(KnownRowsTest, OthersAreNotWritten) {
  EXPECT_FALSE(one_.put_known(table_, "a", "1").has_value());  // there is no transaction
  begin_one();
  EXPECT_FALSE(one_.put_known(table_, "a", "1").has_value());  // it has not begun to read
  as_one([&] { EXPECT_EQ(read(one_, "b"), "0"); });
  EXPECT_FALSE(one_.put_known(table_, "a", "1").has_value());
  EXPECT_FALSE(one_.remove_known(table_, "a").has_value());
  const std::string long_key(kKeyBytesMax + 1, 'k');
  EXPECT_FALSE(one_.put_known(table_, long_key, "1").has_value());
  as_one([&] {
    EXPECT_EQ(read(one_, "a"), "0");
    EXPECT_TRUE(one_.commit().ok());
  });
}

TEST_P(KnownRowsTest, WritesOfWhatWasReadAreCommitted) {
  begin_one();
  as_one([&] {
    EXPECT_EQ(read(one_, "a"), "0");
    EXPECT_EQ(read(one_, "b"), "0");
    EXPECT_EQ(read(one_, "none"), "none");
  });
  EXPECT_TRUE(one_.put_known(table_, "a", "1").value().ok());
  EXPECT_TRUE(one_.remove_known(table_, "b").value().ok());
  EXPECT_EQ(one_.remove_known(table_, "b").value().code(), Code::kNotFound);
  EXPECT_EQ(one_.put_known(table_, "none", "1").value().code(), Code::kNotFound);
  as_one([&] {
    EXPECT_EQ(read(one_, "a"), "1");
    EXPECT_EQ(read(one_, "b"), "none");
    const Status committed = one_.commit();
    EXPECT_TRUE(committed.ok()) << committed.to_string();
    ASSERT_TRUE(one_.begin(options()).ok());
    EXPECT_EQ(read(one_, "a"), "1");
    EXPECT_EQ(read(one_, "b"), "none");
    EXPECT_TRUE(one_.commit().ok());
  });
}

TEST_P(KnownRowsTest, AnotherWriterMakesThemLose) {
  if (executes_procedures(protocol())) GTEST_SKIP() << "transactions have an order";
  begin_one();
  as_one([&] { EXPECT_EQ(read(one_, "a"), "0"); });
  bool other_committed = false;
  as_other([&] {
    ASSERT_TRUE(other_.begin(options()).ok());
    RowView row;
    if (other_.get(table_, "a", row).ok() && other_.put(table_, "a", "other").ok()) {
      other_committed = other_.commit().ok();
    } else {
      other_.abort();
    }
  });
  EXPECT_TRUE(one_.put_known(table_, "a", "one").value().ok());
  as_one([&] { EXPECT_NE(one_.commit().ok(), other_committed); });
}

// Of a scan's latest batch, which are in no set of keys.
TEST_P(KnownRowsTest, RowsOfAScanAreKnown) {
  if (executes_procedures(protocol())) GTEST_SKIP() << "what it scans is read once more";
  begin_one();
  as_one([&] {
    auto cursor =
        one_.scan(table_, kEveryCommand, ScanMode::kSerializable, ScanWants{.to_write = true});
    ASSERT_TRUE(cursor.ok());
    std::vector<RowView> batch;
    size_t written = 0;
    do {
      ASSERT_TRUE(one_.scan_next(**cursor, batch).ok());
      for (const RowView& row : batch) {
        const std::string key(row.key);
        const auto done = key == "b" ? one_.remove_known(table_, key)
                                     : one_.put_known(table_, key, "by the scan");
        ASSERT_TRUE(done.has_value()) << key;
        EXPECT_TRUE(done->ok());
        written++;
      }
    } while (!batch.empty());
    EXPECT_EQ(written, 3u);
    cursor->reset();
    const Status committed = one_.commit();
    EXPECT_TRUE(committed.ok()) << committed.to_string();
    ASSERT_TRUE(one_.begin(options()).ok());
    EXPECT_EQ(read(one_, "a"), "by the scan");
    EXPECT_EQ(read(one_, "b"), "none");
    EXPECT_EQ(read(one_, "c"), "by the scan");
    EXPECT_TRUE(one_.commit().ok());
  });
}

INSTANTIATE_TEST_SUITE_P(Protocols, KnownRowsTest, every_protocol(), name_of);

}  // namespace
}  // namespace rdmacc
