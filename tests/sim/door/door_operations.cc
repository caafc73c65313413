// Each operation of a session, as one of Door's transactions calls it.
#include "tests/sim/door/door_transaction.h"
#include "tests/workloads/read_either.h"
#include "tests/workloads/write_either.h"

namespace rdmacc {
namespace {

constexpr uint32_t kCutRowBytes = 24;  // mostly the key and its colon, and more
constexpr uint32_t kAsStoredPercent = 50;
constexpr uint32_t kFirstCommand = 1;  // none of the transaction's writes is of an earlier one

}  // namespace

Status DoorTransaction::get(const Place& place) {
  RowView view;
  note(DoorOp::kGet, place.first);
  if (random_.percent(15)) {
    RDMACC_RETURN_IF_ERROR(
        patiently([&] { return session_.get(place.first, place.second, view, kFirstCommand); }));
    if (!view.found || view.version != 0) return check_row(place, view);
    return Status(Code::kCorrupt, "an own write of a later command was seen: " + place.second);
  }
  RDMACC_RETURN_IF_ERROR(patiently([&] { return session_.get(place.first, place.second, view); }));
  RDMACC_RETURN_IF_ERROR(check_row(place, view));
  const auto own = own_.find(place);
  if (own == own_.end()) return Status();
  if (view.found == own->second.has_value() && (!view.found || view.row == *own->second)) {
    return Status();
  }
  return Status(Code::kCorrupt, "the own write of " + place.second + " was not seen");
}

Status DoorTransaction::get_many() {
  const TableId table = draw_place().first;
  std::vector<std::string> keys;
  const uint64_t wanted = 2 + random_.below(8);
  for (uint64_t i = 0; i < wanted; ++i) {
    const Place place = draw_place();
    if (place.first == table) keys.push_back(place.second);
  }
  const std::vector<std::string_view> asked(keys.begin(), keys.end());
  std::vector<RowView> views(keys.size());
  // Where many lock early, others read past the locks, or wait for them.
  const bool to_write = around_.options.lock_percent != 0 && random_.percent(30);
  const bool in_batch = !to_write && reads_in_batch(table, asked);
  ReadBatch batch;
  note(in_batch ? DoorOp::kReadBatch : DoorOp::kGetMany, table);
  RDMACC_RETURN_IF_ERROR(patiently([&] {
    return in_batch ? session_.read_batch(table, asked, batch, views)
                    : session_.get_many(table, asked, views, kEveryCommand, to_write);
  }));
  for (size_t i = 0; i < keys.size(); ++i) {
    RDMACC_RETURN_IF_ERROR(check_row({table, keys[i]}, views[i]));
  }
  return Status();
}

// Without a look by the protocol: what is seen need not be so.
Status DoorTransaction::look(DoorOp op, const Place& place) {
  RowView view;
  if (op == DoorOp::kReadOwnSets) {
    RDMACC_RETURN_IF_ERROR(get(place));
    note(op, place.first);
    const bool known = session_.read_own_sets(place.first, place.second, view);
    // A key that is known to be new is never asked for.
    if (known || written_.contains(place)) return check_row(place, view);
    return Status(Code::kCorrupt, "what was read of " + place.second + " is forgotten");
  }
  note(op, place.first);
  return session_.unvalidated_read(place.first, place.second, view);
}

// Rows with keys that are new, one load in each transaction.
Status DoorTransaction::load_rows() {
  const uint64_t number = load_number(inputs_);
  const TableId table = around_.tables[table_of_load(number)];
  const uint64_t rows =
      kRowsOfLoadMin + random_.below(std::min<uint64_t>(around_.options.rows_max, kRowsOfLoadMax));
  if (loaded_) return Status();
  loaded_ = true;
  for (uint64_t i = 0; i < rows; ++i) {
    const Place place{table, around_.keys.key(table, 'r', number + i)};
    RDMACC_RETURN_IF_ERROR(write(DoorOp::kInsertUnchecked, place));
  }
  return Status();
}

Status DoorTransaction::write(DoorOp op, const Place& place) {
  const auto& [table, key] = place;
  note(op, table);
  written_.insert(place);
  std::string row = row_for(key);
  Status status;
  if (op == DoorOp::kPut) status = put_either(session_, table, key, row);
  if (op == DoorOp::kInsert) status = session_.insert(table, key, row);
  if (op == DoorOp::kInsertUnchecked) status = session_.insert_unchecked(table, key, row);
  if (op == DoorOp::kRemove) status = remove_either(session_, table, key);
  if (op == DoorOp::kAmend) status = session_.amend(table, key, row);
  const bool inserts = op == DoorOp::kInsert || op == DoorOp::kInsertUnchecked;
  const Code refusal = inserts ? Code::kDuplicateKey : Code::kNotFound;
  if (!status.ok() && status.code() != refusal) return status;
  const auto own = own_.find(place);
  if (own != own_.end() && (own->second.has_value() != inserts) != status.ok()) {
    return Status(Code::kCorrupt,
                  "a write of " + key + " after an own write gave " + status.to_string());
  }
  if (!status.ok()) return Status();
  own_[place] = op == DoorOp::kRemove ? Noted() : Noted(std::move(row));
  return Status();
}

Status DoorTransaction::upsert(const Place& place) {
  RowView view;
  RDMACC_RETURN_IF_ERROR(session_.get(place.first, place.second, view));
  return write(view.found ? DoorOp::kPut : DoorOp::kInsert, place);
}

// A row that is locked is written, if only as it is.
Status DoorTransaction::lock(const Place& place) {
  const auto mode = random_.percent(60) ? RowLockMode::kExclusive : RowLockMode::kShare;
  note(DoorOp::kTryLock, place.first);
  Result<RowLock> locked = session_.try_lock(place.first, place.second, mode);
  if (!locked.ok()) return locked.status();
  if (*locked != RowLock::kGot || mode != RowLockMode::kExclusive) return Status();
  return write(DoorOp::kPut, place);
}

Status DoorTransaction::scan(TableId table, DoorOp op) {
  const bool only_reads = op == DoorOp::kScan && own_.empty() && shared_.percent(60);
  if (only_reads && session_.may_host() && shared_.percent(60)) return scan_with_guest(table);
  // Where many scan, some take every row as it is stored, of which nothing can be said.
  const bool as_stored = op == DoorOp::kScanSkipLocked && around_.options.scan_percent > 0 &&
                         random_.percent(kAsStoredPercent);
  // Without a word on what others write; which is drawn from nothing, so that old seeds stay.
  const ScanMode passing = own_.size() % 3 == 0 ? ScanMode::kQuiet : ScanMode::kSkipLocked;
  const ScanMode mode = op == DoorOp::kScan         ? ScanMode::kSerializable
                        : op == DoorOp::kScanNoWait ? ScanMode::kNoWait
                        : as_stored                 ? ScanMode::kAsStored
                                                    : passing;
  const bool cut = random_.percent(20);
  note(op, table);
  const ScanWants wants{.row_bytes_max = cut ? kCutRowBytes : kWholeRow,
                        .to_write = own_.size() % 2 == 0 && !only_reads};
  Result<ScanHandle> cursor = session_.scan(table, kEveryCommand, mode, wants);
  if (!cursor.ok()) return cursor.status();
  const std::map<Place, Noted> before = own_;
  std::set<std::string> seen;
  std::vector<RowView> batch;
  do {
    if (!batch.empty()) RDMACC_RETURN_IF_ERROR(write_scanned(table, batch));
    RDMACC_RETURN_IF_ERROR(patiently([&] { return session_.scan_next(**cursor, batch); }));
    for (const RowView& view : batch) {
      const Place place{table, std::string(view.key)};
      if (as_stored) continue;
      if (!seen.insert(place.second).second) {
        doubt_ = std::string(name_of(op)) + " gave " + place.second + " twice";
      }
      // check_row() wants the beginning.
      const bool begins = !cut || place.second.size() < kCutRowBytes;
      if (begins) RDMACC_RETURN_IF_ERROR(check_row(place, view));
    }
  } while (!batch.empty() && !random_.percent(5));
  if (!batch.empty() || op == DoorOp::kScanSkipLocked) return Status();
  for (const auto& [place, row] : before) {
    const auto now = own_.find(place);  // a rollback within the scan takes it back
    const bool changed_since = now == own_.end() || now->second.has_value() != row.has_value();
    if (place.first != table || changed_since) continue;
    if (row.has_value() == seen.contains(place.second)) continue;
    doubt_ = "a scan did not see the own write of " + place.second;
  }
  return Status();
}

// A row that the scan has just returned, as an UPDATE or DELETE of many rows does; and perhaps one
// of another place, which may be in the batch as well.
Status DoorTransaction::write_scanned(TableId table, const std::vector<RowView>& batch) {
  if (inputs_.kind == Door::kReadOnly || !random_.percent(30)) return Status();
  const Place place{table, std::string(batch[random_.below(batch.size())].key)};
  if (around_.options.lock_percent != 0 && random_.percent(50)) return lock_early(place);
  RDMACC_RETURN_IF_ERROR(write(random_.percent(70) ? DoorOp::kPut : DoorOp::kRemove, place));
  return random_.percent(20) ? write(DoorOp::kPut, draw_place()) : Status();
}

Status DoorTransaction::save() {
  const TableId table = draw_place().first;
  if (savepoints_.empty() || random_.percent(50)) {
    note(DoorOp::kSavepoint, table);
    savepoints_.push_back({session_.savepoint(), own_});
    // Of a short transaction the level would hardly ever end.
    if (random_.percent(40)) return Status();
    RDMACC_RETURN_IF_ERROR(write(DoorOp::kPut, draw_place()));
  }
  return end_level(table);
}

Status DoorTransaction::end_level(TableId table) {
  const size_t at = random_.below(savepoints_.size());
  if (random_.percent(40)) {
    note(DoorOp::kRelease, table);
    session_.release(savepoints_[at].level);
  } else {
    note(DoorOp::kRollbackTo, table);
    session_.rollback_to(savepoints_[at].level);
    own_ = savepoints_[at].before;
    // Or its locks stay until the end. Procedures have none.
    if (around_.options.lock_percent != 0 && inputs_.kind != Door::kRowsAlone &&
        random_.percent(70)) {
      RDMACC_RETURN_IF_ERROR(let_go());
    }
  }
  savepoints_.resize(at);
  return Status();
}

Status DoorTransaction::check_reads(TableId table) {
  note(DoorOp::kCheckReads, table);
  return session_.check_reads();
}

// The user cancels, or says that what was read does not fit together.
Status DoorTransaction::give_up() {
  const Place place = draw_place();
  RDMACC_RETURN_IF_ERROR(get(place));
  if (session_.draw_number() % 2 == 0) {
    note(DoorOp::kCancel, place.first);
    session_.cancel();
    return Status();
  }
  note(DoorOp::kAbortOnConflict, place.first);
  return session_.abort_on_conflict();
}

}  // namespace rdmacc
