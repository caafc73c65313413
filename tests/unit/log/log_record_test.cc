#include "engine/log/log_record.h"

#include <gtest/gtest.h>

#include "rdma/base/random.h"

namespace rdmacc {
namespace {

std::string make_record(Random& random) {
  std::string key(random.below(20), '\0'), row(random.below(60), '\0');
  for (char& c : key) c = static_cast<char>(random.below(256));
  for (char& c : row) c = static_cast<char>(random.below(256));
  std::string record(record_bytes(key.size(), row.size()), '\0');
  put_record(record.data(), key, row);
  return record;
}

LogRecord make_log_record(Random& random, std::vector<std::string>& records) {
  LogRecord log;
  log.lock_ctts = random.next();
  log.stamp = random.next();
  log.protocol = static_cast<uint8_t>(random.below(6));
  log.writes.resize(random.below(6));
  records.reserve(log.writes.size());
  for (Write& write : log.writes) {
    write.header = GlobalAddress::make(static_cast<NodeId>(random.below(4)),
                                       64 * (1 + random.below(1'000'000)));
    write.kind = static_cast<WriteKind>(1 + random.below(4));
    write.table = static_cast<TableId>(random.below(100));
    write.key_hash = random.next();
    write.incarnation = static_cast<uint32_t>(random.next());
    if (write.kind == WriteKind::kUpdate || write.kind == WriteKind::kInsert) {
      records.push_back(make_record(random));
      write.record = records.back();
      if (random.percent(30)) write.overflow = GlobalAddress::make(1, 4096);
    }
    if (write.kind == WriteKind::kGap) {
      for (uint64_t i = random.below(4); i > 0; --i) {
        write.entries.push_back({8 * random.below(10'000), random.next()});
      }
    }
  }
  return log;
}

void expect_equal(const LogRecord& a, const LogRecord& b) {
  EXPECT_EQ(a.lock_ctts, b.lock_ctts);
  EXPECT_EQ(a.stamp, b.stamp);
  EXPECT_EQ(a.protocol, b.protocol);
  ASSERT_EQ(a.writes.size(), b.writes.size());
  for (size_t i = 0; i < a.writes.size(); ++i) {
    const Write &x = a.writes[i], &y = b.writes[i];
    EXPECT_EQ(x.header, y.header);
    EXPECT_EQ(x.kind, y.kind);
    EXPECT_EQ(x.table, y.table);
    EXPECT_EQ(x.key_hash, y.key_hash);
    EXPECT_EQ(x.incarnation, y.incarnation);
    EXPECT_EQ(x.overflow, y.overflow);
    EXPECT_EQ(x.record, y.record);
    ASSERT_EQ(x.entries.size(), y.entries.size());
    for (size_t e = 0; e < x.entries.size(); ++e) {
      EXPECT_EQ(x.entries[e].offset, y.entries[e].offset);
      EXPECT_EQ(x.entries[e].value, y.entries[e].value);
    }
  }
}

TEST(LogRecord, DecodesWhatWasEncoded) {
  for (uint64_t seed = 1; seed <= 2'000; ++seed) {
    Random random(seed);
    std::vector<std::string> records;
    const LogRecord log = make_log_record(random, records);
    std::vector<std::byte> bytes;
    encode(log, bytes);
    const Result<LogRecord> decoded = decode_log_record(bytes);
    ASSERT_TRUE(decoded.ok()) << "seed " << seed;
    expect_equal(log, decoded.value());
  }
}

// For logs that know rows by their keys.
TEST(LogRecord, KeepsTheKeyOfADeletedRow) {
  Random random(3);
  const std::string key = make_record(random);
  LogRecord log;
  log.lock_ctts = 1;
  Write& write = log.writes.emplace_back();
  write.header = GlobalAddress::make(0, 64);
  write.kind = WriteKind::kUnlink;
  write.record = key;
  std::vector<std::byte> bytes;
  encode(log, bytes);
  const Result<LogRecord> decoded = decode_log_record(bytes);
  ASSERT_TRUE(decoded.ok());
  expect_equal(log, decoded.value());
}

TEST(LogRecord, RefusesEveryPrefix) {
  Random random(7);
  std::vector<std::string> records;
  LogRecord log = make_log_record(random, records);
  while (log.writes.size() < 4) {
    records.clear();
    log = make_log_record(random, records);
  }
  std::vector<std::byte> bytes;
  encode(log, bytes);
  for (size_t length = 0; length < bytes.size(); ++length) {
    // A copy of its own, so that a sanitizer sees a read past the end.
    const std::vector<std::byte> prefix(bytes.begin(),
                                        bytes.begin() + static_cast<ptrdiff_t>(length));
    EXPECT_EQ(decode_log_record(prefix).status().code(), Code::kCorrupt) << length;
  }
  bytes.push_back(std::byte{0});
  EXPECT_EQ(decode_log_record(bytes).status().code(), Code::kCorrupt);
}

// Whatever is accepted is exactly a record: encoding it gives the same bytes.
TEST(LogRecord, NeverMisreadsMutatedBytes) {
  Random random(11);
  std::vector<std::string> records;
  std::vector<std::byte> bytes, again;
  uint64_t accepted = 0;
  for (int i = 0; i < 100'000; ++i) {
    if (i % 50 == 0) {
      records.clear();
      bytes.clear();
      encode(make_log_record(random, records), bytes);
    }
    std::vector<std::byte> mutated = bytes;
    for (uint64_t n = 1 + random.below(4); n > 0; --n) {
      mutated[random.below(mutated.size())] = static_cast<std::byte>(random.below(256));
    }
    if (random.percent(20)) mutated.resize(random.below(mutated.size() + 16));
    const Result<LogRecord> decoded = decode_log_record(mutated);
    if (!decoded.ok()) continue;
    ++accepted;
    again.clear();
    encode(decoded.value(), again);
    ASSERT_EQ(again, mutated);
  }
  EXPECT_GT(accepted, 1'000u);
}

TEST(LogRecord, RefusesRecordsThatAreNoTuple) {
  LogRecord log;
  const std::string record("\xFF\xFF\0\0key", 7);  // a key longer than the record
  log.writes.push_back({.header = GlobalAddress::make(0, 64),
                        .kind = WriteKind::kUpdate,
                        .overflow = {},
                        .record = record,
                        .entries = {}});
  std::vector<std::byte> bytes;
  encode(log, bytes);
  EXPECT_EQ(decode_log_record(bytes).status().code(), Code::kCorrupt);
}

}  // namespace
}  // namespace rdmacc
