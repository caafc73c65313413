// Session::read_batch(): rows that are read by their keys and not kept, under every protocol and
// with stages one-sided and by RPC. Where a protocol keeps them all the same, nothing else differs.
#include "tests/unit/engine/two_sessions.h"

namespace rdmacc {
namespace {

class ReadBatchTest : public TwoSessions {
 protected:
  using Rows = std::vector<std::string>;  // "-" of one that is not there

  Result<Rows> read(const std::vector<std::string_view>& keys,
                    uint32_t visible_before = kEveryCommand) {
    std::vector<RowView> views(keys.size());
    RDMACC_RETURN_IF_ERROR(one_.read_batch(table_, keys, batch_, views, visible_before));
    Rows rows;
    for (size_t i = 0; i < keys.size(); ++i) {
      EXPECT_EQ(views[i].key, keys[i]);
      rows.emplace_back(views[i].found ? views[i].row : "-");
    }
    return rows;
  }
  // Of what nothing is in the way of.
  Rows rows(const std::vector<std::string_view>& keys, uint32_t visible_before = kEveryCommand) {
    const Result<Rows> read = this->read(keys, visible_before);
    EXPECT_TRUE(read.ok()) << read.status().to_string();
    return read.ok() ? read.value() : Rows();
  }
  // Not waited for long: where what is read is locked, it is held. False: it is.
  bool written_by_other(const std::function<Status()>& write) {
    bool committed = false;
    as_other([&] {
      ASSERT_TRUE(other_.begin(options()).ok());
      committed = write().ok() && other_.commit().ok();
      other_.abort();
    });
    EXPECT_TRUE(committed || rules_of(protocol())->locks_what_it_reads());
    return committed;
  }
  bool put_by_other(const char* key) {
    return written_by_other([&] { return other_.put(table_, key, "other"); });
  }
  // What was read has changed since, and is to be written: that cannot be before the change. Where
  // the read was not kept, the row may even be found to have gone; it does not commit then, either.
  void expect_lost(const char* written) {
    as_one([&] {
      Status status = one_.put(table_, written, "one");
      if (status.code() == Code::kNotFound) status = one_.check_reads();
      if (status.ok()) status = one_.commit();
      EXPECT_EQ(status.code(), Code::kAborted) << status.to_string();
      one_.abort();
    });
  }

