#include "tests/workloads/predicate.h"

#include "engine/workloads/bulk_load.h"
#include "tests/workloads/read_either.h"
#include "tests/workloads/write_either.h"

namespace rdmacc {
namespace {

constexpr uint32_t kFirstTableNumber = 21;
constexpr uint32_t kRecordSize = 48;
constexpr uint32_t kTables = 2;
constexpr uint64_t kTransferMax = 20;

using Kind = PredicateKind;
constexpr uint64_t kWritingKinds = 5, kReadingKinds = 2;

// One attempt of one transaction; everything it does follows from its seed and what it sees.
class PredicateTransaction {
 public:
  PredicateTransaction(Session& session, const PredicateOptions& options,
                       std::span<const TableId> tables, uint64_t seed)
      : session_(session), options_(options), tables_(tables), random_(seed) {}

  Status run(Kind kind) {
    switch (kind) {
      case Kind::kQuota:
        return keep_quota();
      case Kind::kOnCall:
        return change_staff();
      case Kind::kPair:
        return change_pair();
      case Kind::kMove:
        return move();
      case Kind::kSettle:
        return settle();
      case Kind::kAudit:
        return audit();
      case Kind::kLookUp:
        return look_up();
    }
    return Status(Code::kInvalidArgument, "no such kind of transaction");
  }

  // See TxnEffect: what it read does not belong together.
  const std::string& doubt() const { return doubt_; }

 private:
  Status scan(size_t table) {
    Result<ScanHandle> cursor = session_.scan(tables_[table]);
    if (!cursor.ok()) return cursor.status();
    std::vector<RowView> batch;
    do {
      RDMACC_RETURN_IF_ERROR(session_.scan_next(**cursor, batch));
      for (const RowView& view : batch) {
        if (!rows_[table].try_emplace(std::string(view.key), view.row).second) {
          doubt_ = "a scan gave " + std::string(view.key) + " twice";
        }
      }
    } while (!batch.empty());
    return Status();
  }

  Status scan_both() {
    RDMACC_RETURN_IF_ERROR(scan(0));
    return scan(1);
  }

  Status look_up(size_t table, const std::vector<std::string>& keys) {
    const std::vector<std::string_view> asked(keys.begin(), keys.end());
    std::vector<RowView> views(keys.size());
    RDMACC_RETURN_IF_ERROR(read_either(session_, tables_[table], asked, read_batch_, views));
    for (size_t i = 0; i < keys.size(); ++i) {
      if (views[i].found) rows_[table].emplace(keys[i], views[i].row);
    }
    return Status();
  }

  // A write that what was seen allows. Refused, it shows that what was seen is true no longer.
  Status expect(Status status, const std::string& key) {
    if (status.code() != Code::kNotFound && status.code() != Code::kDuplicateKey) return status;
    doubt_ = "what was seen of " + key + " was not so: " + status.to_string();
    return Status();
  }
  Status insert(size_t table, const std::string& key, std::string_view row) {
    return expect(session_.insert(tables_[table], key, row), key);
  }
  Status remove(size_t table, const std::string& key) {
    return expect(remove_either(session_, tables_[table], key), key);
  }

  Status keep_quota() {
    const size_t table = random_.below(2);
    const uint64_t group = random_.below(options_.classes);
    RDMACC_RETURN_IF_ERROR(scan(table));
    const uint64_t there = count_rows(rows_, table, quota_prefix(group));
    if (there > options_.quota) doubt_ = "a quota is exceeded";
    const bool inserts = there < options_.quota;
    const uint64_t first = random_.below(2 * options_.quota);
    for (uint64_t i = 0; i < 2 * options_.quota; ++i) {
      const std::string key = quota_key(group, (first + i) % (2 * options_.quota));
      if (rows_[table].contains(key) == inserts) continue;
      return inserts ? insert(table, key, "1") : remove(table, key);
    }
    return Status();
  }

  Status change_staff() {
    RDMACC_RETURN_IF_ERROR(scan_both());
    const uint64_t there = count_rows(rows_, 0, "s") + count_rows(rows_, 1, "s");
    if (there == 0) doubt_ = "no row is on call";
    const bool leaves = there > 1;
    const size_t first_table = random_.below(2);
    const uint64_t first = random_.below(options_.staff);
    for (uint64_t i = 0; i < 2 * options_.staff; ++i) {
      const size_t table = (first_table + i / options_.staff) % 2;
      const std::string key = staff_key((first + i) % options_.staff);
      if (rows_[table].contains(key) != leaves) continue;
      return leaves ? remove(table, key) : insert(table, key, "1");
    }
    return Status();
  }

  Status change_pair() {
    const size_t own = random_.below(2);
    const std::string key = pair_key(random_.below(options_.pairs));
    RDMACC_RETURN_IF_ERROR(look_up(1 - own, {key}));
    RDMACC_RETURN_IF_ERROR(look_up(own, {key}));
    if (rows_[0].contains(key) && rows_[1].contains(key)) doubt_ = "both of " + key + " are there";
    if (rows_[own].contains(key)) return remove(own, key);
    return rows_[1 - own].contains(key) ? Status() : insert(own, key, "1");
  }

