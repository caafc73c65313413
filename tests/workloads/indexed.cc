#include "tests/workloads/indexed.h"

#include <algorithm>
#include <optional>
#include <set>

#include "engine/index/index_loader.h"
#include "engine/index/index_scan.h"
#include "engine/index/ordered_index.h"
#include "tests/workloads/read_either.h"
#include "tests/workloads/write_either.h"

namespace rdmacc {
namespace {

constexpr uint32_t kFirstTableNumber = 31;
constexpr uint32_t kRecordSize = 48;
constexpr uint64_t kRowsMax = 3;        // that one transaction changes
constexpr uint32_t kTagsPerRecord = 2;  // so many tags there are
constexpr uint32_t kUnboundedPercent = 20;
constexpr uint32_t kLoadedPerTransaction = 8;
// A row is its attribute and its tag; texts of numbers all have the same length, as have keys.
constexpr size_t kDigits = 6;

enum class Kind : uint32_t { kToggle, kMove, kRange, kAudit };
constexpr uint32_t kKinds = 4;
enum Table : size_t { kRows, kByAttribute, kByTag, kTables };

std::string digits(uint64_t number) {
  std::string text = std::to_string(number);
  return std::string(kDigits - std::min(kDigits, text.size()), '0') + text;
}

struct IndexedRow {
  std::string attribute, tag;

  std::string encode() const { return attribute + tag; }
  static std::optional<IndexedRow> decode(std::string_view row) {
    if (row.size() != 2 * kDigits) return std::nullopt;
    return IndexedRow{std::string(row.substr(0, kDigits)), std::string(row.substr(kDigits))};
  }
  const std::string& of(Table index) const { return index == kByTag ? tag : attribute; }
};

// One attempt of one transaction; half of them change indexes at their end. Everything it does
// follows from its seed and what it sees.
class IndexedTransaction {
 public:
  IndexedTransaction(Session& session, const IndexedOptions& options,
                     std::span<const TableId> tables, uint64_t seed)
      : session_(session),
        options_(options),
        tables_(tables),
        random_(seed),
        filler_(options.filler_bytes, '.'),
        late_(random_.percent(50)) {}

  Status run(Kind kind) {
    RDMACC_RETURN_IF_ERROR(run_but_late_changes(kind));
    return make_late_changes();
  }

  Status run_but_late_changes(Kind kind) {
    switch (kind) {
      case Kind::kToggle:
        return change_rows(false);
      case Kind::kMove:
        return change_rows(true);
      case Kind::kRange:
        return read_range(random_.percent(50) ? kByAttribute : kByTag);
      case Kind::kAudit:
        return audit();
    }
    return Status(Code::kInvalidArgument, "no such kind of transaction");
  }

  // Rows of every second key, as a new index is made for rows that are there.
  Status load(uint64_t rows) {
    std::set<std::string> tags, entries[kTables];
    for (uint64_t i = 0; i < rows; i++) {
      const std::string key = digits(2 * i);
      const IndexedRow row{draw_attribute(), draw_tag()};
      if (!tags.insert(row.tag).second) continue;
      RDMACC_RETURN_IF_ERROR(session_.insert(tables_[kRows], key, row.encode()));
      for (const Table table : {kByAttribute, kByTag})
        entries[table].insert(entry_of(table, row, key));
    }
    for (const Table table : {kByAttribute, kByTag}) {
      IndexLoader loader(session_, IndexRef{tables_[table], options_.covers});
      for (const std::string& entry : entries[table]) RDMACC_RETURN_IF_ERROR(loader.add(entry));
      RDMACC_RETURN_IF_ERROR(loader.finish());
    }
    return Status();
  }

  // Adds the row unless its tag is taken.
  Status add(const std::string& key) {
    const IndexedRow row{draw_attribute(), draw_tag()};
    bool taken = false;
    RDMACC_RETURN_IF_ERROR(look_for_tag(row.tag, taken));
    if (taken) return Status();
    RDMACC_RETURN_IF_ERROR(expect(session_.insert(tables_[kRows], key, row.encode()), key));
    RDMACC_RETURN_IF_ERROR(insert(kByAttribute, row, key));
    return insert(kByTag, row, key);
  }

  // As before a commit: those of an index in the order of its entries.
  Status make_late_changes() {
    for (const Table table : {kByAttribute, kByTag})
      RDMACC_RETURN_IF_ERROR(make_late_changes(table));
    return Status();
  }

