#include "engine/durable/stored_log.h"

#include <gtest/gtest.h>

#include <map>

#include "tests/unit/durable/durable_files.h"

namespace rdmacc {
namespace {

constexpr TableId kTable = 5;
constexpr uint64_t kWaitMs = 20'000;

// Node 0 of two, and its folder.
class StoredLogTest : public ::testing::Test {
 protected:
  void SetUp() override {
    Result<DataFolder> opened = DataFolder::open(scratch_.path() + "/node0");
    ASSERT_TRUE(opened.ok());
    folder_ = std::move(*opened);
  }

  static SegmentIdentity identity(uint64_t generation = 1, uint64_t number = 1) {
    SegmentIdentity identity;
    identity.nodes = 2;
    identity.cluster = 77;
    identity.generation = generation;
    identity.number = number;
    return identity;
  }

  void open_log(uint64_t generation = 1, uint64_t number = 1) {
    log_.reset();
    end_ = 0;
    LogFile::Options options;
    options.folder = folder_.path();
    options.identity = identity(generation, number);
    Result<std::unique_ptr<LogFile>> log = LogFile::open(std::move(options));
    ASSERT_TRUE(log.ok()) << log.status().to_string();
    log_ = std::move(*log);
  }

  template <typename Record>
  void append(RedoKind kind, const Record& record) {
    std::vector<std::byte> body;
    encode(record, body);
    end_ = log_->append(static_cast<uint8_t>(kind), body);
  }

  void create(TableId id) {
    ListedTable table;
    table.id = id;
    table.relfilenode = id;
    table.record_size = 64;
    append(RedoKind::kCreated, table);
  }

  void write(uint64_t stamp, const std::vector<RedoWrite>& writes, uint64_t lock_ctts = 0) {
    append(RedoKind::kWrites, RedoWrites{stamp, lock_ctts, writes});
  }

  void prepare(uint64_t stamp, const std::vector<RedoWrite>& writes, uint64_t lock_ctts) {
    append(RedoKind::kPrepared, RedoPrepared{{77, lock_ctts}, {stamp, lock_ctts, writes}});
  }
  std::string undelivered() {
    std::string found;
    EXPECT_TRUE(stored_
                    .for_each_undelivered([&](NodeId to, const RedoWrites& writes) {
                      found += std::to_string(writes.lock_ctts) + " to " + std::to_string(to) + ";";
                      return Status();
                    })
                    .ok());
    return found;
  }

  static RedoWrite put(std::string_view key, std::string_view row, NodeId node = 0) {
    return {node, kTable, false, key, row};
  }
  static RedoWrite gone(std::string_view key) { return {0, kTable, true, key, {}}; }

  void checkpoint(uint64_t generation, uint64_t number, const std::vector<RedoRow>& rows) {
    SegmentIdentity own = identity(generation, number);
    own.kind = SegmentKind::kCheckpoint;
    Result<CheckpointWriter> writer = CheckpointWriter::create(folder_, own, FileOps::posix());
    ASSERT_TRUE(writer.ok());
    ListedTable table;
    table.id = table.relfilenode = kTable;
    table.record_size = 64;
    writer->add(table);
    for (const RedoRow& row : rows) writer->add(row);
    ASSERT_TRUE(writer->finish().ok());
  }

  Status read() {
    if (log_ != nullptr) {
      EXPECT_TRUE(log_->wait_durable(end_, kWaitMs));
    }
    log_.reset();
    stored_ = StoredLog();
    told_.clear();
    return stored_.read(folder_, identity(), [this](const std::string& line) { told_ += line; });
  }

  std::map<std::string, std::string> rows() {
    std::map<std::string, std::string> found;
    EXPECT_TRUE(stored_
                    .for_each_row([&](const RedoRow& row) {
                      EXPECT_TRUE(found.emplace(row.key, row.row).second) << "twice";
                      return Status();
                    })
                    .ok());
    return found;
  }

