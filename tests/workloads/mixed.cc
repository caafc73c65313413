#include "tests/workloads/mixed.h"

#include <map>
#include <optional>
#include <set>

#include "engine/txn/transaction/detached_transaction.h"

#include "engine/workloads/bulk_load.h"
#include "tests/workloads/read_either.h"
#include "tests/workloads/write_either.h"

namespace rdmacc {
namespace {

constexpr uint32_t kTables = 2;
constexpr uint32_t kFirstTableNumber = 11;
constexpr uint32_t kRecordSize = 64;
constexpr uint32_t kUserAborts = 1, kReadOnly = 2;  // kinds of transactions
constexpr uint64_t kReads = 50;                     // of 100 operations only read
constexpr uint64_t kFillMax = 150;                  // some rows fit kRecordSize, some overflow

std::string key_of(uint64_t number) { return "k" + std::to_string(number); }

// "<key>=<length>:" and then that many times, 0 .. kFillMax, one letter: a row that mixes two
// versions' bytes, or has the bytes of one and the length of another, does not look like one.
std::string row_for(std::string_view key, Random& random) {
  const uint64_t fill = random.below(kFillMax + 1);
  std::string row(key);
  row += '=' + std::to_string(fill) + ':';
  row.append(fill, static_cast<char>('a' + random.below(26)));
  return row;
}

bool whole(std::string_view key, std::string_view row) {
  const size_t colon = row.find(':');
  if (colon == row.npos) return false;
  const std::string_view fill = row.substr(colon + 1);
  const std::string head = std::string(key) + '=' + std::to_string(fill.size());
  return row.substr(0, colon) == head &&
         fill.find_first_not_of(fill.empty() ? 'a' : fill[0]) == fill.npos;
}

Status check_row(std::string_view key, std::string_view row) {
  if (whole(key, row)) return Status();
  return Status(Code::kCorrupt,
                "the row of " + std::string(key) + " is torn: \"" + std::string(row) + "\"");
}

// One attempt of one transaction; everything it does follows from its seed.
class MixedTransaction {
 public:
  MixedTransaction(Session& session, const MixedOptions& options, std::span<const TableId> tables,
                   const TxnInputs& inputs)
      : session_(session),
        options_(options),
        tables_(tables),
        kinds_(inputs.kind == kReadOnly ? kReads : 100),
        random_(inputs.values[0]) {}

  // See TxnEffect: another has deleted the row.
  const std::string& doubt() const { return doubt_; }
  using Place = std::pair<TableId, std::string>;
  // Keys that it writes, or would if other rows were there.
  const std::set<Place>& written() const { return written_; }

  Status run() {
    const uint64_t operations = 1 + random_.below(options_.operations_max);
    for (uint64_t i = 0; i < operations; ++i) {
      session_.set_command(static_cast<uint32_t>(i + 1));
      RDMACC_RETURN_IF_ERROR(operate());
    }
    return Status();
  }

 private:
  using OwnWrites = std::map<Place, std::optional<std::string>>;  // nothing: deleted
  struct Savepoint {
    uint32_t level;
    OwnWrites before;
  };

  Place draw_place() {
    return {tables_[random_.below(tables_.size())], key_of(random_.below(options_.keys))};
  }

  Status operate() {
    const uint64_t drawn = random_.below(kinds_);
    if (drawn < options_.scan_percent) return scan();
    if (drawn < 40) return get(draw_place());
    if (drawn < kReads) return get_many();
    if (drawn < 70) return put(draw_place());
    if (drawn < 82) return insert(draw_place());
    if (drawn < 92) return remove(draw_place());
    return savepoint();
  }

  Status compare(const Place& place, const RowView& view) const {
    if (view.found) RDMACC_RETURN_IF_ERROR(check_row(place.second, view.row));
    const auto own = own_.find(place);
    if (own == own_.end()) return Status();
    const bool same =
        view.found == own->second.has_value() && (!view.found || view.row == *own->second);
    return same ? Status()
                : Status(Code::kCorrupt, "own write of " + place.second + " was not seen");
  }

