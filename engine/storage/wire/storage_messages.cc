#include "engine/storage/wire/storage_messages.h"

#include <cstring>

namespace rdmacc {

namespace {

// Items as they travel: what is freed or allocated for a bulk statement are some thousands in a
// message, which are copied without a look at each of their fields.
struct AllocateLayout {
  uint64_t key_hash;
  TableId table;
  uint32_t overflow_bytes;
  uint64_t want_slot;
};
struct AllocateReplyLayout {
  uint64_t slot, wts, lease, block, incarnation;
};
struct FreeLayout {
  uint64_t offset, kind;
};

template <typename Layout, typename Item, typename LayoutOf>
void write_items(MessageWriter& writer, std::span<const Item> items, LayoutOf layout_of) {
  static_assert(std::has_unique_object_representations_v<Layout>);
  std::byte* at = writer.room(items.size() * sizeof(Layout));
  for (const Item& item : items) {
    const Layout layout = layout_of(item);
    std::memcpy(at, &layout, sizeof(layout));
    at += sizeof(layout);
  }
}

// False: there are not so many, or `item_of` says that one makes no sense.
template <typename Layout, typename Item, typename ItemOf>
bool read_items(MessageReader& reader, size_t count, std::vector<Item>& items, ItemOf item_of) {
  const std::span<const std::byte> bytes = reader.raw(count * sizeof(Layout));
  if (!reader.ok()) return false;
  items.resize(count);
  const std::byte* at = bytes.data();
  bool sound = true;
  for (Item& item : items) {
    Layout layout;
    std::memcpy(&layout, at, sizeof(layout));
    at += sizeof(layout);
    sound = item_of(layout, item) && sound;
  }
  return sound && reader.at_end();
}

}  // namespace

void AllocateRequest::write(Rpc::Bytes& out) const {
  CHECK(items.size() <= kItemsPerMessage);
  MessageWriter writer(out);
  writer.u64(ctts);
  writer.u32(static_cast<uint32_t>(items.size()));
  write_items<AllocateLayout>(writer, std::span(items), [](const AllocateItem& item) {
    return AllocateLayout{item.key_hash, item.table, item.overflow_bytes, item.want_slot ? 1u : 0u};
  });
}

bool AllocateRequest::parse(std::span<const std::byte> in) {
  MessageReader reader(in);
  ctts = reader.u64();
  const uint32_t count = reader.u32();
  if (!reader.ok() || count > kItemsPerMessage) return false;
  return read_items<AllocateLayout>(
      reader, count, items, [](const AllocateLayout& layout, AllocateItem& item) {
        item = {layout.table, layout.key_hash, layout.overflow_bytes, layout.want_slot != 0};
        return true;
      });
}

void write_allocate_reply(std::span<const AllocateReplyItem> items, Rpc::Bytes& out) {
  CHECK(items.size() <= kItemsPerMessage);
  MessageWriter writer(out);
  write_items<AllocateReplyLayout>(writer, items, [](const AllocateReplyItem& item) {
    return AllocateReplyLayout{item.slot, item.wts, item.lease, item.block, item.incarnation};
  });
}

bool parse_allocate_reply(std::span<const std::byte> in, size_t count,
                          std::vector<AllocateReplyItem>* items) {
  MessageReader reader(in);
  return read_items<AllocateReplyLayout>(
      reader, count, *items, [](const AllocateReplyLayout& layout, AllocateReplyItem& item) {
        item = {layout.slot, static_cast<uint32_t>(layout.incarnation), layout.wts, layout.lease,
                layout.block};
        return layout.incarnation <= UINT32_MAX;
      });
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
  write_items<FreeLayout>(writer, std::span(items), [](const FreeItem& item) {
    return FreeLayout{item.offset, static_cast<uint64_t>(item.kind)};
  });
}

bool FreeMessage::parse(std::span<const std::byte> in) {
  MessageReader reader(in);
  ctts = reader.u64();
  const uint32_t count = reader.u32();
  if (!reader.ok() || count > kItemsPerMessage) return false;
  return read_items<FreeLayout>(reader, count, items, [](const FreeLayout& layout, FreeItem& item) {
    item = {layout.offset, static_cast<FreeKind>(layout.kind)};
    return layout.kind <= static_cast<uint64_t>(FreeKind::kReserved);
  });
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
  writer.u64(size.locked);
}

bool parse_table_size(std::span<const std::byte> in, TableSize* size) {
  MessageReader reader(in);
  size->rows = reader.u64();
  size->bytes = reader.u64();
  size->latest_stamp = reader.u64();
  size->locked = reader.u64();
  return reader.at_end();
}

}  // namespace rdmacc
