#include "tests/sim/door/door_transaction.h"

namespace rdmacc {
namespace {

constexpr uint64_t kFillMax = 120;  // most rows fit their record, some overflow
constexpr uint64_t kLargeMin = 62'000, kLargeMax = 140'000, kLargestMax = 400'000;
constexpr uint32_t kLargestPercent = 15;
constexpr uint64_t kReadKinds = 40;       // of 100 row operations only read
constexpr uint64_t kReadKindsOfAll = 45;  // of 100 others
constexpr uint64_t kPauseUsMax = 30;
constexpr uint64_t kSavesOfVisit = 4;

}  // namespace

Status DoorTransaction::run() {
  if (inputs_.kind == Door::kVisit) return visit();
  if (inputs_.kind != Door::kRowsAlone) RDMACC_RETURN_IF_ERROR(begin_with_guest());
  const uint64_t operations = 1 + random_.below(around_.options.operations_max);
  for (uint64_t i = 0; i < operations; ++i) {
    session_.set_command(static_cast<uint32_t>(i + 1));
    RDMACC_RETURN_IF_ERROR(operate());
  }
  rolls_back_ = inputs_.kind != Door::kReadOnly && random_.percent(10);
  return Status();
}

Status DoorTransaction::operate() {
  const bool reads = inputs_.kind == Door::kReadOnly;
  const uint32_t scans = around_.options.scan_percent;
  if (scans != 0 && inputs_.kind != Door::kRowsAlone && random_.percent(scans)) {
    return scan(draw_place().first, random_.percent(85) ? DoorOp::kScan : DoorOp::kScanSkipLocked);
  }
  const uint32_t locks = around_.options.lock_percent;
  if (locks != 0 && inputs_.kind == Door::kAll && random_.percent(locks)) {
    return lock_early(draw_place());
  }
  if (inputs_.kind == Door::kRowsAlone || random_.percent(50)) {
    return operate_on_rows(random_.below(reads ? kReadKinds : 100));
  }
  return operate_on_all(random_.below(reads ? kReadKindsOfAll : 100));
}

// What a procedure may do as well.
Status DoorTransaction::operate_on_rows(uint64_t drawn) {
  if (drawn < 22) return get(draw_place());
  if (drawn < kReadKinds) return get_many();
  if (drawn < 50) return write(DoorOp::kPut, draw_place());
  if (drawn < 60) return write(DoorOp::kInsert, draw_place());
  if (drawn < 70) return write(DoorOp::kRemove, draw_place());
  if (drawn < 76) return write(DoorOp::kAmend, draw_place());
  if (drawn < 80) return upsert(draw_place());
  if (drawn < 88) return load_rows();
  return save();
}

Status DoorTransaction::operate_on_all(uint64_t drawn) {
  const Place place = draw_place();
  if (drawn < 6) return scan(place.first, DoorOp::kScan);
  if (drawn < 11) return scan(place.first, DoorOp::kScanNoWait);
  if (drawn < 17) return scan(place.first, DoorOp::kScanSkipLocked);
  if (drawn < 24) return look(DoorOp::kUnvalidatedRead, place);
  if (drawn < 28) return look(DoorOp::kReadOwnSets, place);
  if (drawn < 36) return check_reads(place.first);
  if (drawn < 40) {
    note(DoorOp::kWideRead, place.first);
    session_.note_wide_read();
    return Status();
  }
  if (drawn < kReadKindsOfAll) {
    note(DoorOp::kDraw, place.first);
    random_ = Random(random_.next() ^ session_.draw_number());
    return Status();
  }
  if (drawn < 65) return lock(place);
  if (drawn < 90) return load_rows();
  if (drawn < 96) return give_up();
  session_.scheduler().sleep_for(random_.below(kPauseUsMax));
  return Status();
}

// Of the table that may be gone at any time.
Status DoorTransaction::visit() {
  const TableId table = around_.visited;
  if (table == kNoTable) return Status();
  session_.set_command(1);
  // Nothing in other tables: what is promised of a transaction ends with one of its tables.
  loaded_ = true;
  const uint64_t rows = 1 + random_.below(20);
  for (uint64_t i = 0; i < rows; ++i) {
    const std::string key = around_.keys.key(table, 'v', random_.below(64));
    if (i % 4 == 0) RDMACC_RETURN_IF_ERROR(get({table, key}));
    if (i % 4 == 1) RDMACC_RETURN_IF_ERROR(write(DoorOp::kRemove, {table, key}));
    if (i % 4 > 1) RDMACC_RETURN_IF_ERROR(write(DoorOp::kInsert, {table, key}));
  }
  for (uint64_t i = 0; i < rows; ++i) {
    const std::string key = around_.keys.key(table, 'n', load_number(inputs_) + i);
    RDMACC_RETURN_IF_ERROR(write(DoorOp::kInsertUnchecked, {table, key}));
  }
  if (random_.percent(70)) RDMACC_RETURN_IF_ERROR(write(DoorOp::kAmend, draw_place()));
  for (uint64_t i = 0; i < rows / 4; ++i) RDMACC_RETURN_IF_ERROR(operate());
  const std::string key = around_.keys.key(table, 'v', random_.below(64));
  if (random_.percent(50)) RDMACC_RETURN_IF_ERROR(lock({table, key}));
  if (random_.percent(50)) RDMACC_RETURN_IF_ERROR(look(DoorOp::kUnvalidatedRead, {table, key}));
  const std::array scans = {DoorOp::kScan, DoorOp::kScanNoWait, DoorOp::kScanSkipLocked};
  if (random_.percent(50)) RDMACC_RETURN_IF_ERROR(scan(table, scans[random_.below(3)]));
  for (uint64_t i = 0; i < kSavesOfVisit; ++i) RDMACC_RETURN_IF_ERROR(save());
  return random_.percent(30) ? give_up() : check_reads(table);
}

// A key that comes and goes, a row of a load that is known to be there, or one that this
// transaction has written.
DoorTransaction::Place DoorTransaction::draw_place() {
  if (inputs_.kind == Door::kVisit) {
    return {around_.visited, around_.keys.key(around_.visited, 'v', random_.below(64))};
  }
  if (!written_.empty() && random_.percent(20)) {
    auto at = written_.begin();
    std::advance(at, static_cast<ptrdiff_t>(random_.below(written_.size())));
    return *at;
  }
  if (inputs_.count > 2 && random_.percent(50)) {
    const uint64_t number = inputs_.values[2 + random_.below(inputs_.count - 2)];
    const TableId table = around_.tables[table_of_load(number)];
    return {table, around_.keys.key(table, 'r', number + random_.below(kRowsOfLoadMin))};
  }
  const TableId table = around_.tables[random_.below(around_.tables.size())];
  return {table, around_.keys.key(table, 'k', random_.below(around_.options.keys))};
}

std::string DoorTransaction::row_for(std::string_view key) {
  std::string row(key);
  row += ':';
  uint64_t fill = random_.below(kFillMax + 1);
  if (around_.options.large_percent != 0 && random_.percent(around_.options.large_percent)) {
    const uint64_t most = random_.percent(kLargestPercent) ? kLargestMax : kLargeMax;
    fill = kLargeMin + random_.below(most - kLargeMin);
  }
  row.append(fill, static_cast<char>('a' + random_.below(26)));
  return row;
}

Status DoorTransaction::check_row(const Place& place, const RowView& view) const {
  if (!view.found) return Status();
  const std::string head = place.second + ":";
  const std::string_view fill = view.row.substr(std::min(head.size(), view.row.size()));
  const bool whole = view.row.starts_with(head) &&
                     fill.find_first_not_of(fill.empty() ? 'a' : fill[0]) == fill.npos;
  if (whole) return Status();
  return Status(Code::kCorrupt,
                "the row of " + place.second + " is torn: \"" + std::string(view.row) + "\"");
}

}  // namespace rdmacc