  Status get(const Place& place) {
    RowView view;
    RDMACC_RETURN_IF_ERROR(session_.get(place.first, place.second, view));
    return compare(place, view);
  }

  Status get_many() {
    const TableId table = draw_place().first;
    std::vector<Place> places;
    const uint64_t first = random_.below(options_.keys);
    const uint64_t count = std::min<uint64_t>(2 + random_.below(3), options_.keys);
    for (uint64_t i = 0; i < count; ++i) {
      places.push_back({table, key_of((first + i) % options_.keys)});
    }
    std::vector<std::string_view> keys;
    for (const Place& place : places) keys.push_back(place.second);
    std::vector<RowView> views(keys.size());
    RDMACC_RETURN_IF_ERROR(read_either(session_, table, keys, read_batch_, views));
    for (size_t i = 0; i < places.size(); ++i) {
      RDMACC_RETURN_IF_ERROR(compare(places[i], views[i]));
    }
    return Status();
  }

  // What a write of a key that this transaction wrote before must give.
  Status note(const Place& place, Status status, Code refusal, bool needs_live,
              std::optional<std::string> row) {
    if (!status.ok() && status.code() != refusal) return status;
    const auto own = own_.find(place);
    if (own != own_.end() && (own->second.has_value() == needs_live) != status.ok()) {
      return Status(Code::kCorrupt, "a write of " + place.second + " after an own write gave " +
                                        status.to_string());
    }
    if (status.ok()) own_[place] = std::move(row);
    return Status();
  }

  Status put(const Place& place) {
    written_.insert(place);
    std::string row = row_for(place.second, random_);
    const Status status = put_either(session_, place.first, place.second, row);
    return note(place, status, Code::kNotFound, true, std::move(row));
  }
  Status insert(const Place& place) {
    written_.insert(place);
    std::string row = row_for(place.second, random_);
    const Status status = session_.insert(place.first, place.second, row);
    return note(place, status, Code::kDuplicateKey, false, std::move(row));
  }
  Status remove(const Place& place) {
    written_.insert(place);
    return note(place, remove_either(session_, place.first, place.second), Code::kNotFound, true,
                std::nullopt);
  }

  Status scan() {
    const TableId table = draw_place().first;
    Result<ScanHandle> cursor = session_.scan(table);
    if (!cursor.ok()) return cursor.status();
    std::map<Place, bool> seen;
    std::vector<RowView> batch;
    do {
      RDMACC_RETURN_IF_ERROR(session_.scan_next(**cursor, batch));
      for (const RowView& view : batch) {
        const Place place{table, std::string(view.key)};
        if (!seen.try_emplace(place, true).second) {
          return Status(Code::kCorrupt, "a scan gave " + place.second + " twice");
        }
        RDMACC_RETURN_IF_ERROR(compare(place, view));
      }
    } while (!batch.empty());
    for (const auto& [place, row] : own_) {
      if (place.first == table && row.has_value() && !seen.contains(place)) {
        doubt_ = "a scan did not see the own write of " + place.second;
      }
    }
    return Status();
  }

  Status savepoint() {
    if (savepoints_.empty() || random_.percent(50)) {
      savepoints_.push_back({session_.savepoint(), own_});
      return Status();
    }
    const size_t at = random_.below(savepoints_.size());
    if (random_.percent(30)) {
      session_.release(savepoints_[at].level);
    } else {
      session_.rollback_to(savepoints_[at].level);
      own_ = savepoints_[at].before;
    }
    savepoints_.resize(at);
    return Status();
  }

