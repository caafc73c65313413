// Session::check_reads(): whether what a transaction has read is of one moment, under every
// protocol and with stages one-sided and by RPC.
#include "tests/unit/engine/two_sessions.h"

namespace rdmacc {
namespace {

class CheckReadsTest : public TwoSessions {
 protected:
  // Do others' writes come between its reads?
  bool reads_drift() const {
    return protocol() == Protocol::kOcc || protocol() == Protocol::kDrtm ||
           protocol() == Protocol::kSundial || protocol() == Protocol::kTictoc ||
           protocol() == Protocol::kMaat || protocol() == Protocol::kCalvin;
  }
  void expect_checked() {
    const Status status = one_.check_reads();
    if (reads_drift()) {
      EXPECT_EQ(status.code(), Code::kAborted) << status.to_string();
      EXPECT_NE(reason_of(status), AbortReason::kNone);
    } else {
      EXPECT_TRUE(status.ok()) << status.to_string();
    }
  }
  // Not waited for long: under two-phase locking what was read is held.
  void write_as_other(const std::function<Status()>& write) {
    as_other([&] {
      ASSERT_TRUE(other_.begin(options()).ok());
      if (write().ok()) (void)other_.commit();
      other_.abort();
    });
  }
};

TEST_P(CheckReadsTest, NothingReadIsCurrent) {
  as_one([&] {
    ASSERT_TRUE(one_.begin(options()).ok());
    EXPECT_TRUE(one_.check_reads().ok());
  });
}

TEST_P(CheckReadsTest, WhatIsUnchangedIsCurrentAndCommits) {
  as_one([&] {
    RowView row;
    ASSERT_TRUE(one_.begin(options()).ok());
    ASSERT_TRUE(one_.get(table_, "a", row).ok());
    ASSERT_TRUE(one_.get(table_, "z", row).ok());
    ASSERT_TRUE(one_.put(table_, "b", "1").ok());
    EXPECT_TRUE(one_.check_reads().ok());
    EXPECT_TRUE(one_.commit().ok());
  });
}

TEST_P(CheckReadsTest, TwoRowsOfDifferentMoments) {
  RowView a, b;
  as_one([&] {
    ASSERT_TRUE(one_.begin(options()).ok());
    ASSERT_TRUE(one_.get(table_, "a", a).ok());
    EXPECT_EQ(a.row, "0");
  });
  write_as_other([&] {
    RDMACC_RETURN_IF_ERROR(other_.put(table_, "a", "1"));
    return other_.put(table_, "b", "1");
  });
  as_one([&] {
    const Status read = one_.get(table_, "b", b);
    if (protocol() == Protocol::kTimestamp) {  // keeps no version for it
      EXPECT_EQ(reason_of(read), AbortReason::kTooLate);
      return;
    }
    ASSERT_TRUE(read.ok());
    EXPECT_EQ(b.row, reads_drift() ? "1" : "0");
    expect_checked();
  });
}

TEST_P(CheckReadsTest, ARowThatHasComeSince) {
  RowView row;
  as_one([&] {
    ASSERT_TRUE(one_.begin(options()).ok());
    ASSERT_TRUE(one_.get(table_, "z", row).ok());
    EXPECT_FALSE(row.found);
  });
  write_as_other([&] { return other_.insert(table_, "z", "1"); });
  as_one([&] { expect_checked(); });
}

// What refers to rows from outside of the engine relies on it, whenever the transaction happens.
class CurrentReadsTest : public CheckReadsTest {
 protected:
  // Two-phase locking holds what was read, so that the other has not come.
  void expect_found_out() {
    if (rules_of(protocol())->locks_what_it_reads()) {
      EXPECT_TRUE(one_.check_reads().ok());
    } else {
      EXPECT_EQ(one_.check_reads().code(), Code::kAborted);
    }
  }
  void begin_and(const std::function<Status()>& read) {
    as_one([&] {
      ASSERT_TRUE(one_.begin(options()).ok());
      one_.need_current_reads();
      const Status status = read();
      ASSERT_TRUE(status.ok()) << status.to_string();
      EXPECT_TRUE(one_.check_reads().ok());
    });
  }
  Status scan_all() {
    auto scan = one_.scan(table_);
    RDMACC_RETURN_IF_ERROR(scan.status());
    std::vector<RowView> batch;
    do {
      RDMACC_RETURN_IF_ERROR(one_.scan_next(**scan, batch));
    } while (!batch.empty());
    return Status();
  }
};

TEST_P(CurrentReadsTest, ARowThatHasChanged) {
  RowView row;
  begin_and([&] { return one_.get(table_, "a", row); });
  write_as_other([&] { return other_.put(table_, "a", "1"); });
  as_one([&] { expect_found_out(); });
}

TEST_P(CurrentReadsTest, ARowThatHasCome) {
  RowView row;
  begin_and([&] { return one_.get(table_, "z", row); });
  write_as_other([&] { return other_.insert(table_, "z", "1"); });
  as_one([&] { expect_found_out(); });
}

TEST_P(CurrentReadsTest, ARowThatAScanHasMet) {
  begin_and([&] { return scan_all(); });
  write_as_other([&] { return other_.put(table_, "b", "1"); });
  as_one([&] { expect_found_out(); });
}

TEST_P(CurrentReadsTest, ARowThatAScanHasMissed) {
  begin_and([&] { return scan_all(); });
  write_as_other([&] { return other_.insert(table_, "z", "1"); });
  as_one([&] { expect_found_out(); });
}

// Those that happen at their ctts read on, as of a time before the other's commit.
TEST_P(CurrentReadsTest, WhatHasComeBeforeItIsRead) {
  RowView row;
  begin_and([&] { return one_.get(table_, "c", row); });
  write_as_other([&] { return other_.insert(table_, "z", "1"); });
  as_one([&] {
    const Status read = one_.get(table_, "z", row);
    if (!read.ok()) {
      EXPECT_EQ(read.code(), Code::kAborted) << read.to_string();
    } else if (row.found) {
      EXPECT_TRUE(one_.check_reads().ok());
    } else {
      EXPECT_EQ(one_.check_reads().code(), Code::kAborted);
    }
  });
}

INSTANTIATE_TEST_SUITE_P(Protocols, CurrentReadsTest, every_protocol(), name_of);
INSTANTIATE_TEST_SUITE_P(Protocols, CheckReadsTest, every_protocol(), name_of);

}  // namespace
}  // namespace rdmacc
