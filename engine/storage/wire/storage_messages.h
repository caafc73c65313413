#pragma once
#include <vector>

#include "engine/storage/wire/messages.h"
#include "engine/storage/wire/storage_service.h"

// Requests and replies of the storage service, as both sides know them. parse() checks the form
// (no trailing bytes, counts within bounds); what the numbers mean is the handler's to check.

namespace rdmacc {

// More are sent in several messages.
constexpr uint32_t kItemsPerMessage = 8 * 1024;

struct AllocateItem {
  TableId table = kNoTable;
  uint64_t key_hash = 0;
  uint32_t overflow_bytes = 0;
  bool want_slot = true;
};

struct AllocateRequest {
  uint64_t ctts = 0;
  std::vector<AllocateItem> items;

  void write(Rpc::Bytes& out) const;
  bool parse(std::span<const std::byte> in);
};

// Slots of a table that the caller keeps, locked by `tag`, until its inserts need them; what is
// answered is as for an AllocateRequest.
constexpr uint32_t kReservedSlotsMax = 512;
struct ReserveRequest {
  TableId table = kNoTable;
  uint32_t count = 0;
  uint64_t tag = 0;

  void write(Rpc::Bytes& out) const;
  bool parse(std::span<const std::byte> in);
};

struct AllocateReplyItem {
  uint64_t slot = 0;  // offsets, 0 = none
  uint32_t incarnation = 0;
  uint64_t wts = 0;    // of the slot, or its rts: the next stamp must be larger
  uint64_t lease = 0;  // SUNDIAL's word of the slot
  uint64_t block = 0;
};

void write_allocate_reply(std::span<const AllocateReplyItem> items, Rpc::Bytes& out);
bool parse_allocate_reply(std::span<const std::byte> in, size_t count,
                          std::vector<AllocateReplyItem>* items);

enum class FreeKind : uint8_t {
  kOverflow = 0,
  kSlot = 1,
  kTombstone = 2,  // a slot that is to be unlinked and freed once its versions are not needed
  kReserved = 3,   // a slot that was kept in advance, if its lock still is the message's ctts
};
struct FreeItem {
  uint64_t offset = 0;
  FreeKind kind = FreeKind::kSlot;
};

struct FreeMessage {
  uint64_t ctts = 0;
  std::vector<FreeItem> items;

  void write(Rpc::Bytes& out) const;
  bool parse(std::span<const std::byte> in);
};

struct ExtendRequest {
  uint64_t group = 0;
  uint32_t bucket = 0;
  uint32_t entries = 0;
  uint64_t ctts = 0;

  void write(Rpc::Bytes& out) const;
  bool parse(std::span<const std::byte> in);
};

// Groups whose next inserts may find no room; more are sent in several messages.
constexpr uint32_t kFullGroupsMax = 256;
struct FullGroupsMessage {
  std::vector<uint64_t> groups;

  void write(Rpc::Bytes& out) const;
  bool parse(std::span<const std::byte> in);
};

// Create, find and reserve; find and reserve use the identity alone.
struct TableRequest {
  TableId id = kNoTable;
  TableSpec spec;

  void write(Rpc::Bytes& out) const;
  bool parse(std::span<const std::byte> in);
};

void write_table_meta(const TableMeta& meta, Rpc::Bytes& out);
bool parse_table_meta(std::span<const std::byte> in, TableMeta* meta);
void write_statistics(const NodeStatistics& statistics, Rpc::Bytes& out);
bool parse_statistics(std::span<const std::byte> in, NodeStatistics* statistics);
constexpr size_t kListedTablesMax = 3072;
void write_tables(std::span<const ListedTable> tables, Rpc::Bytes& out);
bool parse_tables(std::span<const std::byte> in, std::vector<ListedTable>* tables);

void write_table_size(const TableSize& size, Rpc::Bytes& out);
bool parse_table_size(std::span<const std::byte> in, TableSize* size);

void write_locked_headers(const LockedHeaders& locked, Rpc::Bytes& out);
bool parse_locked_headers(std::span<const std::byte> in, LockedHeaders* locked);

}  // namespace rdmacc
