#include "engine/storage/wire/storage_messages.h"

namespace rdmacc {

void AllocateRequest::write(Rpc::Bytes& out) const {
  CHECK(items.size() <= kItemsPerMessage);
  MessageWriter writer(out);
  writer.u64(ctts);
  writer.u32(static_cast<uint32_t>(items.size()));
  for (const AllocateItem& item : items) {
    writer.u32(item.table);
    writer.u64(item.key_hash);
    writer.u32(item.overflow_bytes);
    writer.u8(item.want_slot ? 1 : 0);
  }
}

bool AllocateRequest::parse(std::span<const std::byte> in) {
  MessageReader reader(in);
  ctts = reader.u64();
  const uint32_t count = reader.u32();
  if (!reader.ok() || count > kItemsPerMessage) return false;
  items.resize(count);
  for (AllocateItem& item : items) {
    item.table = reader.u32();
    item.key_hash = reader.u64();
    item.overflow_bytes = reader.u32();
    item.want_slot = reader.u8() != 0;
  }
  return reader.at_end();
}

void write_allocate_reply(std::span<const AllocateReplyItem> items, Rpc::Bytes& out) {
  CHECK(items.size() <= kItemsPerMessage);
  MessageWriter writer(out);
  for (const AllocateReplyItem& item : items) {
    writer.u64(item.slot);
    writer.u32(item.incarnation);
    writer.u64(item.wts);
    writer.u64(item.lease);
    writer.u64(item.block);
  }
}

bool parse_allocate_reply(std::span<const std::byte> in, size_t count,
                          std::vector<AllocateReplyItem>* items) {
  MessageReader reader(in);
  items->resize(count);
  for (AllocateReplyItem& item : *items) {
    item.slot = reader.u64();
    item.incarnation = reader.u32();
    item.wts = reader.u64();
    item.lease = reader.u64();
    item.block = reader.u64();
  }
  return reader.at_end();
}

void ReserveRequest::write(Rpc::Bytes& out) const {
  MessageWriter writer(out);
  writer.u32(table);
  writer.u32(count);
  writer.u64(tag);
}

bool ReserveRequest::parse(std::span<const std::byte> in) {
  MessageReader reader(in);
  table = reader.u32();
  count = reader.u32();
  tag = reader.u64();
  return reader.at_end() && count > 0 && count <= kReservedSlotsMax;
}

void FreeMessage::write(Rpc::Bytes& out) const {
  CHECK(items.size() <= kItemsPerMessage);
  MessageWriter writer(out);
  writer.u64(ctts);
  writer.u32(static_cast<uint32_t>(items.size()));
  for (const FreeItem& item : items) {
    writer.u64(item.offset);
    writer.u8(static_cast<uint8_t>(item.kind));
  }
}

bool FreeMessage::parse(std::span<const std::byte> in) {
  MessageReader reader(in);
  ctts = reader.u64();
  const uint32_t count = reader.u32();
  if (!reader.ok() || count > kItemsPerMessage) return false;
  items.resize(count);
  for (FreeItem& item : items) {
    item.offset = reader.u64();
    const uint8_t kind = reader.u8();
    if (kind > static_cast<uint8_t>(FreeKind::kReserved)) return false;
    item.kind = static_cast<FreeKind>(kind);
  }
  return reader.at_end();
}

void ExtendRequest::write(Rpc::Bytes& out) const {
  MessageWriter writer(out);
  writer.u64(group);
  writer.u32(bucket);
  writer.u32(entries);
  writer.u64(ctts);
}

bool ExtendRequest::parse(std::span<const std::byte> in) {
  MessageReader reader(in);
  group = reader.u64();
  bucket = reader.u32();
  entries = reader.u32();
  ctts = reader.u64();
  return reader.at_end();
}

void FullGroupsMessage::write(Rpc::Bytes& out) const {
  CHECK(groups.size() <= kFullGroupsMax);
  MessageWriter writer(out);
  writer.u32(static_cast<uint32_t>(groups.size()));
  for (const uint64_t group : groups) writer.u64(group);
}

bool FullGroupsMessage::parse(std::span<const std::byte> in) {
  MessageReader reader(in);
  const uint32_t count = reader.u32();
  if (!reader.ok() || count > kFullGroupsMax) return false;
  groups.resize(count);
  for (uint64_t& group : groups) group = reader.u64();
  return reader.at_end();
}

void TableRequest::write(Rpc::Bytes& out) const {
  MessageWriter writer(out);
  writer.u32(id);
  writer.u64(spec.system_id);
  writer.u32(spec.database);
  writer.u32(spec.relfilenode);
  writer.u32(spec.record_size);
  writer.u32(spec.history);
  writer.u8(spec.has_distribution_key ? 1 : 0);
}

bool TableRequest::parse(std::span<const std::byte> in) {
  MessageReader reader(in);
  id = reader.u32();
  spec.system_id = reader.u64();
  spec.database = reader.u32();
  spec.relfilenode = reader.u32();
  spec.record_size = reader.u32();
  spec.history = reader.u32();
  spec.has_distribution_key = reader.u8() != 0;
  return reader.at_end();
}

void write_table_meta(const TableMeta& meta, Rpc::Bytes& out) {
  MessageWriter writer(out);
  writer.u32(meta.id);
  writer.u32(meta.record_size);
  writer.u32(meta.history);
  writer.u64(meta.created_us);
}

bool parse_table_meta(std::span<const std::byte> in, TableMeta* meta) {
  MessageReader reader(in);
  meta->id = reader.u32();
  meta->record_size = reader.u32();
  meta->history = reader.u32();
  meta->created_us = reader.u64();
  return reader.at_end();
}

void write_statistics(const NodeStatistics& statistics, Rpc::Bytes& out) {
  MessageWriter writer(out);
  for (const uint64_t value :
       {statistics.region_bytes, statistics.backed_bytes, statistics.used_bytes, statistics.tables,
        statistics.rows, statistics.splits, statistics.requests, statistics.started_us}) {
    writer.u64(value);
  }
}

bool parse_statistics(std::span<const std::byte> in, NodeStatistics* statistics) {
  MessageReader reader(in);
  for (uint64_t* value : {&statistics->region_bytes, &statistics->backed_bytes,
                          &statistics->used_bytes, &statistics->tables, &statistics->rows,
                          &statistics->splits, &statistics->requests, &statistics->started_us}) {
    *value = reader.u64();
  }
  return reader.at_end();
}

void write_locked_headers(const LockedHeaders& locked, Rpc::Bytes& out) {
  CHECK(locked.headers.size() <= kLockedHeadersMax);
  MessageWriter writer(out);
  writer.u64(locked.next);
  writer.u32(static_cast<uint32_t>(locked.headers.size()));
  for (const LockedHeader& header : locked.headers) {
    writer.u64(header.address.bits);
    writer.u32(header.table);
    writer.u32(header.database);
    writer.u32(header.relfilenode);
    writer.u8(static_cast<uint8_t>((header.gap ? 1 : 0) | (header.live ? 2 : 0)));
    writer.u64(header.key_hash);
    writer.u64(header.lock);
    writer.u64(header.waiter);
    writer.u64(header.sundial);
  }
}

bool parse_locked_headers(std::span<const std::byte> in, LockedHeaders* locked) {
  MessageReader reader(in);
  locked->next = reader.u64();
  const uint32_t count = reader.u32();
  if (!reader.ok() || count > kLockedHeadersMax) return false;
  locked->headers.resize(count);
  for (LockedHeader& header : locked->headers) {
    header.address.bits = reader.u64();
    header.table = reader.u32();
    header.database = reader.u32();
    header.relfilenode = reader.u32();
    const uint8_t kind = reader.u8();
    header.gap = (kind & 1) != 0;
    header.live = (kind & 2) != 0;
    header.key_hash = reader.u64();
    header.lock = reader.u64();
    header.waiter = reader.u64();
    header.sundial = reader.u64();
  }
  return reader.at_end();
}

void write_tables(std::span<const ListedTable> tables, Rpc::Bytes& out) {
  CHECK(tables.size() <= kListedTablesMax);
  MessageWriter writer(out);
  writer.u32(static_cast<uint32_t>(tables.size()));
  for (const ListedTable& table : tables) {
    writer.u32(table.id);
    writer.u64(table.system_id);
    writer.u32(table.database);
    writer.u32(table.relfilenode);
    writer.u32(table.record_size);
    writer.u32(table.history);
  }
}

bool parse_tables(std::span<const std::byte> in, std::vector<ListedTable>* tables) {
  MessageReader reader(in);
  const uint32_t count = reader.u32();
  if (!reader.ok() || count > kListedTablesMax) return false;
  tables->resize(count);
  for (ListedTable& table : *tables) {
    table.id = reader.u32();
    table.system_id = reader.u64();
    table.database = reader.u32();
    table.relfilenode = reader.u32();
    table.record_size = reader.u32();
    table.history = reader.u32();
    table.has_distribution_key = (table.id & kDistributedTable) != 0;
  }
  return reader.at_end();
}

void write_table_size(const TableSize& size, Rpc::Bytes& out) {
  MessageWriter writer(out);
  writer.u64(size.rows);
  writer.u64(size.bytes);
  writer.u64(size.latest_stamp);
}

bool parse_table_size(std::span<const std::byte> in, TableSize* size) {
  MessageReader reader(in);
  size->rows = reader.u64();
  size->bytes = reader.u64();
  size->latest_stamp = reader.u64();
  return reader.at_end();
}

}  // namespace rdmacc
