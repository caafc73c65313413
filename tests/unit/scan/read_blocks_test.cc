// What becomes of blocks of slots that a scan has read: others write to them, itself, or it is a
// guest.
#include <optional>

#include "engine/txn/rule/scanned_read.h"
#include "tests/unit/scan/lent.h"
#include "tests/unit/scan/slot_scan_fixture.h"

namespace rdmacc {
namespace {

using ReadBlocks = SlotScanTest;

TEST_F(ReadBlocks, AreNotWhatOthersHaveChanged) {
  Coordinator& there = engine_.add_coordinator();
  Session other(there);
  TableId table = kNoTable;
  as_one([&] {
    table = make_table(1, 40);
    ASSERT_TRUE(insert(table, 0, 100, 20));
  });
  const std::vector<std::function<Status()>> changes = {
      [&] { return other.insert(table, "new", "r"); },
      [&] { return Status(other.remove(table, "7")); },
      [&] { return other.insert(table, "7", "s"); },
      [&] { return Status(other.put(table, "8", "s")); }};
  for (const auto& change : changes) {
    as_one([&] {
      Status status = one_->begin(options());
      EXPECT_GE(scan(*one_, table, status).size(), 100u);
      ASSERT_TRUE(status.ok()) << status.to_string();
    });
    engine_.run(there, [&] {
      ASSERT_TRUE(other.begin(options()).ok());
      ASSERT_TRUE(change().ok());
      ASSERT_TRUE(other.commit().ok());
    });
    as_one([&] {
      ASSERT_TRUE(one_->put(table, "9", "t").ok());
      EXPECT_EQ(one_->commit().code(), Code::kAborted);
      one_->abort();
    });
  }
}

TEST_F(ReadBlocks, MayBeWrittenToByTheirReader) {
  Coordinator& there = engine_.add_coordinator();
  Session other(there);
  TableId table = kNoTable, elsewhere = kNoTable;
  as_one([&] {
    table = make_table(1, 40);
    elsewhere = make_table(2, 40);
    ASSERT_TRUE(insert(table, 0, 100, 20));
    ASSERT_TRUE(insert(elsewhere, 0, 100, 20));
    Status status = one_->begin(options());
    EXPECT_EQ(scan(*one_, table, status).size(), 100u);
    ASSERT_TRUE(status.ok()) << status.to_string();
  });
  // So that it is not alone, and validates.
  engine_.run(there, [&] { ASSERT_TRUE(put_in_one(other, elsewhere, "8").ok()); });
  as_one([&] {
    EXPECT_EQ(one_->try_lock(table, "8", RowLockMode::kExclusive).value(), RowLock::kGot);
    ASSERT_TRUE(one_->put(table, "9", "t").ok());
    ASSERT_TRUE(one_->remove(table, "10").ok());
    EXPECT_TRUE(one_->check_reads().ok());
    EXPECT_TRUE(one_->commit().ok());
  });
}

TEST_F(ReadBlocks, AreLentAndThenValidatedByTheHost) {
  constexpr int kRows = 3000;
  Coordinator& there = engine_.add_coordinator();
  Session other(there);
  TableId table = kNoTable, elsewhere = kNoTable;
  as_one([&] {
    table = make_table(1, 40);
    elsewhere = make_table(2, 40);
    for (int from = 0; from < kRows; from += 500) ASSERT_TRUE(insert(table, from, 500, 20));
    ASSERT_TRUE(insert(elsewhere, 0, 100, 20));
  });
  for (const TableId changed : {elsewhere, table}) {
    uint64_t walk = 0;
    HostTicket ticket;
    std::optional<Lent> lent;
    as_one([&] {
      ASSERT_TRUE(one_->begin(options()).ok());
      ticket = one_->host(table).value();
      ASSERT_TRUE(one_->share_scan(table, &walk).ok());
      ASSERT_NE(walk, 0u);
    });
    engine_.run(there, [&] {
      Status status = other.begin_as_guest(ticket);
      EXPECT_EQ(scan(other, table, status, &walk).size(), size_t{kRows});
      lent.emplace(other);
      EXPECT_LT(lent->bytes(), sizeof(ScannedRead) * kRows / 10);
    });
    as_one([&] { ASSERT_TRUE(lent->to(*one_).ok()); });
    engine_.run(there, [&] { ASSERT_TRUE(put_in_one(other, changed, "77").ok()); });
    as_one([&] {
      ASSERT_TRUE(one_->put(table, "9", "t").ok());
      EXPECT_EQ(one_->commit().code(), changed == table ? Code::kAborted : Code::kOk);
      one_->abort();
    });
  }
}

}  // namespace
}  // namespace rdmacc
