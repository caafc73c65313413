#include "engine/log/log_record.h"

#include <cstring>

#include "engine/storage/messages.h"

namespace rdmacc {
namespace {

constexpr uint32_t kRecordVersion = 3;
// Bytes that a write and an entry take at least: they bound the counts that a record may claim.
constexpr size_t kWriteBytesMin = 8 + 1 + 4 + 8 + 4 + 8 + 2 + 2 + 4 + 4;
constexpr size_t kEntryBytes = 16;

constexpr bool carries_record(WriteKind kind) {
  return kind == WriteKind::kUpdate || kind == WriteKind::kInsert || kind == WriteKind::kTombstone;
}

// [key length 4][key][row]: what is installed from a log must parse as a slot's record does.
bool record_is_sound(std::string_view record) {
  if (record.size() < 4 || record.size() > record_bytes(kKeyBytesMax, kRowBytesMax)) return false;
  uint32_t key_length;
  std::memcpy(&key_length, record.data(), 4);
  return key_length <= kKeyBytesMax && key_length <= record.size() - 4;
}

bool address_is_sound(GlobalAddress address) {
  return !address.null() && address.offset() % 8 == 0;
}

bool decode_write(MessageReader& in, size_t bytes_left_max, Write& write) {
  write.header.bits = in.u64();
  const uint8_t kind = in.u8();
  if (kind < static_cast<uint8_t>(WriteKind::kUpdate) ||
      kind > static_cast<uint8_t>(WriteKind::kTombstone)) {
    return false;
  }
  write.kind = static_cast<WriteKind>(kind);
  write.table = in.u32();
  write.key_hash = in.u64();
  write.incarnation = in.u32();
  write.overflow.bits = in.u64();
  write.record_size = in.u16();
  write.history = in.u16();
  write.record = in.bytes();
  const uint32_t entries = in.u32();
  if (!in.ok() || !address_is_sound(write.header)) return false;
  if (write.record_size > kRecordInlineMax || write.history > kHistoryMax) return false;
  if (carries_record(write.kind) ? !record_is_sound(write.record) : !write.record.empty()) {
    return false;
  }
  if (!write.overflow.null() &&
      (!carries_record(write.kind) || !address_is_sound(write.overflow))) {
    return false;
  }
  if (entries > 0 && write.kind != WriteKind::kGap) return false;
  if (entries > bytes_left_max / kEntryBytes) return false;
  write.entries.reserve(entries);
  for (uint32_t i = 0; i < entries && in.ok(); ++i) {
    EntryWrite entry;
    entry.offset = in.u64();
    entry.value = in.u64();
    if (entry.offset % 8 != 0) return false;
    write.entries.push_back(entry);
  }
  return in.ok();
}

}  // namespace

void encode(const LogRecord& record, std::vector<std::byte>& out) {
  size_t bytes_max = 64;
  for (const Write& write : record.writes) {
    bytes_max += kWriteBytesMin + write.record.size() + kEntryBytes * write.entries.size();
  }
  out.reserve(out.size() + bytes_max);
  MessageWriter writer(out);
  writer.u32(kRecordVersion);
  writer.u64(record.lock_ctts);
  writer.u64(record.stamp);
  writer.u64(record.lease);
  writer.u8(record.protocol);
  writer.u64(record.gtid.system_id);
  writer.u64(record.gtid.xid);
  writer.u32(static_cast<uint32_t>(record.writes.size()));
  for (const Write& write : record.writes) {
    CHECK(write.entries.empty() || write.kind == WriteKind::kGap);
    CHECK(!write.header.null());
    CHECK(write.record.empty() || carries_record(write.kind));
    writer.u64(write.header.bits);
    writer.u8(static_cast<uint8_t>(write.kind));
    writer.u32(write.table);
    writer.u64(write.key_hash);
    writer.u32(write.incarnation);
    writer.u64(write.overflow.bits);
    writer.u16(write.record_size);
    writer.u16(write.history);
    writer.bytes(write.record);
    writer.u32(static_cast<uint32_t>(write.entries.size()));
    for (const EntryWrite& entry : write.entries) {
      writer.u64(entry.offset);
      writer.u64(entry.value);
    }
  }
}

Result<LogRecord> decode_log_record(std::span<const std::byte> bytes) {
  MessageReader in(bytes);
  LogRecord record;
  const uint32_t version = in.u32();
  record.lock_ctts = in.u64();
  record.stamp = in.u64();
  record.lease = in.u64();
  record.protocol = in.u8();
  record.gtid.system_id = in.u64();
  record.gtid.xid = in.u64();
  const uint32_t count = in.u32();
  if (!in.ok() || version != kRecordVersion || count > bytes.size() / kWriteBytesMin) {
    return Status(Code::kCorrupt, "log record: bad header");
  }
  record.writes.resize(count);
  for (Write& write : record.writes) {
    if (!decode_write(in, bytes.size(), write)) {
      return Status(Code::kCorrupt, "log record: bad write");
    }
  }
  if (!in.at_end()) return Status(Code::kCorrupt, "log record: bytes left over");
  return record;
}

}  // namespace rdmacc
