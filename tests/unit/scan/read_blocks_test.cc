// What becomes of blocks of slots that a scan has read: others write to them, itself, or it is a
// guest.
#include <optional>

#include "engine/txn/rule/scanned_read.h"
#include "tests/unit/scan/lent.h"
#include "tests/unit/scan/slot_scan_fixture.h"

namespace rdmacc {
namespace {

class ReadBlocks : public SlotScanTest {
 protected:
  ReadBlocks() : there_(engine_.add_coordinator()), other_(there_) {
    as_one([&] {
      table_ = make_table(1, 40);
      elsewhere_ = make_table(2, 40);
      CHECK(insert(elsewhere_, 0, 100, 20));
    });
  }
  void begin_with_a_scan() {
    Status status = one_->begin(options());
    EXPECT_GE(scan(*one_, table_, status).size(), 100u);
    ASSERT_TRUE(status.ok()) << status.to_string();
  }

  Coordinator& there_;
  Session other_;
  TableId table_ = kNoTable, elsewhere_ = kNoTable;
};

TEST_F(ReadBlocks, AreNotWhatOthersHaveChanged) {
  as_one([&] { ASSERT_TRUE(insert(table_, 0, 100, 20)); });
  const std::vector<std::function<Status()>> changes = {
      [&] { return other_.insert(table_, "new", "r"); },
      [&] { return Status(other_.remove(table_, "7")); },
      [&] { return other_.insert(table_, "7", "s"); },
      [&] { return Status(other_.put(table_, "8", "s")); }};
  for (const auto& change : changes) {
    as_one([&] { begin_with_a_scan(); });
    engine_.run(there_, [&] {
      ASSERT_TRUE(other_.begin(options()).ok());
      ASSERT_TRUE(change().ok());
      ASSERT_TRUE(other_.commit().ok());
    });
    as_one([&] {
      ASSERT_TRUE(one_->put(table_, "9", "t").ok());
      EXPECT_EQ(one_->commit().code(), Code::kAborted);
      one_->abort();
    });
  }
}

TEST_F(ReadBlocks, MayBeWrittenToByTheirReader) {
  as_one([&] {
    ASSERT_TRUE(insert(table_, 0, 100, 20));
    begin_with_a_scan();
  });
  // So that it is not alone, and validates.
  engine_.run(there_, [&] { ASSERT_TRUE(put_in_one(other_, elsewhere_, "8").ok()); });
  as_one([&] {
    EXPECT_EQ(one_->try_lock(table_, "8", RowLockMode::kExclusive).value(), RowLock::kGot);
    ASSERT_TRUE(one_->put(table_, "9", "t").ok());
    ASSERT_TRUE(one_->remove(table_, "10").ok());
    EXPECT_TRUE(one_->check_reads().ok());
    EXPECT_TRUE(one_->commit().ok());
  });
}

TEST_F(ReadBlocks, AreLentAndThenValidatedByTheHost) {
  constexpr int kRows = 3000;
  as_one([&] {
    for (int from = 0; from < kRows; from += 500) ASSERT_TRUE(insert(table_, from, 500, 20));
  });
  for (const TableId changed : {elsewhere_, table_}) {
    uint64_t walk = 0;
    HostTicket ticket;
    std::optional<Lent> lent;
    as_one([&] {
      ASSERT_TRUE(one_->begin(options()).ok());
      ticket = one_->host(table_).value();
      ASSERT_TRUE(one_->share_scan(table_, &walk).ok());
      ASSERT_NE(walk, 0u);
    });
    engine_.run(there_, [&] {
      Status status = other_.begin_as_guest(ticket);
      EXPECT_EQ(scan(other_, table_, status, &walk).size(), size_t{kRows});
      lent.emplace(other_);
      EXPECT_LT(lent->bytes(), sizeof(ScannedRead) * kRows / 10);
    });
    as_one([&] { ASSERT_TRUE(lent->to(*one_).ok()); });
    engine_.run(there_, [&] { ASSERT_TRUE(put_in_one(other_, changed, "77").ok()); });
    as_one([&] {
      ASSERT_TRUE(one_->put(table_, "9", "t").ok());
      EXPECT_EQ(one_->commit().code(), changed == table_ ? Code::kAborted : Code::kOk);
      one_->abort();
    });
  }
}

}  // namespace
}  // namespace rdmacc
