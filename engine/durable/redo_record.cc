#include "engine/durable/redo_record.h"

#include <cstring>

#include "engine/storage/layout/key_hash.h"
#include "engine/storage/wire/messages.h"

namespace rdmacc {
namespace {

constexpr size_t kWriteBytesMin = 2 + 4 + 1 + 4 + 4;

Status corrupt() { return Status(Code::kCorrupt, "a record that does not parse"); }

bool key_is_sound(std::string_view key) { return key.size() <= kKeyBytesMax; }

}  // namespace

Result<RedoWrites> redo_of(const LogRecord& record) {
  RedoWrites redo;
  redo.stamp = record.stamp;
  redo.lock_ctts = record.lock_ctts;
  for (const Write& write : record.writes) {
    if (write.kind == WriteKind::kGap) continue;
    if (write.record.size() < kKeyLengthBytes) return corrupt();
    const size_t key_bytes = key_bytes_of(write.record.data());
    if (key_bytes > write.record.size() - kKeyLengthBytes) return corrupt();
    RedoWrite& out = redo.writes.emplace_back();
    out.node = write.header.node();
    out.table = write.table;
    out.deleted = write.kind == WriteKind::kUnlink || write.kind == WriteKind::kTombstone;
    out.key = write.record.substr(kKeyLengthBytes, key_bytes);
    if (!out.deleted) out.row = write.record.substr(kKeyLengthBytes + key_bytes);
  }
  return redo;
}

void encode(const RedoWrites& writes, std::vector<std::byte>& out) {
  MessageWriter to(out);
  to.u64(writes.stamp);
  to.u64(writes.lock_ctts);
  to.u32(static_cast<uint32_t>(writes.writes.size()));
  for (const RedoWrite& write : writes.writes) {
    to.u16(write.node);
    to.u32(write.table);
    to.u8(write.deleted ? 1 : 0);
    to.bytes(write.key);
    to.bytes(write.row);
  }
}

void encode(const ListedTable& table, std::vector<std::byte>& out) {
  MessageWriter to(out);
  to.u32(table.id);
  to.u64(table.system_id);
  to.u32(table.database);
  to.u32(table.relfilenode);
  to.u32(table.record_size);
  to.u32(table.history);
}

void encode(const RedoRow& row, std::vector<std::byte>& out) {
  MessageWriter to(out);
  to.u32(row.table);
  to.u64(row.stamp);
  to.bytes(row.key);
  to.bytes(row.row);
}

void encode(const RedoEnd& end, std::vector<std::byte>& out) {
  MessageWriter to(out);
  to.u64(end.rows);
  to.u64(end.tables);
}

void encode(const RedoCovered& covered, std::vector<std::byte>& out) {
  MessageWriter to(out);
  to.u16(covered.by);
  to.u32(static_cast<uint32_t>(covered.lock_ctts.size()));
  for (const uint64_t lock_ctts : covered.lock_ctts) to.u64(lock_ctts);
}

void encode(const RedoPrepared& prepared, std::vector<std::byte>& out) {
  MessageWriter to(out);
  to.u64(prepared.gtid.system_id);
  to.u64(prepared.gtid.xid);
  encode(prepared.writes, out);
}

void encode(const RedoDecided& decided, std::vector<std::byte>& out) {
  MessageWriter to(out);
  to.u64(decided.lock_ctts);
  to.u8(decided.committed ? 1 : 0);
}

void encode_dropped(TableId table, std::vector<std::byte>& out) { MessageWriter(out).u32(table); }

Status decode(std::span<const std::byte> in, RedoWrites& writes) {
  MessageReader from(in);
  writes.stamp = from.u64();
  writes.lock_ctts = from.u64();
  const uint32_t count = from.u32();
  if (!from.ok() || count > in.size() / kWriteBytesMin) return corrupt();
  writes.writes.resize(count);
  for (RedoWrite& write : writes.writes) {
    write.node = from.u16();
    write.table = from.u32();
    const uint8_t deleted = from.u8();
    write.deleted = deleted == 1;
    write.key = from.bytes();
    write.row = from.bytes();
    const bool sound = from.ok() && deleted <= 1 && key_is_sound(write.key) &&
                       write.table != kNoTable && write.row.size() <= kRowBytesMax;
    if (!sound) return corrupt();
  }
  return from.at_end() ? Status() : corrupt();
}

Status decode(std::span<const std::byte> in, ListedTable& table) {
  MessageReader from(in);
  table.id = from.u32();
  table.system_id = from.u64();
  table.database = from.u32();
  table.relfilenode = from.u32();
  table.record_size = from.u32();
  table.history = from.u32();
  table.has_distribution_key = (table.id & kDistributedTable) != 0;
  const bool sound = from.at_end() && number_of_table(table.id) != kNoTable &&
                     table.record_size >= kRecordSizeMin && table.record_size <= kRecordInlineMax &&
                     table.history <= kHistoryMax;
  return sound ? Status() : corrupt();
}

Status decode(std::span<const std::byte> in, RedoRow& row) {
  MessageReader from(in);
  row.table = from.u32();
  row.stamp = from.u64();
  row.key = from.bytes();
  row.row = from.bytes();
  const bool sound = from.at_end() && key_is_sound(row.key) && row.row.size() <= kRowBytesMax;
  return sound ? Status() : corrupt();
}

Status decode(std::span<const std::byte> in, RedoEnd& end) {
  MessageReader from(in);
  end.rows = from.u64();
  end.tables = from.u64();
  return from.at_end() ? Status() : corrupt();
}

Status decode(std::span<const std::byte> in, RedoCovered& covered) {
  MessageReader from(in);
  covered.by = from.u16();
  const uint32_t count = from.u32();
  if (!from.ok() || count > in.size() / sizeof(uint64_t)) return corrupt();
  covered.lock_ctts.resize(count);
  for (uint64_t& lock_ctts : covered.lock_ctts) lock_ctts = from.u64();
  return from.at_end() ? Status() : corrupt();
}

Status decode(std::span<const std::byte> in, RedoPrepared& prepared) {
  MessageReader from(in);
  prepared.gtid.system_id = from.u64();
  prepared.gtid.xid = from.u64();
  if (!from.ok() || prepared.gtid.null()) return corrupt();
  RDMACC_RETURN_IF_ERROR(decode(in.subspan(2 * sizeof(uint64_t)), prepared.writes));
  return prepared.writes.lock_ctts != 0 ? Status() : corrupt();
}

Status decode(std::span<const std::byte> in, RedoDecided& decided) {
  MessageReader from(in);
  decided.lock_ctts = from.u64();
  const uint8_t committed = from.u8();
  decided.committed = committed == 1;
  const bool sound = from.at_end() && committed <= 1 && decided.lock_ctts != 0;
  return sound ? Status() : corrupt();
}

Status decode_dropped(std::span<const std::byte> in, TableId& table) {
  MessageReader from(in);
  table = from.u32();
  return from.at_end() && table != kNoTable ? Status() : corrupt();
}

}  // namespace rdmacc