  const std::string& doubt() const { return doubt_; }

 private:
  struct LateChange {
    EntryChange::Kind kind;
    std::string entry;
  };

  std::string draw_attribute() { return digits(random_.below(options_.attributes)); }
  std::string draw_tag() {
    return digits(random_.below(uint64_t{options_.records} * kTagsPerRecord));
  }
  std::string entry_of(Table index, const IndexedRow& row, std::string_view key) const {
    return row.of(index) + filler_ + std::string(key);
  }
  void note(std::string doubt) {
    if (doubt_.empty()) doubt_ = std::move(doubt);
  }
  // A write that what was seen allows.
  Status expect(Status status, const std::string& what) {
    if (status.code() != Code::kNotFound && status.code() != Code::kDuplicateKey) return status;
    note("what was seen of " + what + " was not so: " + status.to_string());
    return Status();
  }
  OrderedIndex index(Table table) {
    return OrderedIndex(session_, IndexRef{tables_[table], options_.covers});
  }
  LeafAccess draw_access() { return random_.percent(50) ? LeafAccess::kLock : LeafAccess::kRead; }
  Status insert(Table table, const IndexedRow& row, std::string_view key) {
    return change(table, EntryChange::Kind::kInsert, entry_of(table, row, key));
  }
  Status remove(Table table, const IndexedRow& row, std::string_view key) {
    return change(table, EntryChange::Kind::kRemove, entry_of(table, row, key));
  }
  Status change(Table table, EntryChange::Kind kind, std::string entry) {
    if (late_) {
      late_changes_[table].push_back({kind, std::move(entry)});
      return Status();
    }
    const EntryChange change{kind, entry};
    return expect(index(table).change({&change, 1}, draw_access()), entry);
  }
  Status make_late_changes(Table table) {
    std::vector<LateChange> late = std::exchange(late_changes_[table], {});
    if (late.empty()) return Status();
    std::stable_sort(late.begin(), late.end(),
                     [](const auto& a, const auto& b) { return a.entry < b.entry; });
    std::vector<EntryChange> changes;
    for (const LateChange& each : late) changes.push_back({each.kind, each.entry});
    return expect(index(table).change(changes, draw_access()), late.front().entry + " and so on");
  }

  Status scan(Table table, IndexRange range, bool backward, std::vector<std::string>& entries) {
    RDMACC_RETURN_IF_ERROR(make_late_changes(table));
    IndexScan cursor;
    cursor.seek(IndexRef{tables_[table], options_.covers}, std::move(range), backward);
    std::vector<std::string_view> batch;
    do {
      RDMACC_RETURN_IF_ERROR(cursor.next(session_, batch));
      entries.insert(entries.end(), batch.begin(), batch.end());
    } while (!batch.empty());
    if (backward) std::reverse(entries.begin(), entries.end());
    const auto wrong = std::adjacent_find(entries.begin(), entries.end(), std::greater_equal<>());
    if (wrong != entries.end()) note("a scan gave " + *wrong + " out of order");
    return Status();
  }

  Status look_for_tag(const std::string& tag, bool& taken) {
    std::vector<std::string> entries;
    const IndexRange range{tag + filler_, tag + filler_ + "~", true, true};
    RDMACC_RETURN_IF_ERROR(scan(kByTag, range, random_.percent(50), entries));
    if (entries.size() > 1) note("tag " + tag + " is there twice");
    taken = !entries.empty();
    return Status();
  }

  Status change_rows(bool moves) {
    for (uint64_t i = 1 + random_.below(kRowsMax); i > 0; i--) {
      const std::string key = digits(random_.below(options_.records));
      RowView view;
      RDMACC_RETURN_IF_ERROR(session_.get(tables_[kRows], key, view));
      if (!view.found) {
        RDMACC_RETURN_IF_ERROR(add(key));
        continue;
      }
      const std::optional<IndexedRow> row = IndexedRow::decode(view.row);
      if (!row) return Status(Code::kCorrupt, "a row of " + key);
      RDMACC_RETURN_IF_ERROR(moves ? move(key, *row) : drop(key, *row));
    }
    return Status();
  }

  Status drop(const std::string& key, const IndexedRow& row) {
    RDMACC_RETURN_IF_ERROR(remove(kByAttribute, row, key));
    RDMACC_RETURN_IF_ERROR(remove(kByTag, row, key));
    return expect(remove_either(session_, tables_[kRows], key), key);
  }