  Session& session_;
  const MixedOptions& options_;
  const std::span<const TableId> tables_;
  const uint64_t kinds_;  // below which an operation's kind is drawn
  Random random_;
  ReadBatch read_batch_;
  OwnWrites own_;
  std::set<Place> written_;
  std::vector<Savepoint> savepoints_;
  std::string doubt_;
};

constexpr std::array kSettings = {
    WorkloadSetting{"records", "keys", "keys that come and go in each table", 1, 1'000'000, 10},
    WorkloadSetting{"operations", nullptr, "at most, of a transaction", 1, 100, 6},
    WorkloadSetting{"scans", nullptr, "percent of the operations that are scans", 0, 100, 5},
    kHistorySetting,
};

Result<std::unique_ptr<Workload>> make_mixed(const WorkloadSettings& settings,
                                             const WorkloadCluster&) {
  MixedOptions options;
  options.keys = settings.number32("records");
  options.operations_max = settings.number32("operations");
  options.scan_percent = settings.number32("scans");
  options.history = settings.number32("history");
  return Result<std::unique_ptr<Workload>>(std::make_unique<Mixed>(options));
}

}  // namespace

const WorkloadKind kMixedKind = {"mixed", "every operation of a session, on few keys", kSettings,
                                 make_mixed};

std::vector<TableSpec> Mixed::table_specs() const {
  std::vector<TableSpec> specs;
  for (uint32_t i = 0; i < kTables; ++i) {
    specs.push_back(native_table(kFirstTableNumber + i, kRecordSize, options_.history));
  }
  return specs;
}

// Every other key is there at first.
Status Mixed::load(Session& session, const TxnOptions& options, uint64_t part, uint64_t parts) {
  Random random(part + 1);
  for (uint64_t k = part * 2; k < options_.keys; k += parts * 2) {
    for (const TableId table : tables()) {
      const std::string key = key_of(k);
      RDMACC_RETURN_IF_ERROR(insert_alone(session, options, table, key, row_for(key, random)));
    }
  }
  return Status();
}

TxnInputs Mixed::draw(Random& random) const {
  TxnInputs inputs;
  inputs.kind = random.percent(options_.user_abort_percent) ? kUserAborts : 0;
  if (options_.read_only_percent > 0 && random.percent(options_.read_only_percent)) {
    inputs.kind = kReadOnly;
  }
  inputs.add(random.next());
  return inputs;
}

Status Mixed::execute(Session& session, const TxnInputs& inputs, TxnEffect& effect) const {
  effect.rollback = inputs.kind == kUserAborts;
  MixedTransaction transaction(session, options_, tables(), inputs);
  const Status status = transaction.run();
  effect.doubt = transaction.doubt();
  return status;
}

// Keys follow from the inputs alone, so that a run on no rows at all touches those of every other.
bool Mixed::declare(const TxnInputs& inputs, KeyDeclaration& keys) const {
  DetachedTransaction nothing(nullptr, DetachedTransaction::Ungiven::kAbsent);
  Session session(nothing);
  MixedTransaction transaction(session, options_, tables(), inputs);
  if (!transaction.run().ok()) return false;  // it would scan
  for (const KeyState& state : nothing.keys().all()) {
    if (state.key.size() > kDeclaredKeyBytesMax) return false;
  }
  for (const KeyState& state : nothing.keys().all()) {
    const bool writes = transaction.written().contains({state.table, std::string(state.key)});
    keys.add(state.table, state.key, writes ? KeyUse::kWrite : KeyUse::kRead);
  }
  return true;
}

// Every row that is there at the end belongs to its key and is whole.
Status Mixed::check(Session& session, const TxnOptions& options, int64_t,
                    std::string& violation) const {
  violation.clear();
  for (const TableId table : tables()) {
    RDMACC_RETURN_IF_ERROR(session.begin(options));
    for (uint64_t k = 0; k < options_.keys; ++k) {
      const std::string key = key_of(k);
      RowView view;
      RDMACC_RETURN_IF_ERROR(abort_unless_ok(session, session.get(table, key, view)));
      if (!view.found) continue;
      const Status whole = check_row(key, view.row);
      if (!whole.ok()) violation = whole.message();
    }
    RDMACC_RETURN_IF_ERROR(abort_unless_ok(session, session.commit()));
  }
  return Status();
}

}  // namespace rdmacc
