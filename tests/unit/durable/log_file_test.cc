#include "engine/durable/log_file.h"

#include <gtest/gtest.h>

#include "tests/unit/durable/durable_files.h"

namespace rdmacc {
namespace {

constexpr uint64_t kWaitMs = 20'000;

LogFile::Options options_in(const TestFolder& folder, FileOps& ops) {
  LogFile::Options options;
  options.folder = folder.path();
  options.identity.nodes = 1;
  options.identity.generation = 1;
  options.identity.number = 1;
  options.ops = &ops;
  return options;
}

std::vector<std::string> records_in(const std::string& path) {
  std::vector<std::string> records;
  Result<SegmentContent> content =
      read_segment(path, [&](uint8_t, std::span<const std::byte> body) {
        records.push_back(text_of(body));
        return Status();
      });
  EXPECT_TRUE(content.ok()) << content.status().to_string();
  return records;
}

TEST(LogFile, KeepsWhatIsDurableInOrder) {
  TestFolder folder;
  FailingOps ops;
  Result<std::unique_ptr<LogFile>> log = LogFile::open(options_in(folder, ops));
  ASSERT_TRUE(log.ok());
  uint64_t end = 0;
  for (int i = 0; i < 1000; ++i) end = (*log)->append(1, bytes_of(std::to_string(i)));
  ASSERT_TRUE((*log)->wait_durable(end, kWaitMs));
  const std::vector<std::string> records = records_in(segment_path(folder.path(), 1));
  ASSERT_EQ(records.size(), 1000u);
  for (int i = 0; i < 1000; ++i) EXPECT_EQ(records[static_cast<size_t>(i)], std::to_string(i));
}

TEST(LogFile, SharesSyncsAmongRecordsThatComeTogether) {
  TestFolder folder;
  FailingOps ops;
  Result<std::unique_ptr<LogFile>> log = LogFile::open(options_in(folder, ops));
  ASSERT_TRUE(log.ok());
  const std::string row(1000, 'r');
  uint64_t end = 0;
  for (int i = 0; i < 10'000; ++i) end = (*log)->append(1, bytes_of(row));
  ASSERT_TRUE((*log)->wait_durable(end, kWaitMs));
  EXPECT_LT((*log)->syncs(), 10'000u);
}

TEST(LogFile, GoesOnInANewSegment) {
  TestFolder folder;
  FailingOps ops;
  Result<std::unique_ptr<LogFile>> log = LogFile::open(options_in(folder, ops));
  ASSERT_TRUE(log.ok());
  (*log)->append(1, bytes_of("old"));
  EXPECT_EQ((*log)->begin_segment(), 2u);
  EXPECT_EQ((*log)->segment_bytes(), 0u);
  const uint64_t end = (*log)->append(1, bytes_of("new"));
  ASSERT_TRUE((*log)->wait_durable(end, kWaitMs));
  EXPECT_EQ(records_in(segment_path(folder.path(), 1)), std::vector<std::string>{"old"});
  EXPECT_EQ(records_in(segment_path(folder.path(), 2)), std::vector<std::string>{"new"});
}

TEST(LogFile, IsNeverDurableAfterASyncThatFailed) {
  TestFolder folder;
  FailingOps ops;
  Result<std::unique_ptr<LogFile>> log = LogFile::open(options_in(folder, ops));
  ASSERT_TRUE(log.ok());
  const uint64_t good = (*log)->append(1, bytes_of("good"));
  ASSERT_TRUE((*log)->wait_durable(good, kWaitMs));
  ops.syncs_left = 1;
  const uint64_t lost = (*log)->append(1, bytes_of("lost"));
  EXPECT_FALSE((*log)->wait_durable(lost, kWaitMs));
  EXPECT_TRUE((*log)->failed());
  EXPECT_NE((*log)->failure().message().find("Input/output error"), std::string::npos);
  // The disk is well again; what this file says must not change.
  const uint64_t later = (*log)->append(1, bytes_of("later"));
  EXPECT_FALSE((*log)->wait_durable(later, kWaitMs));
  EXPECT_EQ((*log)->durable(), good);
}

TEST(LogFile, FailsWhenTheDiskIsFull) {
  TestFolder folder;
  FailingOps ops;
  Result<std::unique_ptr<LogFile>> log = LogFile::open(options_in(folder, ops));
  ASSERT_TRUE(log.ok());
  const uint64_t good = (*log)->append(1, bytes_of("good"));
  ASSERT_TRUE((*log)->wait_durable(good, kWaitMs));
  ops.writes_left = 1;
  const uint64_t lost = (*log)->append(1, bytes_of(std::string(1000, 'x')));
  EXPECT_FALSE((*log)->wait_durable(lost, kWaitMs));
  EXPECT_EQ((*log)->failure().code(), Code::kNoSpace);
  log->reset();
  // The half that was written is a torn end.
  EXPECT_EQ(records_in(segment_path(folder.path(), 1)), std::vector<std::string>{"good"});
}

TEST(LogFile, DoesNotStartOnAFileThatIsThere) {
  TestFolder folder;
  FailingOps ops;
  set_file(segment_path(folder.path(), 1), "");
  EXPECT_FALSE(LogFile::open(options_in(folder, ops)).ok());
}

}  // namespace
}  // namespace rdmacc