  Status move(const std::string& key, const IndexedRow& row) {
    IndexedRow moved{draw_attribute(), draw_tag()};
    bool taken = false;
    RDMACC_RETURN_IF_ERROR(look_for_tag(moved.tag, taken));
    if (taken) moved.tag = row.tag;
    for (const Table index : {kByAttribute, kByTag}) {
      if (moved.of(index) == row.of(index)) continue;
      RDMACC_RETURN_IF_ERROR(remove(index, row, key));
      RDMACC_RETURN_IF_ERROR(insert(index, moved, key));
    }
    return expect(put_either(session_, tables_[kRows], key, moved.encode()), key);
  }

  Status read_range(Table table) {
    const uint64_t values =
        table == kByTag ? uint64_t{options_.records} * kTagsPerRecord : options_.attributes;
    uint64_t low = random_.below(values), high = random_.below(values + 1);
    if (high < low) std::swap(low, high);
    if (options_.span > 0) high = std::min<uint64_t>(high, low + options_.span);
    const uint32_t unbounded = options_.span > 0 ? 0 : kUnboundedPercent;
    const IndexRange range{digits(low), digits(high), !random_.percent(unbounded),
                           !random_.percent(unbounded)};
    std::vector<std::string> entries;
    RDMACC_RETURN_IF_ERROR(scan(table, range, random_.percent(50), entries));
    std::vector<std::string_view> keys;
    for (const std::string& entry : entries) {
      const bool inside =
          (!range.low_bounded || entry >= range.low) && (!range.high_bounded || entry < range.high);
      if (!inside) note("a scan gave " + entry + " outside of its range");
      keys.push_back(std::string_view(entry).substr(entry.size() - kDigits));
    }
    std::vector<RowView> rows(keys.size());
    RDMACC_RETURN_IF_ERROR(read_either(session_, tables_[kRows], keys, read_batch_, rows));
    for (size_t i = 0; i < rows.size(); i++) {
      const std::optional<IndexedRow> row = IndexedRow::decode(rows[i].row);
      const bool named = rows[i].found && row && entries[i] == entry_of(table, *row, keys[i]);
      if (!named) note("the entry " + entries[i] + " names no row");
    }
    return Status();
  }

  Status audit() {
    std::vector<std::string> expected[kTables];
    RDMACC_RETURN_IF_ERROR(for_each_row(session_, tables_[kRows], [&](const RowView& view) {
      const std::optional<IndexedRow> row = IndexedRow::decode(view.row);
      if (!row) return Status(Code::kCorrupt, "a row");
      for (const Table index : {kByAttribute, kByTag}) {
        expected[index].push_back(entry_of(index, *row, view.key));
      }
      return Status();
    }));
    for (const Table index : {kByAttribute, kByTag}) {
      std::sort(expected[index].begin(), expected[index].end());
      std::vector<std::string> entries;
      RDMACC_RETURN_IF_ERROR(scan(index, IndexRange{}, random_.percent(50), entries));
      if (entries != expected[index]) {
        note("index " + std::to_string(index) + " has " + std::to_string(entries.size()) +
             " entries, which are not those of the " + std::to_string(expected[index].size()) +
             " rows");
      }
    }
    return Status();
  }

