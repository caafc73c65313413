#include "engine/storage/owner/directory.h"

#include <algorithm>

namespace rdmacc {

namespace {

bool plausible(const DirectoryEntry& entry) {
  return entry.record_size >= kRecordSizeMin && entry.record_size <= kRecordInlineMax &&
         entry.record_size % 8 == 0 && entry.history <= kHistoryMax &&
         IndexRoot{entry.root}.depth() <= kDepthMax;
}

}  // namespace

DirectoryEntry* Directory::at(TableId id) const {
  return reinterpret_cast<DirectoryEntry*>(region_.base() + layout_.directory_entry(id));
}

Status Directory::open() {
  by_identity_.clear();
  rows_ = 0;
  for (uint32_t i = 0; i < kDirectoryEntries; ++i) {
    const DirectoryEntry& entry = *at(i);
    next_number_ = std::max(next_number_, number_of_table(entry.id) + 1);
    if (entry.state == TableState::kFree) continue;
    const bool known = entry.state == TableState::kLive || entry.state == TableState::kDropped;
    if (!known || entry.id % kDirectoryEntries != i || !plausible(entry)) {
      return Status(Code::kCorrupt, "directory entry " + std::to_string(i));
    }
    if (entry.state != TableState::kLive) continue;
    by_identity_[{entry.system_id, entry.database, entry.relfilenode}] = entry.id;
    rows_ += entry.rows;
  }
  return Status();
}

bool Directory::expired(const Reservation& reservation) const {
  return endpoint_.incarnation_of(reservation.by) != reservation.incarnation ||
         endpoint_.now_us() > reservation.until_us;
}

TableId Directory::promise(TableId id, const TableSpec& spec, WorkerId by) {
  at(id)->id = id;  // remembered across a restart: never given out again
  reservations_[id] = Reservation{identity_of(spec), by, endpoint_.incarnation_of(by),
                                  endpoint_.now_us() + kReservationUs};
  return id;
}

// The same table, whose memory is on its way back, is not made again.
Status Directory::not_dropped(TableId id, const TableSpec& spec) const {
  const DirectoryEntry& entry = *at(id);
  const bool same = entry.id == id && entry.state == TableState::kDropped &&
                    entry.system_id == spec.system_id && entry.database == spec.database &&
                    entry.relfilenode == spec.relfilenode;
  return same ? Status(Code::kNotFound, "the table has been dropped") : Status();
}

Result<TableId> Directory::reserve_wanted(TableId id, const TableSpec& spec, WorkerId by) {
  const bool distributed = (id & kDistributedTable) != 0;
  if (distributed != spec.has_distribution_key || number_of_table(id) == 0) {
    return Status(Code::kInvalidArgument, "table id " + std::to_string(id) + " is of another kind");
  }
  RDMACC_RETURN_IF_ERROR(not_dropped(id, spec));
  if (at(id)->state != TableState::kFree || reservations_.contains(id) ||
      entry_is_reserved(number_of_table(id))) {
    return Status(Code::kNoSpace, "table id " + std::to_string(id) + " or its entry is in use");
  }
  next_number_ = std::max(next_number_, number_of_table(id) + 1);
  return promise(id, spec, by);
}

Result<TableId> Directory::reserve(const TableSpec& spec, WorkerId by, TableId wanted) {
  std::erase_if(reservations_, [&](const auto& each) { return expired(each.second); });
  const Identity identity = identity_of(spec);
  if (by_identity_.contains(identity)) return Status(Code::kDuplicateKey, "table exists");
  for (const auto& [id, reservation] : reservations_) {
    if (reservation.identity == identity) {
      return Status(Code::kDuplicateKey, "table is being created by another session");
    }
  }
  if (wanted != kNoTable) return reserve_wanted(wanted, spec, by);
  for (uint32_t tried = 0; tried < kDirectoryEntries; ++tried) {
    const TableId number = next_number_;
    if (number == kNoTable || (number & kDistributedTable) != 0) break;  // 2^31 tables were created
    next_number_++;
    const TableId id = spec.has_distribution_key ? number | kDistributedTable : number;
    if (at(id)->state != TableState::kFree || entry_is_reserved(number)) continue;
    return promise(id, spec, by);
  }
  return Status(Code::kNoSpace, "node " + std::to_string(region_.node()) +
                                    ": table directory is full (" +
                                    std::to_string(kDirectoryEntries) + " tables)");
}

// For the table that had the number's directory entry a round of all entries ago.
bool Directory::entry_is_reserved(TableId number) const {
  const TableId before = number - kDirectoryEntries;
  return reservations_.contains(before) || reservations_.contains(before | kDistributedTable);
}

bool Directory::reserved(TableId id, const TableSpec& spec, WorkerId by) const {
  const auto found = reservations_.find(id);
  return found != reservations_.end() && found->second.by == by &&
         found->second.identity == identity_of(spec) && !expired(found->second);
}

void Directory::cancel_reservation(TableId id) { reservations_.erase(id); }

Status Directory::may_create(TableId id, const TableSpec& spec) const {
  if (id == kNoTable) return Status(Code::kInvalidArgument, "table id 0");
  if (by_identity_.contains(identity_of(spec))) return Status(Code::kDuplicateKey, "table exists");
  const DirectoryEntry& entry = *at(id);
  if (entry.state == TableState::kFree) return Status();
  RDMACC_RETURN_IF_ERROR(not_dropped(id, spec));
  const bool live = entry.state == TableState::kLive;
  if (entry.id == id && live) return Status(Code::kDuplicateKey, "table id is in use");
  return Status(Code::kNoSpace, "directory entry of table " + std::to_string(id) +
                                    " is taken by table " + std::to_string(entry.id));
}

void Directory::publish(TableId id, const TableSpec& spec, uint64_t root_bits) {
  DirectoryEntry* entry = at(id);
  CHECK(entry->state == TableState::kFree);
  CHECK(id != kNoTable);
  entry->system_id = spec.system_id;
  entry->database = spec.database;
  entry->relfilenode = spec.relfilenode;
  entry->record_size = spec.record_size;
  entry->history = spec.history;
  entry->root = root_bits;
  entry->rows = 0;
  entry->created_us = endpoint_.now_us();
  CHECK(plausible(*entry));
  reservations_.erase(id);
  next_number_ = std::max(next_number_, number_of_table(id) + 1);
  by_identity_[identity_of(spec)] = id;
  region_.store(layout_.directory_entry(id), id);  // a new id in a free entry, then the state
  set_state(id, TableState::kLive);
}

void Directory::set_state(TableId id, TableState state) {
  region_.store(layout_.directory_entry(id), pack_words(id, static_cast<uint32_t>(state)));
}

void Directory::set_dropped(TableId id) {
  const DirectoryEntry* entry = live(id);
  CHECK(entry != nullptr);
  rows_ -= std::min(rows_, entry->rows);
  by_identity_.erase({entry->system_id, entry->database, entry->relfilenode});
  set_state(id, TableState::kDropped);
}

void Directory::set_free(TableId id) {
  CHECK(present(id) != nullptr);
  set_state(id, TableState::kFree);
}

const DirectoryEntry* Directory::present(TableId id) const {
  const DirectoryEntry* entry = at(id);
  return id != kNoTable && entry->id == id && entry->state != TableState::kFree ? entry : nullptr;
}

const DirectoryEntry* Directory::live(TableId id) const {
  const DirectoryEntry* entry = present(id);
  return entry != nullptr && entry->state == TableState::kLive ? entry : nullptr;
}

TableId Directory::find(const TableSpec& identity) const {
  const auto found = by_identity_.find(identity_of(identity));
  return found == by_identity_.end() ? kNoTable : found->second;
}

std::vector<TableId> Directory::tables(TableState state) const {
  std::vector<TableId> ids;
  for (uint32_t i = 0; i < kDirectoryEntries; ++i) {
    if (at(i)->state == state) ids.push_back(at(i)->id);
  }
  return ids;
}

void Directory::set_root(TableId id, uint64_t root_bits) {
  CHECK(present(id) != nullptr);
  region_.store(layout_.directory_entry(id) + offsetof(DirectoryEntry, root), root_bits);
}

void Directory::add_rows(TableId id, int64_t change) {
  const DirectoryEntry* entry = present(id);
  if (entry == nullptr) return;
  // Counts drift when requests are lost; they never go below nothing.
  const auto rows = static_cast<int64_t>(entry->rows) + change;
  set_rows(id, static_cast<uint64_t>(std::max<int64_t>(0, rows)));
}

void Directory::set_rows(TableId id, uint64_t rows) {
  const DirectoryEntry* entry = present(id);
  if (entry == nullptr) return;
  if (entry->state == TableState::kLive) rows_ += rows - entry->rows;
  region_.store(layout_.directory_entry(id) + offsetof(DirectoryEntry, rows), rows);
}

}  // namespace rdmacc
