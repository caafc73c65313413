#include "tests/sim/growing/fresh_tables.h"

#include <set>

#include "engine/index/ordered_index.h"
#include "engine/workloads/bulk_load.h"
#include "tests/sim/growing/fresh_index.h"

namespace rdmacc {
namespace {

constexpr uint32_t kTableNumber = 71, kFirstFreshNumber = 10'000, kFirstIndexNumber = 20'000;
constexpr uint32_t kRecordSize = 40;  // less than some rows
constexpr uint32_t kMakePercent = 35, kUsePercent = 45;
constexpr uint32_t kIndexPercent = 25, kFillAgainPercent = 10;
constexpr uint64_t kEntriesMax = 120;
constexpr size_t kTablesMax = 40;
constexpr uint64_t kPauseUsMax = 200;

uint64_t number_in(std::string_view row) {
  return std::strtoull(std::string(row).c_str(), nullptr, 10);
}

// A row of a fresh table names its key, so that bytes of another row, or of none, are seen.
std::string row_of(std::string_view key, uint64_t value, Random& random) {
  std::string row = std::to_string(value) + "=" + std::string(key);
  if (random.percent(20)) row.append(50, ' ');
  return row;
}

void look_at(std::string_view key, std::string_view row, std::string& doubt) {
  const size_t end_of_value = row.find('=');
  const bool named =
      end_of_value != std::string_view::npos && row.substr(end_of_value + 1, key.size()) == key;
  if (!named) doubt = "row \"" + std::string(row) + "\" of key " + std::string(key);
}

}  // namespace

std::vector<TableSpec> FreshTables::table_specs() const {
  return {native_table(kTableNumber, kRecordSize, options_.history)};
}

Status FreshTables::load(Session& session, const TxnOptions& options, uint64_t part, uint64_t) {
  for (uint64_t i = 0; i < options_.cells && part == 0; ++i) {
    RDMACC_RETURN_IF_ERROR(insert_alone(session, options, table(0), cell(i), "0"));
  }
  return Status();
}

TxnInputs FreshTables::draw(Random& random) const {
  TxnInputs inputs;
  inputs.kind = random.percent(kMakePercent) ? kMake : random.percent(kUsePercent) ? kUse : kCells;
  inputs.add(random.next());
  return inputs;
}

Status FreshTables::execute(Session& session, const TxnInputs& inputs, TxnEffect& effect) const {
  Random random(inputs.values[0]);
  uint64_t value = 0;
  if (inputs.kind == kMake && made_.size() < kTablesMax) return make(session, random, effect.doubt);
  if (inputs.kind == kUse) return use(session, random, effect.doubt);
  RDMACC_RETURN_IF_ERROR(change_cell(session, random, &value));
  return change_cell(session, random, &value);
}

Status FreshTables::change_cell(Session& session, Random& random, uint64_t* value) const {
  const std::string key = cell(random.below(options_.cells));
  RowView view;
  RDMACC_RETURN_IF_ERROR(session.get(table(0), key, view));
  if (!view.found) return Status(Code::kCorrupt, "a cell is missing");
  *value = number_in(view.row) + 1;
  return session.put(table(0), key, std::to_string(*value));
}

Status FreshTables::make(Session& session, Random& random, std::string& doubt) const {
  uint64_t value = 0;
  if (random.percent(50)) RDMACC_RETURN_IF_ERROR(change_cell(session, random, &value));
  const auto number = static_cast<uint32_t>(made_.size());
  made_.push_back(kNoTable);
  indexes_.push_back(kNoTable);
  auto created =
      session.create_table(native_table(kFirstFreshNumber + number, kRecordSize, options_.history));
  // Node 0 has forgotten the reservation: it was restarted in between.
  if (created.status().code() == Code::kInvalidArgument) return session.abort_on_conflict();
  // Another attempt, whose request was taken for lost, has made it.
  if (created.status().code() == Code::kDuplicateKey) return session.abort_on_conflict();
  if (!created.ok()) return created.status();
  const TableId made = made_[number] = created->id;
  uint64_t rows = 0;
  RDMACC_RETURN_IF_ERROR(fill(session, made, value, random, &rows));
  if (number % 2 == 0) RDMACC_RETURN_IF_ERROR(count_quietly(session, made, rows, doubt));
  if (random.percent(kFillAgainPercent)) return fill_again(session, made, random);
  if (random.percent(40)) {
    RDMACC_RETURN_IF_ERROR(random.percent(70) ? change_rows(session, made, random, doubt)
                                              : look_through(session, made, doubt));
    if (random.percent(30)) RDMACC_RETURN_IF_ERROR(fill(session, made, value, random, &rows));
  }
  if (random.percent(kIndexPercent)) {
    RDMACC_RETURN_IF_ERROR(make_index(session, number, random, doubt));
  }
  if (random.percent(70)) RDMACC_RETURN_IF_ERROR(change_cell(session, random, &value));
  std::string announced = std::to_string(made);
  if (indexes_[number] != kNoTable) announced += " " + std::to_string(indexes_[number]);
  return session.insert(table(0), announcement(number), announced);
}

// A key that is there already ends a load, which says which of its rows that is.
Status FreshTables::fill_again(Session& session, TableId made, Random& random) const {
  const std::string there = keys_.key(made, 'r', 0);
  const std::string key = keys_.key(made, 'd', 0);
  const bool first = random.percent(50);
  const std::vector<std::string_view> keys = {first ? there : key, first ? key : there};
  const std::vector<std::string_view> rows = {"0=", "0="};
  size_t duplicate = 2;
  const bool loads = session.may_load() && !session.has_met(made);
  const Status status = loads ? session.load_rows(made, keys, rows, true, &duplicate)
                              : session.insert_many(made, keys, rows, true, &duplicate);
  if (status.code() == Code::kDuplicateKey && duplicate == (first ? 0u : 1u)) {
    return session.abort_on_conflict();
  }
  if (!status.ok() && status.code() != Code::kDuplicateKey) return status;
  return Status(Code::kCorrupt, "a key that is there was loaded: " + status.to_string());
}

// Its number says how many entries it has.
Status FreshTables::make_index(Session& session, size_t number, Random& random,
                               std::string& doubt) const {
  const auto name = kFirstIndexNumber + static_cast<uint32_t>(number);
  auto created = session.create_table(native_table(name, kIndexRecordSize, options_.history));
  const Code refusal = created.status().code();
  if (refusal == Code::kInvalidArgument || refusal == Code::kDuplicateKey) {
    return session.abort_on_conflict();  // as of the table
  }
  if (!created.ok()) return created.status();
  indexes_[number] = created->id;
  const uint64_t entries = 1 + created->id % kEntriesMax;
  RDMACC_RETURN_IF_ERROR(fill_index(session, created->id, entries));
  return random.percent(30) ? read_index(session, created->id, entries, doubt) : Status();
}

Status FreshTables::use_index(Session& session, std::string_view announced,
                              std::string& doubt) const {
  const size_t space = announced.find(' ');
  if (space == std::string_view::npos) return Status();
  const auto index = static_cast<TableId>(number_in(announced.substr(space)));
  return read_index(session, index, 1 + index % kEntriesMax, doubt);
}

// Nothing else writes to a table that no other transaction has heard of.
Status FreshTables::count_quietly(Session& session, TableId made, uint64_t rows,
                                  std::string& doubt) const {
  auto cursor = session.scan(made, kEveryCommand, ScanMode::kQuiet);
  if (!cursor.ok()) return cursor.status();
  std::vector<RowView> batch;
  uint64_t seen = 0;
  do {
    RDMACC_RETURN_IF_ERROR(session.scan_next(**cursor, batch));
    seen += batch.size();
  } while (!batch.empty());
  if (seen != rows) {
    doubt = "a quiet scan gave " + std::to_string(seen) + " rows of " + std::to_string(rows);
  }
  return Status();
}

Status FreshTables::fill(Session& session, TableId made, uint64_t value, Random& random,
                         uint64_t* rows_filled) const {
  const bool again = session.has_met(made);
  const uint64_t batches = 1 + random.below(options_.batches_max);
  if (random.percent(50)) RDMACC_RETURN_IF_ERROR(session.expect_rows(made, random.below(4000)));
  for (uint64_t batch = 0; batch < batches; ++batch) {
    std::vector<std::string> keys, rows;
    const uint64_t count = 1 + random.below(options_.rows_max);
    for (uint64_t i = 0; i < count; ++i) {
      keys.push_back(keys_.key(made, again ? 'a' : 'r', batch << 20 | i));
      rows.push_back(row_of(keys.back(), value, random));
    }
    const std::vector<std::string_view> k(keys.begin(), keys.end()), r(rows.begin(), rows.end());
    const bool check_absent = random.percent(60);
    size_t duplicate = 0;
    RDMACC_RETURN_IF_ERROR(session.finish_load(&duplicate));
    const bool loads = session.may_load() && !session.has_met(made);
    RDMACC_RETURN_IF_ERROR(loads ? session.post_load(made, k, r, check_absent)
                                 : session.insert_many(made, k, r, check_absent, &duplicate));
    loads_ += loads ? 1 : 0;
    *rows_filled += count;
    session.scheduler().sleep_for(random.below(kPauseUsMax));
  }
  size_t duplicate = 0;
  return session.finish_load(&duplicate);
}

Status FreshTables::change_rows(Session& session, TableId of, Random& random,
                                std::string& doubt) const {
  for (int i = 0; i < 3; ++i) {
    const std::string key = keys_.key(of, 'r', random.below(options_.rows_max));
    RowView view;
    RDMACC_RETURN_IF_ERROR(session.get(of, key, view));
    if (view.found) look_at(key, view.row, doubt);
    const std::string row = row_of(key, random.below(100), random);
    Status status = !view.found          ? session.insert(of, key, row)
                    : random.percent(30) ? session.remove(of, key)
                                         : session.put(of, key, row);
    RDMACC_RETURN_IF_ERROR(status);
  }
  return Status();
}

Status FreshTables::look_through(Session& session, TableId of, std::string& doubt) const {
  std::set<std::string> seen;
  return for_each_row(session, of, [&](const RowView& row) {
    if (!seen.emplace(row.key).second) doubt = "a scan gave " + std::string(row.key) + " twice";
    look_at(row.key, row.row, doubt);
    return Status();
  });
}

// What is known of the table is not read by the protocol.
Status FreshTables::use(Session& session, Random& random, std::string& doubt) const {
  uint64_t value = 0;
  RowView view;
  if (random.percent(50)) {
    RDMACC_RETURN_IF_ERROR(session.get(table(0), cell(random.below(options_.cells)), view));
  }
  if (made_.empty()) return change_cell(session, random, &value);
  session.scheduler().sleep_for(random.below(kPauseUsMax));
  const std::string key = announcement(random.below(made_.size()));
  RDMACC_RETURN_IF_ERROR(session.unvalidated_read(table(0), key, view));
  if (!view.found) return change_cell(session, random, &value);
  const auto made = static_cast<TableId>(number_in(view.row));
  const std::string announced(view.row);
  RDMACC_RETURN_IF_ERROR(use_index(session, announced, doubt));
  if (random.percent(40)) RDMACC_RETURN_IF_ERROR(look_through(session, made, doubt));
  if (random.percent(70)) RDMACC_RETURN_IF_ERROR(change_rows(session, made, random, doubt));
  return random.percent(60) ? change_cell(session, random, &value) : Status();
}

Status FreshTables::settle(Session& session, const TxnOptions& options) {
  for (size_t i = 0; i < made_.size(); ++i) {
    if (made_[i] == kNoTable) continue;
    RowView view;
    const auto look = [&] {
      RDMACC_RETURN_IF_ERROR(session.begin(options));
      const Status got = session.get(table(0), announcement(i), view);
      const bool found = got.ok() && view.found;
      RDMACC_RETURN_IF_ERROR(abort_unless_ok(session, got));
      view.found = found;
      return abort_unless_ok(session, session.commit());
    };
    RDMACC_RETURN_IF_ERROR(retry_aborted(session.scheduler(), look));
    for (const TableId each : {made_[i], indexes_[i]}) {
      if (each == kNoTable) continue;
      if (view.found) {
        add_table(each);
      } else {
        RDMACC_RETURN_IF_ERROR(session.drop_table(each));
      }
    }
  }
  made_.clear();
  indexes_.clear();
  return Status();
}

// What must be there is checked of every workload alike (acknowledged_rows.h).
Status FreshTables::check(Session&, const TxnOptions&, int64_t, std::string& violation) const {
  violation.clear();
  return Status();
}

}  // namespace rdmacc
