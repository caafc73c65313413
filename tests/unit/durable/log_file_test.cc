#include "engine/durable/log_file.h"

#include <gtest/gtest.h>

#include "tests/unit/durable/durable_files.h"

namespace rdmacc {
namespace {

constexpr uint64_t kWaitMs = 20'000;

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

class LogFileTest : public testing::Test {
 protected:
  void SetUp() override {
    Result<std::unique_ptr<LogFile>> opened = LogFile::open(options());
    ASSERT_TRUE(opened.ok()) << opened.status().to_string();
    log_ = std::move(opened.value());
  }
  LogFile::Options options() {
    LogFile::Options options;
    options.folder = folder_.path();
    options.identity.nodes = 1;
    options.identity.generation = 1;
    options.identity.number = 1;
    options.ops = &ops_;
    return options;
  }

  TestFolder folder_;
  FailingOps ops_;
  std::unique_ptr<LogFile> log_;
};

TEST_F(LogFileTest, KeepsWhatIsDurableInOrder) {
  uint64_t end = 0;
  for (int i = 0; i < 1000; ++i) end = log_->append(1, bytes_of(std::to_string(i)));
  ASSERT_TRUE(log_->wait_durable(end, kWaitMs));
  const std::vector<std::string> records = records_in(segment_path(folder_.path(), 1));
  ASSERT_EQ(records.size(), 1000u);
  for (int i = 0; i < 1000; ++i) EXPECT_EQ(records[static_cast<size_t>(i)], std::to_string(i));
}

TEST_F(LogFileTest, SharesSyncsAmongRecordsThatComeTogether) {
  const std::string row(1000, 'r');
  uint64_t end = 0;
  for (int i = 0; i < 10'000; ++i) end = log_->append(1, bytes_of(row));
  ASSERT_TRUE(log_->wait_durable(end, kWaitMs));
  EXPECT_LT(log_->syncs(), 10'000u);
}

TEST_F(LogFileTest, GoesOnInANewSegment) {
  log_->append(1, bytes_of("old"));
  EXPECT_EQ(log_->begin_segment(), 2u);
  EXPECT_EQ(log_->segment_bytes(), 0u);
  const uint64_t end = log_->append(1, bytes_of("new"));
  ASSERT_TRUE(log_->wait_durable(end, kWaitMs));
  EXPECT_EQ(records_in(segment_path(folder_.path(), 1)), std::vector<std::string>{"old"});
  EXPECT_EQ(records_in(segment_path(folder_.path(), 2)), std::vector<std::string>{"new"});
}

TEST_F(LogFileTest, IsNeverDurableAfterASyncThatFailed) {
  const uint64_t good = log_->append(1, bytes_of("good"));
  ASSERT_TRUE(log_->wait_durable(good, kWaitMs));
  ops_.syncs_left = 1;
  const uint64_t lost = log_->append(1, bytes_of("lost"));
  EXPECT_FALSE(log_->wait_durable(lost, kWaitMs));
  EXPECT_TRUE(log_->failed());
  EXPECT_NE(log_->failure().message().find("Input/output error"), std::string::npos);
  // The disk is well again; what this file says must not change.
  const uint64_t later = log_->append(1, bytes_of("later"));
  EXPECT_FALSE(log_->wait_durable(later, kWaitMs));
  EXPECT_EQ(log_->durable(), good);
}

TEST_F(LogFileTest, FailsWhenTheDiskIsFull) {
  const uint64_t good = log_->append(1, bytes_of("good"));
  ASSERT_TRUE(log_->wait_durable(good, kWaitMs));
  ops_.writes_left = 1;
  const uint64_t lost = log_->append(1, bytes_of(std::string(1000, 'x')));
  EXPECT_FALSE(log_->wait_durable(lost, kWaitMs));
  EXPECT_EQ(log_->failure().code(), Code::kNoSpace);
  log_.reset();
  // The half that was written is a torn end.
  EXPECT_EQ(records_in(segment_path(folder_.path(), 1)), std::vector<std::string>{"good"});
}

TEST_F(LogFileTest, DoesNotStartOnAFileThatIsThere) {
  log_.reset();
  EXPECT_FALSE(LogFile::open(options()).ok());
}

}  // namespace
}  // namespace rdmacc