  using Rows = std::map<std::string, std::string>;
  TestFolder scratch_;
  DataFolder folder_;
  std::unique_ptr<LogFile> log_;
  uint64_t end_ = 0;
  StoredLog stored_;
  std::string told_;
};

TEST_F(StoredLogTest, AnEmptyFolderHasNothing) {
  ASSERT_TRUE(read().ok());
  EXPECT_TRUE(stored_.empty());
  EXPECT_TRUE(rows().empty());
}

TEST_F(StoredLogTest, TheGreatestStampOfAKeyCounts) {
  open_log();
  create(kTable);
  write(20, {put("a", "new")});
  write(10, {put("a", "old"), put("b", "only")});
  write(30, {gone("c")});
  write(25, {put("c", "deleted since")});
  ASSERT_TRUE(read().ok());
  EXPECT_EQ(rows(), (Rows{{"a", "new"}, {"b", "only"}}));
}

TEST_F(StoredLogTest, RowsGoWithTheirTable) {
  open_log();
  create(kTable);
  write(10, {put("a", "1")});
  std::vector<std::byte> body;
  encode_dropped(kTable, body);
  end_ = log_->append(static_cast<uint8_t>(RedoKind::kDropped), body);
  write(11, {put("b", "after the drop")});
  ASSERT_TRUE(read().ok());
  EXPECT_TRUE(stored_.tables().empty());
  EXPECT_TRUE(rows().empty());
}

TEST_F(StoredLogTest, TheLogIsNewerThanTheCheckpointUnlessItsStampIsOlder) {
  open_log(1, 2);
  write(30, {put("a", "log"), gone("b")});
  write(5, {put("c", "carried over, and written again before the checkpoint")});
  checkpoint(1, 2,
             {{kTable, 20, "a", "checkpoint"},
              {kTable, 20, "b", "deleted"},
              {kTable, 20, "c", "checkpoint"},
              {kTable, 20, "d", "checkpoint"}});
  ASSERT_TRUE(read().ok());
  EXPECT_EQ(rows(), (Rows{{"a", "log"}, {"c", "checkpoint"}, {"d", "checkpoint"}}));
}

// A row that was being installed while the checkpoint read it may be half of each.
TEST_F(StoredLogTest, TheLogCountsWhenTheStampsAreEqual) {
  open_log(1, 2);
  write(20, {put("a", "whole")});
  checkpoint(1, 2, {{kTable, 20, "a", "torn"}});
  ASSERT_TRUE(read().ok());
  EXPECT_EQ(rows(), (Rows{{"a", "whole"}}));
}

TEST_F(StoredLogTest, GivesOthersTheirPartsUnlessTheyHaveThem) {
  open_log();
  create(kTable);
  write(10, {put("a", "mine"), put("b", "theirs", 1)}, 100);
  write(11, {put("c", "mine"), put("d", "covered", 1)}, 101);
  append(RedoKind::kCovered, RedoCovered{1, {101, 102}});
  write(12, {put("e", "covered before it came", 1), put("f", "mine")}, 102);
  write(13, {put("g", "mine alone")}, 103);
  ASSERT_TRUE(read().ok());
  EXPECT_EQ(rows().size(), 4u);
  std::vector<std::string> parts;
  ASSERT_TRUE(stored_
                  .for_each_undelivered([&](NodeId to, const RedoWrites& whole) {
                    EXPECT_EQ(to, 1);
                    for (const RedoWrite& each : whole.writes) {
                      if (each.node == to) parts.emplace_back(each.key);
                    }
                    return Status();
                  })
                  .ok());
  EXPECT_EQ(parts, std::vector<std::string>{"b"});
  EXPECT_EQ(stored_.shared_transactions().size(), 3u);
  EXPECT_TRUE(stored_.has(103));
}

TEST_F(StoredLogTest, NothingOfWhatIsPreparedCountsBeforeItIsDecided) {
  open_log();
  create(kTable);
  write(10, {put("a", "before"), put("b", "before")});
  prepare(11, {put("a", "committed"), put("x", "theirs", 1)}, 100);
  prepare(12, {put("b", "aborted"), put("y", "theirs", 1)}, 101);
  ASSERT_TRUE(read().ok());
  EXPECT_EQ(rows(), (Rows{{"a", "before"}, {"b", "before"}}));
  EXPECT_EQ(undelivered(), "");
  const std::vector<InDoubt> open = stored_.prepared(0, 10);
  ASSERT_EQ(open.size(), 2u);
  EXPECT_EQ(open[0].gtid, (Gtid{77, 100}));
  EXPECT_EQ(open[1].lock_ctts, 101u);
  EXPECT_EQ(stored_.prepared(100, 10).size(), 1u);
  EXPECT_EQ(stored_.prepared(0, 1).size(), 1u);
  EXPECT_TRUE(stored_.has(100) && stored_.has(101));  // whose locks may be in memory
  EXPECT_EQ(stored_.shared_transactions().size(), 2u);
  EXPECT_FALSE(stored_.committed(100));

  stored_.decide(100, true);
  stored_.decide(101, false);
  stored_.decide(102, true);  // of another node alone
  EXPECT_TRUE(stored_.prepared(0, 10).empty());
  EXPECT_EQ(rows(), (Rows{{"a", "committed"}, {"b", "before"}}));
  EXPECT_EQ(undelivered(), "100 to 1;");
}

TEST_F(StoredLogTest, KnowsHowWhatWasPreparedHasEnded) {
  open_log();
  create(kTable);
  prepare(11, {put("a", "1"), put("d", "4")}, 100);
  prepare(12, {put("b", "2")}, 101);
  prepare(13, {put("c", "3")}, 102);
  write(11, {put("a", "1")}, 100);  // the first part of what another node gives it
  append(RedoKind::kDecided, RedoDecided{101, false});
  append(RedoKind::kDecided, RedoDecided{103, true});
  append(RedoKind::kDecided, RedoDecided{104, true});
  prepare(14, {put("e", "5"), put("x", "theirs", 1)}, 104);  // carried over
  ASSERT_TRUE(read().ok());
  EXPECT_EQ(rows(), (Rows{{"a", "1"}, {"d", "4"}, {"e", "5"}}));
  EXPECT_EQ(undelivered(), "104 to 1;");
  ASSERT_EQ(stored_.prepared(0, 10).size(), 1u);
  EXPECT_EQ(stored_.prepared(0, 10)[0].lock_ctts, 102u);
  EXPECT_EQ(stored_.committed(100), true);
  EXPECT_EQ(stored_.committed(101), false);
  EXPECT_EQ(stored_.committed(102), std::nullopt);
  EXPECT_EQ(stored_.committed(103), true);
}

// What it lacks others have on their own disks.
TEST_F(StoredLogTest, WhatACheckpointCarriesOverOfThePreparedReplacesIt) {
  open_log();
  create(kTable);
  prepare(11, {put("a", "1"), put("x", "theirs", 1)}, 100);
  prepare(11, {put("a", "1")}, 100);
  ASSERT_TRUE(read().ok());
  stored_.decide(100, true);
  EXPECT_EQ(rows(), (Rows{{"a", "1"}}));
  EXPECT_EQ(undelivered(), "");
}

TEST_F(StoredLogTest, CutsATornEndAndSaysSo) {
  open_log();
  create(kTable);
  write(10, {put("a", "1")});
  ASSERT_TRUE(read().ok());
  const std::string path = segment_path(folder_.path(), 1);
  const std::string whole = file_bytes(path);
  set_file(path, whole + std::string(100, 'x'));
  ASSERT_TRUE(read().ok());
  EXPECT_EQ(rows(), (Rows{{"a", "1"}}));
  EXPECT_NE(told_.find("100 bytes"), std::string::npos) << told_;
  EXPECT_EQ(file_bytes(path), whole);
}

// The last segment alone may end torn.
TEST_F(StoredLogTest, RefusesATornSegmentThatOthersFollow) {
  open_log();
  create(kTable);
  ASSERT_TRUE(read().ok());
  set_file(segment_path(folder_.path(), 1), file_bytes(segment_path(folder_.path(), 1)) + "x");
  open_log(1, 2);
  write(10, {put("a", "1")});
  EXPECT_EQ(read().code(), Code::kCorrupt);
}

TEST_F(StoredLogTest, RefusesAMissingSegment) {
  open_log();
  create(kTable);
  log_->begin_segment();
  write(10, {put("a", "1")});
  log_->begin_segment();
  write(11, {put("b", "1")});
  ASSERT_TRUE(read().ok());
  std::filesystem::remove(segment_path(folder_.path(), 2));
  const Status status = read();
  EXPECT_EQ(status.code(), Code::kCorrupt);
  EXPECT_NE(status.message().find("missing"), std::string::npos);
}

TEST_F(StoredLogTest, RefusesADamagedCheckpoint) {
  open_log(1, 2);
  write(30, {put("a", "log")});
  checkpoint(1, 2, {{kTable, 20, "b", std::string(1000, 'b')}});
  ASSERT_TRUE(read().ok());
  std::string bytes = file_bytes(folder_.checkpoint_path(2));
  bytes[bytes.size() / 2] ^= 1;
  set_file(folder_.checkpoint_path(2), bytes);
  EXPECT_EQ(read().code(), Code::kCorrupt);
}

TEST_F(StoredLogTest, RefusesAnotherNodesFiles) {
  LogFile::Options options;
  options.folder = folder_.path();
  options.identity = identity();
  options.identity.node = 1;
  { ASSERT_TRUE(LogFile::open(std::move(options)).ok()); }
  EXPECT_EQ(read().code(), Code::kInvalidArgument);
}

// A recovery begins a log, and then makes its checkpoint: without that the older ones count.
TEST_F(StoredLogTest, ForgetsTheEmptyLogOfARecoveryThatDidNotEnd) {
  open_log(1, 1);
  create(kTable);
  write(10, {put("a", "1")});
  ASSERT_TRUE(read().ok());
  open_log(2, 2);
  ASSERT_TRUE(read().ok());
  EXPECT_EQ(stored_.generation(), 1u);
  EXPECT_EQ(stored_.last_segment(), 1u);
  EXPECT_EQ(rows(), (Rows{{"a", "1"}}));
}

TEST_F(StoredLogTest, TakesOneProcessAtATime) {
  EXPECT_EQ(DataFolder::open(scratch_.path() + "/node0").status().code(), Code::kInvalidArgument);
}

}  // namespace
}  // namespace rdmacc
