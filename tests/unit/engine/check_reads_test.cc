// Session::check_reads(): whether what a transaction has read is of one moment, under every
// protocol and with stages one-sided and by RPC.
#include "tests/unit/engine/two_sessions.h"

namespace rdmacc {
namespace {

class CheckReadsTest : public TwoSessions {
 protected:
  // Do others' writes come between its reads?
  bool reads_drift() const {
    return protocol() == Protocol::kOcc || protocol() == Protocol::kSundial ||
           protocol() == Protocol::kTictoc || protocol() == Protocol::kCalvin;
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

INSTANTIATE_TEST_SUITE_P(Protocols, CheckReadsTest, every_protocol(), name_of);

}  // namespace
}  // namespace rdmacc