  Status move() {
    const std::string key = token_key(random_.below(options_.tokens));
    RDMACC_RETURN_IF_ERROR(look_up(0, {key}));
    RDMACC_RETURN_IF_ERROR(look_up(1, {key}));
    if (rows_[0].contains(key) == rows_[1].contains(key)) doubt_ = key + " is not in one table";
    if (!doubt_.empty()) return Status();
    const size_t from = rows_[0].contains(key) ? 0 : 1;
    RDMACC_RETURN_IF_ERROR(remove(from, key));
    return insert(1 - from, key, rows_[from].find(key)->second);
  }

  Status settle() {
    RDMACC_RETURN_IF_ERROR(audit());
    const uint64_t payer = random_.below(options_.tokens);
    const uint64_t payee = (payer + 1) % options_.tokens;
    const auto amount = static_cast<int64_t>(1 + random_.below(kTransferMax));
    RDMACC_RETURN_IF_ERROR(add(token_key(payer), -amount));
    return add(token_key(payee), amount);
  }

  Status add(const std::string& key, int64_t amount) {
    for (size_t table = 0; table < tables_.size(); ++table) {
      const auto row = rows_[table].find(key);
      if (row == rows_[table].end()) continue;
      const std::optional<int64_t> value = token_value(row->second);
      if (!value) continue;  // the audit has said so
      return expect(put_either(session_, tables_[table], key, std::to_string(*value + amount)),
                    key);
    }
    return Status();
  }

  Status audit() {
    RDMACC_RETURN_IF_ERROR(scan_both());
    note(predicate_violation(rows_, options_));
    return Status();
  }

  Status look_up() {
    const std::vector<std::string> keys = all_predicate_keys(options_);
    RDMACC_RETURN_IF_ERROR(look_up(0, keys));
    RDMACC_RETURN_IF_ERROR(look_up(1, keys));
    note(predicate_violation(rows_, options_));
    return Status();
  }

  void note(std::string violation) {
    if (doubt_.empty()) doubt_ = std::move(violation);
  }

  Session& session_;
  const PredicateOptions& options_;
  const std::span<const TableId> tables_;
  Random random_;
  ReadBatch read_batch_;
  PredicateRows rows_;
  std::string doubt_;
};

constexpr std::array kSettings = {
    WorkloadSetting{"records", "tokens", "tokens that move between the tables", 2, 1'000, 4},
    WorkloadSetting{"reads", nullptr, "percent of the transactions that only read", 0, 100, 20},
    kHistorySetting,
};

Result<std::unique_ptr<Workload>> make_predicate(const WorkloadSettings& settings,
                                                 const WorkloadCluster&) {
  PredicateOptions options;
  options.tokens = settings.number32("records");
  options.read_only_percent = settings.number32("reads");
  options.history = settings.number32("history");
  return Result<std::unique_ptr<Workload>>(std::make_unique<Predicate>(options));
}

}  // namespace

const WorkloadKind kPredicateKind = {"predicate", "transactions that decide by what is not there",
                                     kSettings, make_predicate};

Predicate::Predicate(const PredicateOptions& options) : options_(options) {
  CHECK(options.classes > 0 && options.quota > 0 && options.staff > 0 && options.pairs > 0);
  CHECK(options.tokens > 1);  // one settles with another
}

std::vector<TableSpec> Predicate::table_specs() const {
  std::vector<TableSpec> specs;
  for (uint32_t i = 0; i < kTables; ++i) {
    specs.push_back(native_table(kFirstTableNumber + i, kRecordSize, options_.history));
  }
  return specs;
}

// The first part loads the few rows of all.
Status Predicate::load(Session& session, const TxnOptions& options, uint64_t part, uint64_t) {
  if (part != 0) return Status();
  const PredicateRows rows = first_predicate_rows(options_);
  for (size_t table = 0; table < tables().size(); ++table) {
    for (const auto& [key, row] : rows[table]) {
      RDMACC_RETURN_IF_ERROR(insert_alone(session, options, tables()[table], key, row));
    }
  }
  return Status();
}

TxnInputs Predicate::draw(Random& random) const {
  TxnInputs inputs;
  inputs.kind = static_cast<uint32_t>(random.percent(options_.read_only_percent)
                                          ? kWritingKinds + random.below(kReadingKinds)
                                          : random.below(kWritingKinds));
  inputs.add(random.next());
  return inputs;
}

bool Predicate::knows(const TxnInputs& inputs) const {
  return inputs.kind < kWritingKinds + kReadingKinds && inputs.count == 1;
}

Status Predicate::execute(Session& session, const TxnInputs& inputs, TxnEffect& effect) const {
  PredicateTransaction transaction(session, options_, tables(), inputs.values[0]);
  const Status status = transaction.run(static_cast<Kind>(inputs.kind));
  effect.doubt = transaction.doubt();
  return status;
}

// Once nothing else runs, scans and look-ups of all keys agree that everything holds.
Status Predicate::check(Session& session, const TxnOptions& options, int64_t,
                        std::string& violation) const {
  violation.clear();
  for (const Kind kind : {Kind::kAudit, Kind::kLookUp}) {
    RDMACC_RETURN_IF_ERROR(session.begin(options));
    PredicateTransaction transaction(session, options_, tables(), 0);
    RDMACC_RETURN_IF_ERROR(abort_unless_ok(session, transaction.run(kind)));
    RDMACC_RETURN_IF_ERROR(abort_unless_ok(session, session.commit()));
    if (violation.empty()) violation = transaction.doubt();
  }
  return Status();
}

}  // namespace rdmacc
