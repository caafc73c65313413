// Rows of a table that no transaction knows of but the one that fills it: put in place by the owner
// without locks, stage or log. What goes wrong on the way leaves a table that its maker drops.

#include <algorithm>
#include <cstring>

#include "engine/storage/layout/overflow.h"
#include "engine/storage/owner/storage_node.h"

namespace rdmacc {

namespace {
constexpr uint32_t kRowsPerYield = 64;
// A split of the group is under way, or another transaction does what none may.
constexpr uint64_t kLockedUsMax = 2'000'000, kLockedPauseUs = 20;
constexpr int kReclaimTries = 3, kSlotTries = 64;
}  // namespace

Status StorageNode::handle_load_rows(WorkerId, Bytes bytes, Reply& reply) {
  LoadRowsMessage message;
  if (!message.parse(bytes)) return Status(Code::kInvalidArgument, "load: malformed request");
  uint32_t loaded = 0;
  for (const RowToLoad& row : message.rows) {
    bool exists = false;
    RDMACC_RETURN_IF_ERROR(load_row(message.load, row, &exists));
    if (exists) break;
    if (++loaded % kRowsPerYield == 0) worker_.scheduler().yield();
  }
  MessageWriter(reply).u32(loaded);
  return Status();
}

Status StorageNode::load_row(const LoadedRows& load, const RowToLoad& row, bool* exists) {
  const uint64_t hash = hash_key(load.table, row.key);
  HashIndexOwner::Place place;
  RDMACC_RETURN_IF_ERROR(find_unlocked_place(load, hash, place));
  if (load.check_absent) {
    *exists = std::any_of(place.same_tag.begin(), place.same_tag.end(), [&](uint64_t slot) {
      return holds_key(slot, load.table, hash, row.key);
    });
    if (*exists) return Status();
  }
  if (place.empty == 0) RDMACC_RETURN_IF_ERROR(index_.extend(load.table, hash, place));
  const DirectoryEntry& table = *directory_.live(load.table);
  Result<uint64_t> slot = take_quiet_slot(table, load.stamp);
  if (!slot.ok()) return slot.status();
  RDMACC_RETURN_IF_ERROR(write_loaded(load, row, hash, *slot));
  region_.store(place.entry, make_entry(hash, *slot));
  if (place.empty == 1) index_.note_full(load.table, place.group);
  return Status();
}

// Nothing here yields behind it: the place stays empty until it is used.
Status StorageNode::find_unlocked_place(const LoadedRows& load, uint64_t hash,
                                        HashIndexOwner::Place& place) {
  const uint64_t deadline_us = worker_.endpoint().now_us() + kLockedUsMax;
  while (true) {
    if (directory_.live(load.table) == nullptr) {
      return Status(Code::kNotFound, "table " + std::to_string(load.table) + " does not exist");
    }
    index_.find_place(load.table, hash, place);
    if (place.group == 0) return Status(Code::kCorrupt, "load: the index makes no sense");
    if (!place.locked) return Status();
    if (worker_.endpoint().now_us() >= deadline_us) {
      return Status(Code::kInvalidArgument, "load: another transaction uses the table");
    }
    worker_.scheduler().sleep_for(kLockedPauseUs);
  }
}

bool StorageNode::holds_key(uint64_t slot, TableId table, uint64_t hash,
                            std::string_view key) const {
  if (!arena_.in_use(PageKind::kSlot, slot)) return false;
  const Header header = region_.header(slot);
  const bool live = (header.flags & kFlagLive) != 0 && (header.flags & kFlagDeleted) == 0;
  if (!live || header.table != table || header.key_hash != hash) return false;
  uint64_t at = slot + kOffsetOfRecord;
  if ((header.flags & kFlagOverflow) != 0) {
    const uint64_t block = region_.load(at) & kLowOffsetMask;
    if (!arena_.in_use(PageKind::kOverflow, block)) return false;
    at = block + sizeof(OverflowHeader);
  }
  const uint64_t bytes = record_bytes(key.size(), 0);
  if (bytes > header.length || at + bytes > region_.bytes()) return false;
  uint32_t key_bytes = 0;
  memcpy(&key_bytes, region_.base() + at, sizeof(key_bytes));
  return key_bytes == key.size() &&
         memcmp(region_.base() + at + sizeof(key_bytes), key.data(), key.size()) == 0;
}

Result<uint64_t> StorageNode::take_unit(PageKind kind, uint64_t bytes) {
  Result<uint64_t> unit = arena_.allocate(kind, bytes);
  for (int i = 0; i < kReclaimTries && unit.status().code() == Code::kNoSpace; ++i) {
    if (reclaimer_.pending()) {
      reclaimer_.advance();
    } else if (reserved_slots_.take_back(ReservedSlots::OfTables::kAll) == 0) {
      break;
    }
    unit = arena_.allocate(kind, bytes);
  }
  return unit;
}

// One that no stale reader is at, and whose stamps never go back.
Result<uint64_t> StorageNode::take_quiet_slot(const DirectoryEntry& table, uint64_t stamp) {
  const uint64_t bytes = slot_bytes(table.record_size, table.history);
  for (int i = 0; i < kSlotTries; ++i) {
    Result<uint64_t> slot = take_unit(PageKind::kSlot, bytes);
    if (!slot.ok()) return slot;
    const Header header = region_.header(*slot);
    if (header.lock == 0 && header.wts < stamp && header.rts < stamp) return slot;
    CHECK(arena_.retire(*slot));
  }
  return Status(Code::kNoSpace, "no slot is free of its former life");
}

Status StorageNode::write_loaded(const LoadedRows& load, const RowToLoad& row, uint64_t hash,
                                 uint64_t slot) {
  const DirectoryEntry& table = *directory_.live(load.table);
  const uint64_t bytes = record_bytes(row.key.size(), row.row.size());
  std::vector<uint64_t> words(round_up(bytes, 8) / 8);
  auto* record = reinterpret_cast<char*>(words.data());
  const auto key_bytes = static_cast<uint32_t>(row.key.size());
  memcpy(record, &key_bytes, sizeof(key_bytes));
  memcpy(record + sizeof(key_bytes), row.key.data(), row.key.size());
  memcpy(record + sizeof(key_bytes) + row.key.size(), row.row.data(), row.row.size());
  uint32_t flags = kFlagLive;
  if (bytes > table.record_size) {
    Result<uint64_t> block = take_unit(PageKind::kOverflow, overflow_unit_bytes(words.size() * 8));
    if (!block.ok()) {
      CHECK(arena_.retire(slot));
      return block.status();
    }
    region_.store(*block + offsetof(OverflowHeader, capacity),
                  arena_.unit_bytes(*block) - sizeof(OverflowHeader));
    region_.store(*block + offsetof(OverflowHeader, owner_ctts), load.stamp);
    region_.store_words(*block + sizeof(OverflowHeader), words.data(), words.size());
    words.assign(1, *block);
    flags |= kFlagOverflow;
  }
  region_.bump_incarnation(slot, load.table);
  region_.store(slot, hash);
  region_.store(slot + kOffsetOfWts, load.stamp);
  region_.store_words(slot + kOffsetOfRecord, words.data(), words.size());
  region_.store(slot + kOffsetOfLength, pack_words(static_cast<uint32_t>(bytes), flags));
  if (table.history > 0) {
    region_.store(slot + versions_reference_place(table.record_size), kNoOlderVersion);
  }
  directory_.add_rows(load.table, 1);
  return Status();
}

}  // namespace rdmacc
