// Rows of a table that no transaction knows of but the one that fills it: put in place by the owner
// without locks, stage or log. What goes wrong on the way leaves a table that its maker drops. A
// node that gets its rows back from disk puts them in place likewise; here they are read for it,
// too.

#include <algorithm>
#include <cstring>

#include "engine/storage/layout/overflow.h"
#include "engine/storage/owner/storage_node.h"

namespace rdmacc {

namespace {
constexpr uint32_t kRowsPerYield = 64;
// A split of the group is under way, or another transaction does what none may.
constexpr uint64_t kLockedUsMax = 2'000'000, kLockedPauseUs = 20;
// Rounds before memory is said to be used up; after so many of them, slots that workers keep.
constexpr int kRoomTries = 8, kReclaimTries = 4;
constexpr int kSlotTries = 64;
// Looks at a row that changes while it is read.
constexpr int kLooksMax = 4;
constexpr uint64_t kOffsetOfContents = offsetof(Superblock, contents);
static_assert(kOffsetOfContents % 8 == 0);

Status no_such_table(TableId id) {
  return Status(Code::kNotFound, "table " + std::to_string(id) + " does not exist");
}
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
  if (change_log_.loaded && loaded > 0) {
    RDMACC_RETURN_IF_ERROR(change_log_.loaded(message.load, std::span(message.rows).first(loaded)));
  }
  MessageWriter(reply).u32(loaded);
  return Status();
}

// Room first: to find some may yield, and the place that is found for the row must stay as it is
// until its entry is there.
Status StorageNode::load_row(const LoadedRows& load, const RowToLoad& row, bool* exists) {
  UnitsOfRow units;
  Status status(Code::kNoSpace);
  for (int i = 0; i < kRoomTries && status.code() == Code::kNoSpace; ++i) {
    if (i == kReclaimTries) reserved_slots_.take_back(ReservedSlots::OfTables::kAll);
    if (i > 0) reclaim_some();
    status = take_units_of_row(load, row, units);
    if (status.ok()) status = place_row(load, row, units, exists);
  }
  if (units.slot != 0) arena_.give_back(units.slot);
  if (units.block != 0) arena_.give_back(units.block);
  return status;
}

// What is missing of them. Does not yield.
Status StorageNode::take_units_of_row(const LoadedRows& load, const RowToLoad& row,
                                      UnitsOfRow& units) {
  const DirectoryEntry* table = directory_.live(load.table);
  if (table == nullptr) return no_such_table(load.table);
  for (int i = 0; i < kSlotTries && units.slot == 0; ++i) {
    auto slot = arena_.allocate(PageKind::kSlot, slot_bytes(table->record_size, table->history));
    if (!slot.ok()) return slot.status();
    units.slot = *slot;
    drop_unless_quiet(load, units);
  }
  if (units.slot == 0) return Status(Code::kNoSpace, "no slot is free of its former life");
  const uint64_t bytes = record_bytes(row.key.size(), row.row.size());
  if (bytes <= table->record_size || units.block != 0) return Status();
  auto block = arena_.allocate(PageKind::kOverflow, overflow_unit_bytes(round_up(bytes, 8)));
  if (block.ok()) units.block = *block;
  return block.status();
}

// A slot that a stale reader or writer is at, or whose stamps would go back, is none for the row.
void StorageNode::drop_unless_quiet(const LoadedRows& load, UnitsOfRow& units) {
  const Header header = region_.header(units.slot);
  if (header.lock == 0 && header.wts < load.stamp && header.rts < load.stamp) return;
  CHECK(arena_.retire(units.slot));
  units.slot = 0;
}

Status StorageNode::place_row(const LoadedRows& load, const RowToLoad& row, UnitsOfRow& units,
                              bool* exists) {
  const uint64_t hash = hash_key(load.table, row.key);
  HashIndexOwner::Place place;
  RDMACC_RETURN_IF_ERROR(find_unlocked_place(load, hash, place));
  // Nothing yields from here on: the place stays as it was found.
  if (load.check_absent) {
    *exists = std::any_of(place.same_tag.begin(), place.same_tag.end(), [&](uint64_t slot) {
      return holds_key(slot, load.table, hash, row.key);
    });
    if (*exists) return Status();
  }
  drop_unless_quiet(load, units);  // that may have yielded
  if (units.slot == 0) return Status(Code::kNoSpace, "a slot's former life has reached it");
  if (place.empty == 0) RDMACC_RETURN_IF_ERROR(index_.extend(load.table, hash, place));
  CHECK(place.entry != 0 && region_.load(place.entry) == 0);
  write_loaded(load, row, hash, units);
  region_.store(place.entry, make_entry(hash, units.slot));
  if (place.empty == 1) index_.note_full(place.group);
  units = {};
  return Status();
}

// Yields while the group is locked, and not after that.
Status StorageNode::find_unlocked_place(const LoadedRows& load, uint64_t hash,
                                        HashIndexOwner::Place& place) {
  const uint64_t deadline_us = worker_.endpoint().now_us() + kLockedUsMax;
  while (true) {
    if (directory_.live(load.table) == nullptr) {
      return no_such_table(load.table);
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
  const std::byte* const record = region_.base() + at;
  return key_bytes_of(record) == key.size() &&
         memcmp(record + kKeyLengthBytes, key.data(), key.size()) == 0;
}

void StorageNode::write_loaded(const LoadedRows& load, const RowToLoad& row, uint64_t hash,
                               const UnitsOfRow& units) {
  const DirectoryEntry& table = *directory_.live(load.table);
  const uint64_t slot = units.slot;
  const uint64_t bytes = record_bytes(row.key.size(), row.row.size());
  CHECK((bytes > table.record_size) == (units.block != 0));
  std::vector<uint64_t> words(round_up(bytes, 8) / 8);
  put_record(reinterpret_cast<char*>(words.data()), row.key, row.row);
  uint32_t flags = kFlagLive;
  if (units.block != 0) {
    region_.store(units.block + offsetof(OverflowHeader, capacity),
                  arena_.unit_bytes(units.block) - sizeof(OverflowHeader));
    region_.store(units.block + offsetof(OverflowHeader, owner_ctts), load.stamp);
    region_.store_words(units.block + sizeof(OverflowHeader), words.data(), words.size());
    words.assign(1, units.block);
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
}

// ---- Rows as a log on disk has them.

StorageService::Contents StorageNode::contents() const {
  return static_cast<Contents>(region_.load(kOffsetOfContents));
}

void StorageNode::set_contents(Contents contents) {
  CHECK(contents <= Contents::kOnDisk);
  region_.store(kOffsetOfContents, static_cast<uint64_t>(contents));
}

// False: there is none. What is locked may be in the middle of an install, where an update keeps
// the key's bytes, and an insert is linked when its record is whole.
bool StorageNode::read_row(uint64_t slot, std::string& record, StoredRow& row) const {
  for (int look = 0; look < kLooksMax; ++look) {
    const Header before = region_.header(slot);
    if ((before.flags & kFlagLive) == 0 || (before.flags & kFlagDeleted) != 0) return false;
    const DirectoryEntry* table = directory_.live(before.table);
    if (table == nullptr) return false;
    uint64_t at = slot + kOffsetOfRecord, room = table->record_size;
    if ((before.flags & kFlagOverflow) != 0) {
      const uint64_t block = region_.load(at) & kLowOffsetMask;
      if (!arena_.in_use(PageKind::kOverflow, block)) continue;
      at = block + sizeof(OverflowHeader);
      room = arena_.unit_bytes(block) - sizeof(OverflowHeader);
    }
    if (before.length < kKeyLengthBytes || before.length > room) continue;
    const uint64_t words = round_up(before.length, 8) / 8;
    std::vector<uint64_t> image(words);
    region_.load_words(at, image.data(), words);
    record.assign(reinterpret_cast<const char*>(image.data()), before.length);
    const Header after = region_.header(slot);
    const size_t key_bytes = key_bytes_of(record.data());
    if (key_bytes > record.size() - kKeyLengthBytes) continue;
    row.table = before.table;
    row.stamp = before.wts;
    row.key = std::string_view(record).substr(kKeyLengthBytes, key_bytes);
    row.row = std::string_view(record).substr(kKeyLengthBytes + key_bytes);
    if (hash_key(row.table, row.key) != before.key_hash) continue;
    const bool at_rest = !locked_exclusively(before.lock) && !locked_exclusively(after.lock) &&
                         before.wts == after.wts && before.incarnation == after.incarnation;
    if (at_rest || index_.linked(slot)) return true;
  }
  return false;
}

void StorageNode::rows_of_page(uint64_t page, const std::function<void(const StoredRow&)>& visit) {
  CHECK(page < arena_.page_count());
  std::string record;
  StoredRow row;
  arena_.for_each_unit(page, PageKind::kSlot, [&](uint64_t slot, bool used) {
    if (used && read_row(slot, record, row)) visit(row);
  });
}

Status StorageNode::restore_table(const ListedTable& table) {
  CHECK(contents() == Contents::kRestoring && table.id != kNoTable);
  const TableSpec spec{table.system_id,   table.database, table.relfilenode,
                       table.record_size, table.history,  table.has_distribution_key};
  RDMACC_RETURN_IF_ERROR(directory_.may_create(table.id, spec));
  Result<IndexRoot> root = index_.build(table.id);
  if (!root.ok()) return root.status();
  directory_.publish(table.id, spec, root->bits);
  return Status();
}

Status StorageNode::restore_row(const LoadedRows& load, const RowToLoad& row) {
  CHECK(contents() == Contents::kRestoring && row.node == region_.node());
  bool exists = false;
  return load_row(load, row, &exists);
}

}  // namespace rdmacc
