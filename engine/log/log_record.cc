#include "engine/log/log_record.h"

#include <cstring>

#include "engine/storage/wire/messages.h"

namespace rdmacc {
namespace {

constexpr uint32_t kRecordVersion = 4;
// Bytes that a write and an entry take at least: they bound the counts that a record may claim.
constexpr size_t kWriteBytesMin = 8 + 1 + 4 + 8 + 4 + 8 + 2 + 2 + 4 + 4;
constexpr size_t kEntryBytes = 16;
constexpr size_t kHeadBytes = 4 + 8 + 8 + 8 + 1 + 8 + 8 + 4;

constexpr bool carries_record(WriteKind kind) {
  return kind == WriteKind::kUpdate || kind == WriteKind::kInsert || kind == WriteKind::kTombstone;
}

// A row that is deleted needs none, but a log that knows rows by their keys has its key there.
constexpr bool may_have_record(WriteKind kind) {
  return carries_record(kind) || kind == WriteKind::kUnlink;
}

// What is installed from a log must parse as a slot's record does.
bool record_is_sound(std::string_view record) {
  if (record.size() < kKeyLengthBytes || record.size() > record_bytes(kKeyBytesMax, kRowBytesMax)) {
    return false;
  }
  const size_t key_bytes = key_bytes_of(record.data());
  return key_bytes <= kKeyBytesMax && key_bytes <= record.size() - kKeyLengthBytes;
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
  const bool has_record = carries_record(write.kind) || !write.record.empty();
  if (has_record && !(may_have_record(write.kind) && record_is_sound(write.record))) return false;
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

size_t encoded_bytes(const LogRecord& record) {
  size_t bytes = kHeadBytes;
  for (const Write& write : record.writes) {
    bytes += kWriteBytesMin + write.record.size() + kEntryBytes * write.entries.size();
  }
  return bytes;
}

void encode_to(const LogRecord& record, std::byte* out) {
  const std::byte* const begin = out;
  const auto raw = [&out](const void* from, size_t bytes) {
    std::memcpy(out, from, bytes);
    out += bytes;
  };
  const auto put = [&raw](auto value) { raw(&value, sizeof(value)); };
  put(kRecordVersion);
  put(record.lock_ctts);
  put(record.stamp);
  put(record.lease);
  put(record.protocol);
  put(record.gtid.system_id);
  put(record.gtid.xid);
  put(static_cast<uint32_t>(record.writes.size()));
  for (const Write& write : record.writes) {
    CHECK(write.entries.empty() || write.kind == WriteKind::kGap);
    CHECK(!write.header.null());
    CHECK(write.record.empty() || may_have_record(write.kind));
    put(write.header.bits);
    put(static_cast<uint8_t>(write.kind));
    put(write.table);
    put(write.key_hash);
    put(write.incarnation);
    put(write.overflow.bits);
    put(write.record_size);
    put(write.history);
    put(static_cast<uint32_t>(write.record.size()));
    if (!write.record.empty()) raw(write.record.data(), write.record.size());
    put(static_cast<uint32_t>(write.entries.size()));
    for (const EntryWrite& entry : write.entries) {
      put(entry.offset);
      put(entry.value);
    }
  }
  CHECK(static_cast<size_t>(out - begin) == encoded_bytes(record));
}

void encode(const LogRecord& record, std::vector<std::byte>& out) {
  const size_t before = out.size();
  out.resize(before + encoded_bytes(record));
  encode_to(record, out.data() + before);
}

Result<LogRecord> decode_log_record(std::span<const std::byte> bytes) {
  LogRecord record;
  RDMACC_RETURN_IF_ERROR(decode_log_record(bytes, record));
  return record;
}

Status decode_log_record(std::span<const std::byte> bytes, LogRecord& record) {
  MessageReader in(bytes);
  record.writes.clear();
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
  return Status();
}

}  // namespace rdmacc
