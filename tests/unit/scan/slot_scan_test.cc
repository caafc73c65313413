// Scans by slots, as these lie in memory: each row once, wherever nodes have put it, and nothing
// else that looks like one.
#include "engine/cluster/partition_map.h"
#include "tests/unit/scan/slot_scan_fixture.h"

namespace rdmacc {
namespace {

TEST_F(SlotScanTest, GetsEachRowOnceBehindGroupsThatItHasScanned) {
  constexpr int kRows = 1500;
  uint32_t tables = 0;
  for (const uint32_t rows_min : {0u, 200u, 1400u, UINT32_MAX}) {
    begin_with({rows_min, kAnyNumber});
    as_one([&] {
      const TableId table = make_table(++tables, 40);
      ASSERT_TRUE(insert(table, 0, kRows, 20));
      Status status = one_->begin(options());
      const auto found = scan(*one_, table, status);
      ASSERT_TRUE(status.ok()) << status.to_string();
      EXPECT_EQ(found.size(), size_t{kRows}) << rows_min;
      for (const auto& [key, times] : found) EXPECT_EQ(times, 1) << key << ", " << rows_min;
      EXPECT_TRUE(one_->commit().ok());
    });
  }
}

TEST_F(SlotScanTest, GetsRowsThatAreInPagesOfLargerSlots) {
  constexpr int kLoad = 60;
  as_one([&] {
    const TableId large = make_table(1, 512), small = make_table(2, 40);
    int rows = 0;
    while (insert(large, rows, kLoad, 400)) rows += kLoad;
    ASSERT_GT(rows, 1000);
    // Each page keeps a row, so that it serves its size.
    for (int i = 0; i < rows; i++) {
      if (i % 16 == 0) continue;
      ASSERT_TRUE(one_->begin(options()).ok());
      ASSERT_TRUE(one_->remove(large, std::to_string(i)).ok());
      ASSERT_TRUE(one_->commit().ok());
    }
    here_->worker().scheduler().sleep_for(3'000'000);
    ASSERT_EQ(*word_at(offsetof(Superblock, slots_in_larger)), 0u);
    int small_rows = 0;
    while (small_rows < 20 * kLoad && insert(small, small_rows, kLoad, 20)) small_rows += kLoad;
    ASSERT_EQ(*word_at(offsetof(Superblock, slots_in_larger)), 1u) << small_rows;
    Status status = one_->begin(options());
    EXPECT_EQ(scan(*one_, small, status).size(), static_cast<size_t>(small_rows));
    EXPECT_EQ(scan(*one_, large, status).size(), static_cast<size_t>((rows + 15) / 16));
    ASSERT_TRUE(status.ok()) << status.to_string();
    EXPECT_TRUE(one_->commit().ok());
  });
}

// As by an UPDATE or DELETE with a condition: what is written is taken from the batch, also when
// the row before it in the batch was passed over, and what is not in the batch is looked up.
TEST_F(SlotScanTest, GivesRowsThatAreWrittenAsTheyAreScanned) {
  constexpr int kRows = 1500;
  uint32_t tables = 0;
  for (const int each : {1, 3, 40}) {
    as_one([&] {
      const TableId table = make_table(++tables, 40);
      ASSERT_TRUE(insert(table, 0, kRows, 20));
      ASSERT_TRUE(one_->begin(options()).ok());
      uint64_t chains = 0;
      watch_ = [&](std::span<const Verb>) { chains++; };
      auto cursor = one_->scan(table, kEveryCommand, ScanMode::kSerializable,
                               {.to_write = true, .writes_at_once = true});
      ASSERT_TRUE(cursor.ok());
      std::vector<RowView> batch;
      std::map<std::string, bool> removed;
      int number = 0;
      do {
        ASSERT_TRUE(one_->scan_next(**cursor, batch).ok());
        for (const RowView& row : batch) {
          if (number == kRows / 2) {
            ASSERT_EQ(one_->remove(table, "missing").code(), Code::kNotFound);
          }
          if (number++ % each != 0) continue;
          const std::string key(row.key);
          const bool removes = number % 2 == 0;
          const uint64_t before = chains;
          ASSERT_TRUE((removes ? one_->remove(table, key) : one_->put(table, key, "w")).ok())
              << key;
          ASSERT_EQ(chains, before) << "it was looked up";
          ASSERT_TRUE(removed.emplace(key, removes).second) << key;
        }
      } while (!batch.empty());
      EXPECT_EQ(number, kRows);
      const uint64_t before = chains;
      EXPECT_EQ(one_->remove(table, "none").code(), Code::kNotFound);
      EXPECT_GT(chains, before);
      watch_ = nullptr;
      const Status committed = one_->commit();
      ASSERT_TRUE(committed.ok()) << committed.to_string();
      for (int i = 0; i < kRows; i++) {
        const std::string key = std::to_string(i);
        ASSERT_TRUE(one_->begin(options()).ok());
        RowView view;
        ASSERT_TRUE(one_->get(table, key, view).ok());
        const auto written = removed.find(key);
        EXPECT_EQ(view.found, written == removed.end() || !written->second) << key;
        EXPECT_EQ(view.row == "w", view.found && written != removed.end()) << key;
        ASSERT_TRUE(one_->commit().ok());
      }
    });
  }
}

// Whether the scan has written a row or passed it over: one that another transaction has changed
// since makes it lose.
TEST_F(SlotScanTest, WhatOthersChangeOfRowsThatWereScannedMakesItsWriterLose) {
  constexpr int kRows = 300;
  Coordinator& there = engine_.add_coordinator();
  Session other(there);
  uint32_t tables = 0;
  for (const bool of_written : {true, false}) {
    TableId table = kNoTable;
    std::string written, passed;
    as_one([&] {
      table = make_table(++tables, 40);
      ASSERT_TRUE(insert(table, 0, kRows, 20));
      ASSERT_TRUE(one_->begin(options()).ok());
      auto cursor = one_->scan(table, kEveryCommand, ScanMode::kSerializable,
                               {.to_write = true, .writes_at_once = true});
      ASSERT_TRUE(cursor.ok());
      std::vector<RowView> batch;
      do {
        ASSERT_TRUE(one_->scan_next(**cursor, batch).ok());
        for (const RowView& row : batch) {
          if (written.empty()) {
            written = row.key;
            ASSERT_TRUE(one_->put(table, written, "w").ok());
          } else {
            passed = row.key;
          }
        }
      } while (!batch.empty());
    });
    engine_.run(there,
                [&] { ASSERT_TRUE(put_in_one(other, table, of_written ? written : passed).ok()); });
    as_one([&] { EXPECT_EQ(one_->commit().code(), Code::kAborted) << of_written; });
  }
}

// As FOR UPDATE behind a sort does: a row that has been changed since it was read is known for that
// when it is locked, while the statement can be run once more.
TEST_F(SlotScanTest, RowsThatAreLockedAfterTheScanAreThoseThatItHasRead) {
  constexpr int kRows = 300;
  Coordinator& there = engine_.add_coordinator();
  Session other(there);
  TableId table = kNoTable;
  std::string last;
  as_one([&] {
    table = make_table(1, 40);
    ASSERT_TRUE(insert(table, 0, kRows, 20));
    ASSERT_TRUE(one_->begin(options()).ok());
    auto cursor = one_->scan(table, kEveryCommand, ScanMode::kSerializable, {.to_write = true});
    ASSERT_TRUE(cursor.ok());
    std::vector<RowView> batch;
    do {
      ASSERT_TRUE(one_->scan_next(**cursor, batch).ok());
      if (!batch.empty()) last = batch.back().key;
    } while (!batch.empty());
  });
  engine_.run(there, [&] { ASSERT_TRUE(put_in_one(other, table, last).ok()); });
  as_one([&] {
    const auto lock = one_->try_lock(table, last, RowLockMode::kExclusive);
    EXPECT_EQ(lock.status().code(), Code::kAborted);
    one_->abort();
  });
}

// What is rolled back to a savepoint was read all the same, and may be written again.
TEST_F(SlotScanTest, RowsThatWereWrittenBelowASavepointStayRead) {
  constexpr int kRows = 300;
  as_one([&] {
    const TableId table = make_table(1, 40);
    ASSERT_TRUE(insert(table, 0, kRows, 20));
    ASSERT_TRUE(one_->begin(options()).ok());
    const auto write_all = [&] {
      auto cursor = one_->scan(table, kEveryCommand, ScanMode::kSerializable,
                               {.to_write = true, .writes_at_once = true});
      ASSERT_TRUE(cursor.ok());
      std::vector<RowView> batch;
      int rows = 0;
      do {
        ASSERT_TRUE(one_->scan_next(**cursor, batch).ok());
        for (const RowView& row : batch) {
          ASSERT_TRUE(one_->put(table, std::string(row.key), "w" + std::to_string(rows++)).ok());
        }
      } while (!batch.empty());
      EXPECT_EQ(rows, kRows);
    };
    const uint32_t level = one_->savepoint();
    write_all();
    one_->rollback_to(level);
    write_all();
    const Status committed = one_->commit();
    EXPECT_TRUE(committed.ok()) << committed.to_string();
  });
}

TEST(SlotScanOfNodes, GoesOnWhereTheFirstNodeHasNoRow) {
  SimEngine engine(5, 0, 3, 192ull << 20, /*one_by_one=*/true);
  engine.options().slot_scans = {0, UINT32_MAX};
  Coordinator& here = engine.add_coordinator();
  Session session(here);
  engine.run(here, [&] {
    TableSpec spec;
    spec.relfilenode = 1;
    spec.record_size = 40;
    auto table = session.create_table(spec);
    ASSERT_TRUE(table.ok());
    const TxnOptions options{.protocol = Protocol::kOcc, .plan = StagePlan(511)};
    int rows = 0;
    for (int i = 0; rows < 5; i++) {
      const std::string key = std::to_string(i);
      if (PartitionMap(3, 0).primary_of(hash_key(table->id, key)) == 0) continue;
      ASSERT_TRUE(session.begin(options).ok());
      ASSERT_TRUE(session.insert(table->id, key, "r").ok());
      ASSERT_TRUE(session.commit().ok());
      rows++;
    }
    ASSERT_TRUE(session.begin(options).ok());
    auto cursor = session.scan(table->id);
    ASSERT_TRUE(cursor.ok());
    std::vector<RowView> batch;
    size_t found = 0;
    do {
      ASSERT_TRUE(session.scan_next(**cursor, batch).ok());
      found += batch.size();
    } while (!batch.empty());
    EXPECT_EQ(found, 5u);
    ASSERT_TRUE(session.commit().ok());
  });
}

// Before a block of slots is read, or in the midst of it. So few rows are read by slots from the
// first one on.
TEST_F(SlotScanTest, TakesNothingFromAPageThatHasBecomeSomethingElse) {
  constexpr int kRows = 12;
  for (const uint64_t when : {1, 30}) {
    TableId table = kNoTable;
    as_one([&] {
      table = make_table(static_cast<uint32_t>(when), 40);
      ASSERT_TRUE(insert(table, 0, kRows, 20));
      Status status = one_->begin(options());
      EXPECT_EQ(scan(*one_, table, status).size(), size_t{kRows});
      EXPECT_TRUE(one_->commit().ok());
    });
    uint64_t looks = 0, word = 0;
    uint64_t* changed = nullptr;
    watch_ = [&](std::span<const Verb> chain) {
      for (const Verb& verb : chain) {
        uint64_t* const page = page_word_of(verb);
        if (page == nullptr || !is_of_slots(*page) || ++looks != when) continue;
        changed = page;
        word = std::exchange(*page, PageWord::make(PageKind::kOverflow, 128).bits);
      }
    };
    as_one([&] {
      Status status = one_->begin(options());
      EXPECT_TRUE(scan(*one_, table, status).empty());
      EXPECT_TRUE(status.ok()) << status.to_string();
      one_->abort();
    });
    watch_ = nullptr;
    ASSERT_NE(changed, nullptr);
    *changed = word;
  }
}

TEST_F(SlotScanTest, IsSharedPageByPage) {
  constexpr int kRows = 6000;  // of some pages
  as_one([&] {
    const TableId table = make_table(1, 40);
    for (int from = 0; from < kRows; from += 500) ASSERT_TRUE(insert(table, from, 500, 20));
    ASSERT_TRUE(one_->begin(options()).ok());
    uint64_t walk = 0;
    ASSERT_TRUE(one_->share_scan(table, &walk).ok());
    ASSERT_NE(walk, 0u);
    for (int turn = 0; turn < 2; turn++) {
      std::map<std::string, int> found;
      size_t scans_with_rows = 0;
      std::vector<ScanHandle> cursors;
      for (int i = 0; i < 3; i++) {
        auto cursor = one_->scan(table, kEveryCommand, ScanMode::kSerializable, {}, &walk);
        ASSERT_TRUE(cursor.ok());
        cursors.push_back(std::move(*cursor));
      }
      std::vector<size_t> rows(cursors.size());
      for (size_t ended = 0; ended < cursors.size();) {
        ended = 0;
        for (size_t i = 0; i < cursors.size(); i++) {
          std::vector<RowView> batch;
          const Status status = one_->scan_next(*cursors[i], batch);
          ASSERT_TRUE(status.ok()) << status.to_string();
          for (const RowView& row : batch) found[std::string(row.key)]++;
          rows[i] += batch.size();
          ended += batch.empty() ? 1 : 0;
        }
      }
      for (const size_t each : rows) scans_with_rows += each > 0 ? 1 : 0;
      EXPECT_EQ(scans_with_rows, cursors.size());
      EXPECT_EQ(found.size(), size_t{kRows});
      for (const auto& [key, times] : found) ASSERT_EQ(times, 1) << key;
      walk = Session::shared_walk_anew(walk);
    }
    EXPECT_TRUE(one_->commit().ok());
  });
}

// Guests at other coordinators, more of them than pages: some find all taken when they have looked
// where these are.
TEST_F(SlotScanTest, PagesAreTakenOnce) {
  constexpr int kRows = 6000, kGuests = 8;
  TableId table = kNoTable;
  HostTicket ticket;
  uint64_t walk = 0;
  as_one([&] {
    table = make_table(1, 40);
    for (int from = 0; from < kRows; from += 500) ASSERT_TRUE(insert(table, from, 500, 20));
    ASSERT_TRUE(one_->begin(options()).ok());
    ticket = one_->host(table).value();
    ASSERT_TRUE(one_->share_scan(table, &walk).ok());
    ASSERT_NE(walk, 0u);
  });
  std::map<std::string, int> found;
  size_t ended = 0;
  std::vector<std::unique_ptr<Session>> guests;
  for (int i = 0; i < kGuests; i++) {
    Coordinator& there = engine_.add_coordinator();
    Session& guest = *guests.emplace_back(std::make_unique<Session>(there));
    Scheduler& scheduler = there.worker().scheduler();
    ASSERT_TRUE(scheduler.spawn([&] {
      Status status = guest.begin_as_guest(ticket);
      for (const auto& [key, times] : scan(guest, table, status, &walk)) found[key] += times;
      EXPECT_TRUE(status.ok()) << status.to_string();
      guest.abort();
      ended++;
    }));
  }
  ASSERT_TRUE(engine_.run_until([&] { return ended == kGuests; }));
  EXPECT_EQ(found.size(), size_t{kRows});
  for (const auto& [key, times] : found) ASSERT_EQ(times, 1) << key;
  as_one([&] { one_->abort(); });
}

}  // namespace
}  // namespace rdmacc
