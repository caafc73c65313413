// Sessions of other coordinators that read for a transaction, and what is made of what they lend.
#include <map>
#include <string>

#include "engine/txn/transaction/history.h"
#include "engine/workloads/workload.h"
#include "tests/unit/engine/two_sessions.h"
#include "tests/unit/scan/lent.h"

namespace rdmacc {
namespace {

constexpr int kTheirRows = 900;  // so many groups that each scan takes more than once

std::string name_of_row(int number) { return "row" + std::to_string(number); }

class GuestsTest : public TwoSessions {
 protected:
  GuestsTest() : guest_(there_) {}
  void SetUp() override {
    as_one([&] {
      ASSERT_TRUE(one_.begin(options()).ok());
      for (int i = 0; i < kTheirRows; i++) {
        ASSERT_TRUE(one_.insert(table_, name_of_row(i), "0").ok());
      }
      ASSERT_TRUE(one_.commit().ok());
      ASSERT_TRUE(one_.begin(options()).ok());
      may_host_ = one_.may_host();
      auto ticket = one_.host(table_);
      ASSERT_EQ(ticket.ok(), may_host_) << ticket.status().to_string();
      if (may_host_) ticket_ = *ticket;
      one_.abort();
    });
    if (!may_host_) GTEST_SKIP() << "transactions of this protocol have no guests";
  }
  void TearDown() override {
    as_other([&] { guest_.abort(); });
  }

  bool at_ctts() const { return happens_at_ctts(protocol()); }
  // What is changed after a transaction has begun it can read no more, or not as it was.
  bool keeps_one_version() const { return protocol() == Protocol::kTimestamp; }
  void begin_both() {
    as_one([&] {
      ASSERT_TRUE(one_.begin(options()).ok());
      auto ticket = one_.host(table_);
      ASSERT_TRUE(ticket.ok());
      ticket_ = *ticket;
    });
    as_other([&] { ASSERT_TRUE(guest_.begin_as_guest(ticket_).ok()); });
  }
  // Whether there was one.
  bool take_batch(Session& session, ScanHandle& cursor) {
    if (cursor == nullptr) {
      auto opened = session.scan(table_, kEveryCommand, ScanMode::kSerializable, {}, &walk_);
      EXPECT_TRUE(opened.ok());
      cursor = std::move(*opened);
    }
    std::vector<RowView> batch;
    const Status status = session.scan_next(*cursor, batch);
    EXPECT_TRUE(status.ok()) << status.to_string() << " " << abort_reason_name(reason_of(status));
    for (const RowView& row : batch) {
      EXPECT_TRUE(rows_.emplace(row.key, &session == &guest_).second) << row.key;
    }
    return !batch.empty();
  }
  // In turns, to the end.
  void scan_together() {
    bool more = true;
    while (more) {
      more = false;
      as_one([&] { more = take_batch(one_, here_cursor_) || more; });
      as_other([&] { more = take_batch(guest_, there_cursor_) || more; });
    }
    EXPECT_EQ(rows_.size(), kTheirRows + 3u);
  }
  Status lend() {
    as_other([&] {
      there_cursor_.reset();
      lent_.emplace(guest_);
    });
    Status status;
    as_one([&] { status = lent_->to(one_); });
    return status;
  }
  std::string row_of(bool guest) const {
    for (const auto& [key, by_guest] : rows_) {
      if (by_guest == guest) return key;
    }
    ADD_FAILURE() << "one of the two has read nothing";
    return {};
  }
  void others_commit(const std::function<Status()>& write) {
    as_other([&] {
      ASSERT_TRUE(other_.begin(options()).ok());
      const Status written = write();
      ASSERT_TRUE(written.ok()) << written.to_string();
      const Status committed = other_.commit();
      ASSERT_TRUE(committed.ok()) << committed.to_string();
    });
  }
  Status commit() {
    Status status;
    as_one([&] {
      here_cursor_.reset();
      status = one_.commit();
    });
    return status;
  }

