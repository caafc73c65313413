#include "engine/durable/segment.h"

#include <gtest/gtest.h>

#include "tests/unit/durable/durable_files.h"

namespace rdmacc {
namespace {

SegmentIdentity log_identity() {
  SegmentIdentity identity;
  identity.node = 1;
  identity.nodes = 2;
  identity.cluster = 7;
  identity.generation = 3;
  identity.number = 9;
  return identity;
}

// A file of `blocks` blocks with two records each.
std::string write_segment(const TestFolder& folder, int blocks) {
  const std::string path = folder.path() + "/segment";
  Result<SegmentWriter> writer = SegmentWriter::create(path, log_identity(), FileOps::posix());
  CHECK(writer.ok());
  for (int i = 0; i < blocks; ++i) {
    std::vector<std::byte> block;
    add_record(1, bytes_of("first " + std::to_string(i)), block);
    add_record(2, bytes_of(std::string(100 + i, 'x')), block);
    CHECK(writer->write_block(block).ok() && writer->sync().ok());
  }
  return path;
}

Result<SegmentContent> read_counting(const std::string& path, int& records) {
  records = 0;
  return read_segment(path, [&](uint8_t, std::span<const std::byte>) {
    ++records;
    return Status();
  });
}

TEST(Segment, GivesBackWhatWasWritten) {
  TestFolder folder;
  const std::string path = write_segment(folder, 5);
  std::vector<std::pair<uint8_t, std::string>> records;
  Result<SegmentContent> content =
      read_segment(path, [&](uint8_t kind, std::span<const std::byte> body) {
        records.emplace_back(kind, text_of(body));
        return Status();
      });
  ASSERT_TRUE(content.ok()) << content.status().to_string();
  ASSERT_EQ(records.size(), 10u);
  EXPECT_EQ(records[6], std::make_pair(uint8_t{1}, std::string("first 3")));
  EXPECT_EQ(records[7].second, std::string(103, 'x'));
  EXPECT_EQ(content->torn_bytes, 0u);
  EXPECT_EQ(content->bytes, file_bytes(path).size());
  EXPECT_EQ(content->identity.node, 1);
  EXPECT_EQ(content->identity.generation, 3u);
  EXPECT_EQ(content->identity.number, 9u);
}

// Wherever the file ends: what is whole counts, and nothing else.
TEST(Segment, EndsWhereTheLastBlockIsNotWhole) {
  TestFolder folder;
  const std::string path = write_segment(folder, 3);
  const std::string whole = file_bytes(path);
  int blocks_before = -1;
  for (size_t bytes = 0; bytes <= whole.size(); ++bytes) {
    set_file(path, whole.substr(0, bytes));
    int records = 0;
    Result<SegmentContent> content = read_counting(path, records);
    ASSERT_TRUE(content.ok()) << bytes << ": " << content.status().to_string();
    EXPECT_EQ(content->bytes + content->torn_bytes, bytes);
    EXPECT_EQ(records % 2, 0);
    EXPECT_GE(records / 2, blocks_before);
    blocks_before = records / 2;
  }
  EXPECT_EQ(blocks_before, 3);
}

// Pages of a write that was under way at a power cut may be there or not.
TEST(Segment, EndsBeforeABlockOfWhichSomePagesAreMissing) {
  TestFolder folder;
  const std::string path = write_segment(folder, 3);
  const std::string whole = file_bytes(path);
  int records = 0;
  set_file(path, whole.substr(0, whole.size() - 10));
  const uint64_t last = read_counting(path, records)->bytes;
  for (uint64_t at = last; at < whole.size(); at += 16) {
    std::string torn = whole;
    for (uint64_t i = at; i < std::min<uint64_t>(at + 16, whole.size()); ++i) torn[i] ^= 0x55;
    set_file(path, torn);
    Result<SegmentContent> content = read_counting(path, records);
    ASSERT_TRUE(content.ok()) << content.status().to_string();
    // Padding is not looked at.
    EXPECT_TRUE(content->bytes == last || records == 6) << at;
  }
}

TEST(Segment, RefusesADamagedBlockThatOthersFollow) {
  TestFolder folder;
  const std::string path = write_segment(folder, 3);
  const std::string whole = file_bytes(path);
  int records = 0;
  const uint64_t first_block = sizeof(SegmentHeader);
  for (const uint64_t at : {first_block, first_block + 8, first_block + 16, first_block + 40}) {
    std::string damaged = whole;
    damaged[at] ^= 1;
    set_file(path, damaged);
    Result<SegmentContent> content = read_counting(path, records);
    ASSERT_FALSE(content.ok()) << at;
    EXPECT_EQ(content.status().code(), Code::kCorrupt);
    EXPECT_NE(content.status().message().find(path), std::string::npos);
  }
}

TEST(Segment, RefusesADamagedHeaderWithBlocksBehindIt) {
  TestFolder folder;
  const std::string path = write_segment(folder, 1);
  std::string damaged = file_bytes(path);
  damaged[20] ^= 1;
  set_file(path, damaged);
  int records = 0;
  EXPECT_EQ(read_counting(path, records).status().code(), Code::kCorrupt);
}

// A row that holds a whole block of another file is a row.
TEST(Segment, DoesNotTakeRowBytesForBlocks) {
  TestFolder folder;
  const std::string path = write_segment(folder, 2);
  const std::string inner = file_bytes(path).substr(sizeof(SegmentHeader));
  Result<SegmentWriter> writer =
      SegmentWriter::create(folder.path() + "/outer", log_identity(), FileOps::posix());
  ASSERT_TRUE(writer.ok());
  std::vector<std::byte> block;
  // Behind the heads of block and record, so that the copy stands where a block may.
  add_record(1, bytes_of(std::string(64 - 32 - kRecordHeadBytes, 'p') + inner), block);
  ASSERT_TRUE(writer->write_block(block).ok() && writer->sync().ok());
  std::string cut = file_bytes(folder.path() + "/outer");
  cut.resize(cut.size() - 64);
  set_file(folder.path() + "/outer", cut);
  int records = 0;
  Result<SegmentContent> content = read_counting(folder.path() + "/outer", records);
  ASSERT_TRUE(content.ok()) << content.status().to_string();
  EXPECT_EQ(records, 0);
}

}  // namespace
}  // namespace rdmacc