  ReadBatch batch_;
};

TEST_P(ReadBatchTest, RowsAreThere) {
  as_one([&] {
    ASSERT_TRUE(one_.begin(options()).ok());
    EXPECT_EQ(rows({"a", "b", "c"}), (Rows{"0", "0", "0"}));
    EXPECT_EQ(rows({"z", "c", "a"}), (Rows{"-", "0", "0"}));
    EXPECT_EQ(rows({"a", "a"}), (Rows{"0", "0"}));
    EXPECT_EQ(rows({}), Rows{});
    const std::string long_key(kKeyBytesMax + 1, 'k');
    EXPECT_EQ(read({"a", long_key}).status().code(), Code::kTooLarge);
    EXPECT_TRUE(one_.commit().ok());
  });
}

// Under OCC, read one-sided; others keep what they have read.
TEST_P(ReadBatchTest, OnlyWhatIsAskedForOtherwiseIsKept) {
  const bool keeps_none = std::get<1>(GetParam()) == kOneSided && protocol() == Protocol::kOcc;
  as_one([&] {
    RowView row;
    ASSERT_TRUE(one_.begin(options()).ok());
    ASSERT_TRUE(one_.get(table_, "b", row).ok());
    EXPECT_EQ(rows({"a", "b", "z"}), (Rows{"0", "0", "-"}));
    EXPECT_EQ(one_.read_own_sets(table_, "a", row, kEveryCommand), !keeps_none);
    EXPECT_TRUE(one_.read_own_sets(table_, "b", row, kEveryCommand));
    EXPECT_TRUE(one_.read_own_sets(table_, "z", row, kEveryCommand));  // which a gap is read for
    EXPECT_TRUE(one_.commit().ok());
  });
}

TEST_P(ReadBatchTest, MoreThanOneLookTakes) {
  as_one([&] {
    std::vector<std::string> keys;
    for (int i = 0; i < 100; ++i) keys.push_back("key " + std::to_string(i));
    ASSERT_TRUE(one_.begin(options()).ok());
    for (size_t i = 0; i < keys.size(); i += 2) ASSERT_TRUE(one_.insert(table_, keys[i], "n").ok());
    ASSERT_TRUE(one_.commit().ok());
    ASSERT_TRUE(one_.begin(options()).ok());
    const Rows found = rows({keys.begin(), keys.end()});
    ASSERT_EQ(found.size(), keys.size());
    for (size_t i = 0; i < keys.size(); ++i) EXPECT_EQ(found[i], i % 2 == 0 ? "n" : "-") << i;
    EXPECT_TRUE(one_.commit().ok());
  });
}

// In overflow blocks, and so in none of the batch's records.
TEST_P(ReadBatchTest, LongRowsAreWhole) {
  const std::string long_row(3000, 'l');
  as_one([&] {
    ASSERT_TRUE(one_.begin(options()).ok());
    ASSERT_TRUE(one_.put(table_, "a", long_row).ok());
    ASSERT_TRUE(one_.put(table_, "c", long_row + "c").ok());
    ASSERT_TRUE(one_.commit().ok());
    ASSERT_TRUE(one_.begin(options()).ok());
    EXPECT_EQ(rows({"a", "b", "c"}), (Rows{long_row, "0", long_row + "c"}));
    EXPECT_EQ(rows({"b"}), Rows{"0"});
    EXPECT_TRUE(one_.commit().ok());
  });
}

TEST_P(ReadBatchTest, OwnWritesAreSeenByTheirCommand) {
  as_one([&] {
    ASSERT_TRUE(one_.begin(options()).ok());
    one_.set_command(1);
    EXPECT_EQ(rows({"a", "b", "c"}), (Rows{"0", "0", "0"}));
    ASSERT_TRUE(one_.put(table_, "a", "mine").ok());
    ASSERT_TRUE(one_.remove(table_, "b").ok());
    ASSERT_TRUE(one_.insert(table_, "z", "new").ok());
    EXPECT_EQ(rows({"a", "b", "c", "z"}, 1), (Rows{"0", "0", "0", "-"}));
    EXPECT_EQ(rows({"a", "b", "c", "z"}), (Rows{"mine", "-", "0", "new"}));
    const Status committed = one_.commit();
    EXPECT_TRUE(committed.ok()) << committed.to_string();
    ASSERT_TRUE(one_.begin(options()).ok());
    EXPECT_EQ(rows({"a", "b", "c", "z"}), (Rows{"mine", "-", "0", "new"}));
    EXPECT_TRUE(one_.commit().ok());
  });
}

// Its own locks are no one else's: of a row that was passed, and is written or locked later.
TEST_P(ReadBatchTest, WhatWasReadMayBeWritten) {
  for (const bool locks : {false, true}) {
    as_one([&] {
      ASSERT_TRUE(one_.begin(options()).ok());
      rows({"a", "b", "c"});
      if (locks) {
        ASSERT_TRUE(one_.try_lock(table_, "a", RowLockMode::kExclusive).ok());
      }
      ASSERT_TRUE(one_.put(table_, "a", "1").ok());
      rows({"a", "b", "c"});
      EXPECT_TRUE(one_.check_reads().ok());
      const Status committed = one_.commit();
      EXPECT_TRUE(committed.ok()) << committed.to_string();
    });
  }
}

TEST_P(ReadBatchTest, AChangeOfWhatWasReadIsFoundByAWriterOfAnotherRow) {
  as_one([&] {
    ASSERT_TRUE(one_.begin(options()).ok());
    EXPECT_EQ(rows({"a", "b"}), (Rows{"0", "0"}));
  });
  if (put_by_other("b")) {
    // Where everything happens at the transaction's time, or a writer comes behind those that have
    // registered, this one's time is before the other's.
    as_one([&] {
      Status status = one_.put(table_, "c", "one");
      if (status.ok()) status = one_.commit();
      const ProtocolRules& rules = *rules_of(protocol());
      EXPECT_EQ(status.ok(), rules.reads_at_ctts || rules.registers_readers) << status.to_string();
      one_.abort();
    });
  }
}

TEST_P(ReadBatchTest, AChangeOfWhatIsWrittenThenIsFound) {
  as_one([&] {
    ASSERT_TRUE(one_.begin(options()).ok());
    EXPECT_EQ(rows({"a", "b"}), (Rows{"0", "0"}));
  });
  if (put_by_other("b")) expect_lost("b");
}

// Two reads of one row, and in between another one's write: at least one of them is not current.
TEST_P(ReadBatchTest, TwoVersionsOfARowAreNoMoment) {
  Rows before, after;
  bool read_again = false;
  as_one([&] {
    ASSERT_TRUE(one_.begin(options()).ok());
    before = rows({"a", "b"});
  });
  if (!put_by_other("b")) return;
  as_one([&] {
    const Result<Rows> again = read({"a", "b"});
    read_again = again.ok();
    if (again.ok()) after = again.value();
    if (read_again && before != after) {
      EXPECT_EQ(one_.check_reads().code(), Code::kAborted);
    }
    const Status status = read_again ? one_.commit() : again.status();
    EXPECT_TRUE(before == after || status.code() == Code::kAborted) << status.to_string();
    one_.abort();
  });
}

TEST_P(ReadBatchTest, ARowThatWentIsFound) {
  as_one([&] {
    ASSERT_TRUE(one_.begin(options()).ok());
    EXPECT_EQ(rows({"a", "b"}), (Rows{"0", "0"}));
  });
  const bool gone = written_by_other([&] { return other_.remove(table_, "b"); });
  if (gone) expect_lost("b");
}

// Others' commits are watched from the first scan of a whole table on: rows that were read before
// are validated all the same.
TEST_P(ReadBatchTest, AScanThatNoneDisturbsDoesNotSpeakForRowsBefore) {
  as_one([&] {
    ASSERT_TRUE(one_.begin(options()).ok());
    EXPECT_EQ(rows({"a", "b"}), (Rows{"0", "0"}));
  });
  if (!put_by_other("b")) return;
  as_one([&] {
    auto cursor = one_.scan(table_);
    ASSERT_TRUE(cursor.ok());
    std::vector<RowView> batch;
    Status status;
    do {
      status = one_.scan_next(**cursor, batch);
    } while (status.ok() && !batch.empty());
    cursor.value().reset();
    if (status.ok()) status = one_.put(table_, "c", "one");
    if (status.ok()) status = one_.commit();
    const bool before_it = rules_of(protocol())->keeps_versions();
    if (!before_it) {
      EXPECT_EQ(status.code(), Code::kAborted) << status.to_string();
    }
    one_.abort();
  });
}

// A table that something of was read is not loaded in place.
TEST_P(ReadBatchTest, ATableOfWhichRowsWereReadIsMet) {
  if (!rules_of(protocol())->may_load_beforehand()) GTEST_SKIP() << "loads nothing in place";
  as_one([&] {
    ASSERT_TRUE(one_.begin(options()).ok());
    EXPECT_FALSE(one_.has_met(table_));
    rows({"a"});
    EXPECT_TRUE(one_.has_met(table_));
    EXPECT_TRUE(one_.commit().ok());
  });
}

INSTANTIATE_TEST_SUITE_P(EveryProtocol, ReadBatchTest, every_protocol(), name_of);

}  // namespace
}  // namespace rdmacc
