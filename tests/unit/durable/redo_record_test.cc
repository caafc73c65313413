#include "engine/durable/redo_record.h"

#include <gtest/gtest.h>

#include "tests/unit/durable/durable_files.h"

namespace rdmacc {
namespace {

std::string record_of(std::string_view key, std::string_view row) {
  std::string record(record_bytes(key.size(), row.size()), '\0');
  put_record(record.data(), key, row);
  return record;
}

Write write_of(WriteKind kind, NodeId node, std::string_view record) {
  Write write;
  write.header = GlobalAddress::make(node, 6400);
  write.kind = kind;
  write.table = 7;
  write.record = record;
  return write;
}

TEST(RedoRecord, HasTheRowsOfALogRecordByTheirKeys) {
  const std::string put = record_of("a", "row"), gone = record_of("b", ""),
                    tomb = record_of("c", "");
  LogRecord record;
  record.stamp = 5;
  record.lock_ctts = 6;
  record.writes = {write_of(WriteKind::kInsert, 0, put), write_of(WriteKind::kUnlink, 1, gone),
                   write_of(WriteKind::kTombstone, 1, tomb), write_of(WriteKind::kGap, 0, {})};
  Result<RedoWrites> redo = redo_of(record);
  ASSERT_TRUE(redo.ok());
  ASSERT_EQ(redo->writes.size(), 3u);
  EXPECT_EQ(redo->writes[0].key, "a");
  EXPECT_EQ(redo->writes[0].row, "row");
  EXPECT_FALSE(redo->writes[0].deleted);
  EXPECT_EQ(redo->writes[1].key, "b");
  EXPECT_TRUE(redo->writes[1].deleted && redo->writes[2].deleted);
  EXPECT_EQ(redo->writes[1].node, 1);
  EXPECT_EQ(redo->stamp, 5u);
  EXPECT_EQ(redo->lock_ctts, 6u);
}

// An engine that deletes without naming the key must not write to such a log.
TEST(RedoRecord, RefusesADeletionWithoutAKey) {
  LogRecord record;
  record.writes = {write_of(WriteKind::kUnlink, 0, {})};
  EXPECT_EQ(redo_of(record).status().code(), Code::kCorrupt);
}

TEST(RedoRecord, RefusesEveryPrefix) {
  RedoWrites writes{5, 6, {{0, 7, false, "key", "row"}, {1, 7, true, "gone", ""}}};
  std::vector<std::byte> bytes;
  encode(writes, bytes);
  RedoWrites decoded;
  ASSERT_TRUE(decode(bytes, decoded).ok());
  ASSERT_EQ(decoded.writes.size(), 2u);
  EXPECT_EQ(decoded.writes[1].key, "gone");
  EXPECT_EQ(decoded.lock_ctts, 6u);
  for (size_t length = 0; length < bytes.size(); ++length) {
    // A copy of its own, so that a sanitizer sees a read past the end.
    const std::vector<std::byte> prefix(bytes.begin(),
                                        bytes.begin() + static_cast<ptrdiff_t>(length));
    EXPECT_EQ(decode(prefix, decoded).code(), Code::kCorrupt) << length;
  }
  bytes.push_back(std::byte{0});
  EXPECT_EQ(decode(bytes, decoded).code(), Code::kCorrupt);
}

TEST(RedoRecord, NamesWhatIsPreparedAndHowItEnds) {
  const RedoPrepared prepared{{77, 5}, {5, 6, {{0, 7, false, "key", "row"}}}};
  std::vector<std::byte> bytes;
  encode(prepared, bytes);
  RedoPrepared decoded;
  ASSERT_TRUE(decode(bytes, decoded).ok());
  EXPECT_EQ(decoded.gtid, (Gtid{77, 5}));
  EXPECT_EQ(decoded.writes.lock_ctts, 6u);
  ASSERT_EQ(decoded.writes.writes.size(), 1u);
  bytes.resize(2 * sizeof(uint64_t));
  EXPECT_EQ(decode(bytes, decoded).code(), Code::kCorrupt);

  bytes.clear();
  encode(RedoPrepared{{}, {5, 6, {}}}, bytes);
  EXPECT_EQ(decode(bytes, decoded).code(), Code::kCorrupt) << "without a name";
  bytes.clear();
  encode(RedoPrepared{{77, 5}, {5, 0, {}}}, bytes);
  EXPECT_EQ(decode(bytes, decoded).code(), Code::kCorrupt) << "without locks";

  bytes.clear();
  encode(RedoDecided{6, true}, bytes);
  RedoDecided decided;
  ASSERT_TRUE(decode(bytes, decided).ok());
  EXPECT_TRUE(decided.committed && decided.lock_ctts == 6);
  bytes.back() = std::byte{2};
  EXPECT_EQ(decode(bytes, decided).code(), Code::kCorrupt);
}

}  // namespace
}  // namespace rdmacc