  Session& session_;
  const IndexedOptions& options_;
  const std::span<const TableId> tables_;
  Random random_;
  const std::string filler_;
  const bool late_;  // changes of indexes wait for the end, or the next scan
  std::vector<LateChange> late_changes_[kTables];
  ReadBatch read_batch_;
  std::string doubt_;
};

constexpr std::array kSettings = {
    WorkloadSetting{"records", nullptr, "keys of rows that there may be", 2, 100'000, 40},
    WorkloadSetting{"attributes", nullptr, "values that many rows share", 1, 100'000, 12},
    WorkloadSetting{"filler", nullptr, "bytes of an entry that say nothing", 0, 4'000, 40},
    WorkloadSetting{"reads", nullptr, "percent of the transactions that only read", 0, 100, 30},
    WorkloadSetting{"audits", nullptr, "percent of those that read all", 0, 100, 10},
    WorkloadSetting{"span", nullptr, "values of a range, at most; 0: any", 0, 100'000, 0},
    WorkloadSetting{"sorted", nullptr,
                    "1: indexes are loaded with sorted entries, in one transaction", 0, 1, 0},
    kHistorySetting,
};

Result<std::unique_ptr<Workload>> make_indexed(const WorkloadSettings& settings,
                                               const WorkloadCluster&) {
  IndexedOptions options;
  options.records = settings.number32("records");
  options.attributes = settings.number32("attributes");
  options.filler_bytes = settings.number32("filler");
  options.read_only_percent = settings.number32("reads");
  options.audit_percent = settings.number32("audits");
  options.span = settings.number32("span");
  options.sorted = settings.number32("sorted") != 0;
  options.history = settings.number32("history");
  return Result<std::unique_ptr<Workload>>(std::make_unique<Indexed>(options));
}

}  // namespace

const WorkloadKind kIndexedKind = {"indexed", "rows that two ordered indexes are kept of",
                                   kSettings, make_indexed};

Indexed::Indexed(const IndexedOptions& options) : options_(options) {
  CHECK(options.records > 0 && options.attributes > 0);
}

std::vector<TableSpec> Indexed::table_specs() const {
  std::vector<TableSpec> specs;
  for (uint32_t i = 0; i < kTables; ++i) {
    specs.push_back(native_table(kFirstTableNumber + i, i == kRows ? kRecordSize : kIndexRecordSize,
                                 options_.history));
  }
  return specs;
}

Status Indexed::load_at_once(Session& session, const TxnOptions& options) {
  return retry_aborted(session.scheduler(), [&]() -> Status {
    RDMACC_RETURN_IF_ERROR(session.begin(options));
    IndexedTransaction transaction(session, options_, tables(), options_.records);
    RDMACC_RETURN_IF_ERROR(abort_unless_ok(session, transaction.load(options_.records / 2)));
    return abort_unless_ok(session, session.commit());
  });
}

// Every second key has a row at first, unless the tag drawn for it is taken.
Status Indexed::load(Session& session, const TxnOptions& options, uint64_t part, uint64_t parts) {
  if (options_.sorted) return part == 0 ? load_at_once(session, options) : Status();
  const uint64_t rows = options_.records / 2, end = rows * (part + 1) / parts;
  for (uint64_t first = rows * part / parts; first < end; first += kLoadedPerTransaction) {
    const auto add_some = [&]() -> Status {
      RDMACC_RETURN_IF_ERROR(session.begin(options));
      for (uint64_t i = first; i < std::min(first + kLoadedPerTransaction, end); i++) {
        IndexedTransaction transaction(session, options_, tables(), i);
        RDMACC_RETURN_IF_ERROR(abort_unless_ok(session, transaction.add(digits(2 * i))));
        RDMACC_RETURN_IF_ERROR(abort_unless_ok(session, transaction.make_late_changes()));
      }
      return abort_unless_ok(session, session.commit());
    };
    RDMACC_RETURN_IF_ERROR(retry_aborted(session.scheduler(), add_some));
  }
  return Status();
}

TxnInputs Indexed::draw(Random& random) const {
  Kind kind = random.percent(50) ? Kind::kToggle : Kind::kMove;
  if (random.percent(options_.read_only_percent)) {
    kind = random.percent(options_.audit_percent) ? Kind::kAudit : Kind::kRange;
  }
  TxnInputs inputs;
  inputs.kind = static_cast<uint32_t>(kind);
  inputs.add(random.next());
  return inputs;
}

bool Indexed::knows(const TxnInputs& inputs) const {
  return inputs.kind < kKinds && inputs.count == 1;
}

Status Indexed::execute(Session& session, const TxnInputs& inputs, TxnEffect& effect) const {
  IndexedTransaction transaction(session, options_, tables(), inputs.values[0]);
  const Status status = transaction.run(static_cast<Kind>(inputs.kind));
  effect.doubt = transaction.doubt();
  return status;
}

Status Indexed::check(Session& session, const TxnOptions& options, int64_t,
                      std::string& violation) const {
  RDMACC_RETURN_IF_ERROR(session.begin(options));
  IndexedTransaction transaction(session, options_, tables(), 0);
  RDMACC_RETURN_IF_ERROR(abort_unless_ok(session, transaction.run(Kind::kAudit)));
  RDMACC_RETURN_IF_ERROR(abort_unless_ok(session, session.commit()));
  violation = transaction.doubt();
  return Status();
}

}  // namespace rdmacc