  Session guest_;
  bool may_host_ = false;
  HostTicket ticket_;
  uint64_t walk_ = 0;
  std::map<std::string, bool> rows_;
  ScanHandle here_cursor_, there_cursor_;
  std::optional<Lent> lent_;
};

TEST_P(GuestsTest, EachRowComesOnceAmongAllThatShareAScan) {
  begin_both();
  scan_together();
  EXPECT_FALSE(row_of(true).empty());
  EXPECT_FALSE(row_of(false).empty());
  EXPECT_TRUE(lend().ok());
  const Status committed = commit();
  EXPECT_TRUE(committed.ok()) << committed.to_string();
}

TEST_P(GuestsTest, WhatAGuestHasReadIsValidatedWithTheRest) {
  for (const bool by_guest : {true, false}) {
    walk_ = 0;
    rows_.clear();
    begin_both();
    scan_together();
    const std::string row = row_of(by_guest);
    ASSERT_TRUE(lend().ok());
    others_commit([&] { return other_.put(table_, row, "1"); });
    EXPECT_EQ(commit().code(), at_ctts() ? Code::kOk : Code::kAborted) << by_guest;
  }
}

TEST_P(GuestsTest, RowsThatAGuestHasReadByTheirKeysAreValidatedWithTheRest) {
  for (const bool changes : {false, true}) {
    begin_both();
    ReadBatch batch;
    const std::vector<std::string_view> keys = {"a", "b", "row7", "none"};
    std::vector<RowView> rows(keys.size());
    as_other([&] { ASSERT_TRUE(guest_.read_batch(table_, keys, batch, rows).ok()); });
    EXPECT_TRUE(rows[0].found && rows[1].found && rows[2].found && !rows[3].found);
    ASSERT_TRUE(lend().ok());
    if (changes) others_commit([&] { return other_.put(table_, "row7", "1"); });
    as_one([&] {
      EXPECT_TRUE(at_ctts() || one_.has_met(table_));
      RowView row;  // it is looked up as in a table that nothing was scanned of
      ASSERT_TRUE(one_.get(table_, "row9", row).ok());
      ASSERT_TRUE(one_.put(table_, "a", "1").ok());  // its own lock is not in its way
    });
    EXPECT_EQ(commit().code(), !changes || at_ctts() ? Code::kOk : Code::kAborted) << changes;
  }
}

TEST_P(GuestsTest, ARowThatComesInWhereAGuestHasReadIsAPhantom) {
  begin_both();
  while (true) {  // all of it by the guest
    bool more = false;
    as_other([&] { more = take_batch(guest_, there_cursor_); });
    if (!more) break;
  }
  EXPECT_EQ(rows_.size(), kTheirRows + 3u);
  ASSERT_TRUE(lend().ok());
  if (at_ctts()) {
    as_other([&] {
      ASSERT_TRUE(other_.begin(options()).ok());
      Status status = other_.insert(table_, "phantom", "1");
      if (status.ok()) status = other_.commit();
      if (!status.ok()) other_.abort();
    });
  } else {
    others_commit([&] { return other_.insert(table_, "phantom", "1"); });
  }
  EXPECT_EQ(commit().code(), at_ctts() ? Code::kOk : Code::kAborted);
}

TEST_P(GuestsTest, WhatIsLentIsFoundAmongWhatTheHostHasMet) {
  for (const bool changed : {false, true}) {
    if (changed && keeps_one_version()) break;
    walk_ = 0;
    rows_.clear();
    begin_both();
    as_one([&] {
      RowView row;
      ASSERT_TRUE(one_.get(table_, name_of_row(7), row).ok());
      ASSERT_TRUE(one_.get(table_, "none", row).ok());
    });
    if (changed) others_commit([&] { return other_.put(table_, name_of_row(7), "changed"); });
    as_other([&] {
      while (take_batch(guest_, there_cursor_)) {
      }
    });
    const Status borrowed = lend();
    EXPECT_EQ(borrowed.code(), changed && !at_ctts() ? Code::kAborted : Code::kOk);
    if (borrowed.ok()) {
      EXPECT_TRUE(commit().ok());
    } else {
      as_one([&] { one_.abort(); });
    }
  }
}

TEST_P(GuestsTest, RowsThatGuestsHaveReadMayBeWritten) {
  begin_both();
  scan_together();
  const std::string row = row_of(true);
  ASSERT_TRUE(lend().ok());
  as_one([&] {
    ASSERT_TRUE(one_.put(table_, row, "mine").ok());
    ASSERT_TRUE(one_.put(table_, row_of(false), "mine").ok());
    ASSERT_TRUE(one_.insert(table_, "new", "mine").ok());
  });
  const Status committed = commit();
  EXPECT_TRUE(committed.ok()) << committed.to_string();
  as_other([&] {
    ASSERT_TRUE(other_.begin(options()).ok());
    RowView found;
    ASSERT_TRUE(other_.get(table_, row, found).ok());
    EXPECT_EQ(found.row, "mine");
    EXPECT_TRUE(other_.commit().ok());
  });
}

TEST_P(GuestsTest, ATransactionThatHoldsSomethingHasNone) {
  as_one([&] {
    ASSERT_TRUE(one_.begin(options()).ok());
    ASSERT_TRUE(one_.put(table_, "a", "1").ok());
    EXPECT_FALSE(one_.may_host());
    EXPECT_EQ(one_.host(table_).status().code(), Code::kInvalidArgument);
    one_.abort();
    ASSERT_TRUE(one_.begin(options()).ok());
    const auto locked = one_.try_lock(table_, "a", RowLockMode::kExclusive);
    ASSERT_TRUE(locked.ok());
    EXPECT_FALSE(one_.may_host());
    one_.abort();
  });
}

TEST_P(GuestsTest, AHistoryHasWhatGuestsHaveReadAsTheirHosts) {
  class Recorder : public HistoryWriter {
   public:
    void add(HistoryTransaction transaction) override { all.push_back(std::move(transaction)); }
    std::vector<HistoryTransaction> all;
  } recorder;
  here_.set_history(&recorder);
  there_.set_history(&recorder);
  begin_both();
  scan_together();
  std::vector<HistoryEvent> events;
  as_other([&] { events = guest_.lend_history(); });
  ASSERT_TRUE(lend().ok());
  as_one([&] { one_.borrow_history(std::move(events)); });
  EXPECT_TRUE(commit().ok());
  here_.set_history(nullptr);
  there_.set_history(nullptr);
  ASSERT_EQ(recorder.all.size(), 1u) << "a guest ends without a word";
  size_t reads = 0;
  for (const HistoryEvent& event : recorder.all[0].events) reads += event.op == HistoryOp::kRead;
  EXPECT_EQ(reads, kTheirRows + 3u);
}

// That it was alone says nothing of what was read before it was.
TEST_P(GuestsTest, AWatchThatBeginsAfterThemDoesNotSpeakForGuests) {
  if (at_ctts()) GTEST_SKIP() << "what was read at the ctts is not validated";
  as_other([&] {
    ASSERT_TRUE(other_.begin(options()).ok());
    ASSERT_TRUE(other_.put(table_, name_of_row(3), "1").ok());  // and is inside
  });
  begin_both();
  as_other([&] {
    while (take_batch(guest_, there_cursor_)) {
    }
    there_cursor_.reset();
    lent_.emplace(guest_);
    const Status committed = other_.commit();
    ASSERT_TRUE(committed.ok()) << committed.to_string();
  });
  as_one([&] {
    TableSpec spec;
    spec.relfilenode = 2;
    spec.record_size = 64;
    auto small = one_.create_table(spec);
    ASSERT_TRUE(small.ok());
    auto cursor = one_.scan(small->id);
    std::vector<RowView> batch;
    ASSERT_TRUE(cursor.ok() && one_.scan_next(**cursor, batch).ok());
    ASSERT_TRUE(lent_->to(one_).ok());
  });
  EXPECT_EQ(commit().code(), Code::kAborted);
}

// By the host and its guests, in a table that none scans.
TEST_P(GuestsTest, KeysThatMoreThanOneHasLookedUpAreOneRead) {
  begin_both();
  const auto look_up = [&](Session& session) {
    RowView row;
    ASSERT_TRUE(session.get(table_, name_of_row(7), row).ok());
    ASSERT_TRUE(session.get(table_, name_of_row(8), row).ok());
  };
  as_one([&] { look_up(one_); });
  as_other([&] { look_up(guest_); });
  ASSERT_TRUE(lend().ok());
  as_one([&] {
    ASSERT_TRUE(one_.put(table_, name_of_row(7), "mine").ok());
    ASSERT_TRUE(one_.insert(table_, "another", "mine").ok());
    int rows = 0;
    ASSERT_TRUE(for_each_row(one_, table_, [&](const RowView&) {
                  rows++;
                  return Status();
                }).ok());
    EXPECT_EQ(rows, kTheirRows + 4);
  });
  const Status committed = commit();
  EXPECT_TRUE(committed.ok()) << committed.to_string();
}

// What is read by a table's later scans alone is as good as what the first one has read.
class SecondScanTest : public GuestsTest {
 protected:
  int read_all() {
    int rows = 0;
    const Status status = for_each_row(one_, table_, [&](const RowView&) {
      rows++;
      return Status();
    });
    EXPECT_TRUE(status.ok()) << status.to_string() << " " << abort_reason_name(reason_of(status));
    return rows;
  }
};

TEST_P(SecondScanTest, SeesTheSameRowsOrLoses) {
  for (const bool changed : {false, true}) {
    if (changed && keeps_one_version()) break;
    as_one([&] {
      ASSERT_TRUE(one_.begin(options()).ok());
      EXPECT_EQ(read_all(), kTheirRows + 3);
    });
    if (changed) others_commit([&] { return other_.put(table_, name_of_row(5), "changed"); });
    as_one([&] {
      EXPECT_EQ(read_all(), kTheirRows + 3);
      EXPECT_EQ(one_.commit().code(), changed && !at_ctts() ? Code::kAborted : Code::kOk);
    });
  }
}

TEST_P(SecondScanTest, WhatItHasReadLatelyMayBeWritten) {
  for (const bool changed : {false, true}) {
    if (changed && keeps_one_version()) break;
    as_one([&] {
      ASSERT_TRUE(one_.begin(options()).ok());
      read_all();
    });
    if (changed) others_commit([&] { return other_.put(table_, name_of_row(5), "changed"); });
    as_one([&] {
      read_all();
      Status status = one_.put(table_, name_of_row(changed ? 6 : 5), "mine");
      if (status.ok()) status = one_.insert(table_, changed ? "y" : "x", "mine");
      if (status.ok()) status = one_.commit();
      EXPECT_EQ(status.code(), changed && !at_ctts() ? Code::kAborted : Code::kOk)
          << status.to_string() << " " << abort_reason_name(reason_of(status));
      one_.abort();
    });
  }
}

const auto kEveryProtocol =
    testing::Combine(testing::ValuesIn(available_protocols()), testing::Values(kOneSided));
INSTANTIATE_TEST_SUITE_P(Protocols, GuestsTest, kEveryProtocol, name_of);
INSTANTIATE_TEST_SUITE_P(Protocols, SecondScanTest, kEveryProtocol, name_of);
INSTANTIATE_TEST_SUITE_P(ByRpc, GuestsTest,
                         testing::Values(ProtocolAndStages(Protocol::kOcc, kRpc)), name_of);

}  // namespace
}  // namespace rdmacc
