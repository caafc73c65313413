#include "tests/sim/second_life/lone_session.h"

#include <algorithm>

#include "engine/log/log_entry.h"
#include "engine/log/log_record.h"
#include "engine/protocols/registry.h"
#include "engine/storage/layout/hash_index.h"
#include "engine/workloads/workload.h"

namespace rdmacc {
namespace {

constexpr uint32_t kAttempts = 60;  // of one transaction, while a node splits groups
constexpr uint64_t kPauseUs = 1'000;
constexpr uint32_t kLeftOutMax = 20;
constexpr uint32_t kTwinsDrawn = 30'000;
constexpr size_t kKnownKeys = 10, kNewKeys = 8;
constexpr uint64_t kOperationsMax = 20;
constexpr uint64_t kShortBytesMax = 100, kLongBytesMax = 900;
constexpr uint64_t kSystemId = 0x10'7E;
constexpr const char* kFresh = "fresh";  // keys that are inserted without a look
constexpr size_t kWholeSegments = 3;
static_assert(kWholeSegments * kLogSegmentBytes > kInlinePayloadMax);

}  // namespace

LoneSession::LoneSession(Session& session, const TxnOptions& txn, TableId table, uint64_t seed)
    : session_(session),
      txn_(txn),
      in_order_(executes_procedures(txn.protocol)),
      table_(table),
      random_(seed) {}

Status LoneSession::run(uint32_t transactions, std::string& violation) {
  RDMACC_RETURN_IF_ERROR(retry_aborted(session_.scheduler(), [this] { return learn(); }));
  for (uint32_t t = 0; t < transactions && violation_.empty(); ++t) {
    Status status;
    const Random drawn = random_;  // every attempt is the same transaction
    const size_t keys = keys_.size();
    for (uint32_t i = 0; i < kAttempts; ++i) {
      random_ = drawn;
      keys_.resize(keys);
      status = attempt();
      if (session_.active()) session_.abort();
      if (status.code() != Code::kAborted || !violation_.empty()) break;
      session_.scheduler().sleep_for(kPauseUs);
    }
    expect(status.code() != Code::kAborted, "loses again and again: " + status.to_string());
    if (!status.ok() && violation_.empty()) return status;
  }
  if (violation_.empty()) RDMACC_RETURN_IF_ERROR(compare_all());
  if (violation_.empty()) RDMACC_RETURN_IF_ERROR(look_at_locks({}, false));
  if (violation_.empty()) RDMACC_RETURN_IF_ERROR(look_at_tables());
  if (violation_.empty() && !in_order_) {
    RDMACC_RETURN_IF_ERROR(retry_aborted(session_.scheduler(), [this] { return fill_segments(); }));
  }
  violation = violation_;
  return Status();
}

// What the table has, and which keys to use.
Status LoneSession::learn() {
  rows_.clear();
  RDMACC_RETURN_IF_ERROR(session_.begin(txn_));
  RDMACC_RETURN_IF_ERROR(
      abort_unless_ok(session_, for_each_row(session_, table_, [this](const RowView& row) {
                        rows_.emplace(row.key, row.row);
                        return Status();
                      })));
  RDMACC_RETURN_IF_ERROR(abort_unless_ok(session_, session_.commit()));
  keys_.clear();
  const size_t step = 1 + rows_.size() / kKnownKeys;
  size_t i = 0;
  for (const auto& [key, row] : rows_) {
    if (i++ % step == 0) keys_.push_back(key);
  }
  for (size_t n = 0; n < kNewKeys; ++n) keys_.push_back("lone" + std::to_string(n));
  keys_.push_back("lone" + std::string(kLongBytesMax, 'g'));  // takes a block of its own
  add_twins();
  return Status();
}

// Two keys of one bucket that have the same tag: where one is, the other is looked for in its
// record.
void LoneSession::add_twins() {
  std::map<uint64_t, std::string> known;
  const NodeId nodes = session_.topology().nodes;
  for (uint32_t i = 0; i < kTwinsDrawn; ++i) {
    const std::string key = "twin" + std::to_string(i);
    const uint64_t hash = hash_key(table_, key);
    const uint64_t place =
        (uint64_t{home_node_of(table_, key, nodes)} << 32) | (uint64_t{tag_of(hash)} << 16) |
        (home_bucket_of(hash) << kInitialDepth) | group_bits_of(hash, kInitialDepth);
    const auto [twin, fresh] = known.try_emplace(place, key);
    if (fresh) continue;
    keys_.insert(keys_.end(), {twin->second, key});
    return;
  }
}

Status LoneSession::attempt() {
  own_.clear();
  touched_.clear();
  command_ = level_ = 0;
  RDMACC_RETURN_IF_ERROR(session_.begin(txn_));
  const uint64_t operations = 1 + random_.below(kOperationsMax);
  for (uint64_t i = 0; i < operations && violation_.empty(); ++i) {
    session_.set_command(++command_);
    RDMACC_RETURN_IF_ERROR(operate());
  }
  if (!violation_.empty() || random_.percent(15)) return Status();  // the caller aborts it
  return end();
}

Status LoneSession::operate() {
  const uint64_t drawn = random_.below(100);
  const std::string key = draw_key();
  if (drawn < 14) return read(key);
  if (drawn < 20) return read_many();
  if (drawn < 44) return write(key);
  if (drawn < 49) return insert_unchecked();
  if (drawn < 58) return lock(key);
  if (drawn < 68) return scan(/*writes=*/random_.percent(60));
  if (drawn < 76) return hint(key);
  if (drawn < 80) return session_.check_reads();
  savepoints();
  return Status();
}

Status LoneSession::read(const std::string& key) {
  RowView view;
  const uint32_t before = draw_before();
  RDMACC_RETURN_IF_ERROR(session_.get(table_, key, view, before));
  check_view(key, before, view, "get");
  return Status();
}

Status LoneSession::read_many() {
  std::vector<std::string> keys;
  for (uint64_t i = 1 + random_.below(6); i > 0; --i) keys.push_back(draw_key());
  const std::vector<std::string_view> asked(keys.begin(), keys.end());
  std::vector<RowView> views(keys.size());
  const uint32_t before = draw_before();
  RDMACC_RETURN_IF_ERROR(read_either(session_, table_, asked, read_batch_, views, before));
  for (size_t i = 0; i < keys.size(); ++i) check_view(keys[i], before, views[i], how(asked));
  return Status();
}

Status LoneSession::write(const std::string& key) {
  const bool there = visible(key, kEveryCommand) != nullptr;
  const std::string row = draw_row(key);
  const uint64_t drawn = random_.below(4);
  const bool inserts = drawn == 0 || (drawn == 1 && !there);
  const bool removes = drawn == 2;
  Status status;
  if (inserts) status = session_.insert(table_, key, row);
  if (removes) status = remove_either(session_, table_, key);
  if (drawn == 3) status = session_.amend(table_, key, row);
  if (drawn == 1 && there) status = put_either(session_, table_, key, row);
  touched_.insert(key);
  const Code refusal = inserts ? Code::kDuplicateKey : Code::kNotFound;
  if (!status.ok() && status.code() != refusal) return status;
  expect(status.ok() == (inserts != there), "a write of " + key + " gave " + status.to_string());
  if (!status.ok()) return Status();
  own_.push_back({key, command_, level_, removes ? std::nullopt : std::optional(row)});
  return Status();
}

Status LoneSession::insert_unchecked() {
  const std::string key = kFresh + std::to_string(++last_number_);
  const std::string row = draw_row(key);
  RDMACC_RETURN_IF_ERROR(session_.insert_unchecked(table_, key, row));
  own_.push_back({key, command_, level_, row});
  keys_.push_back(key);
  return Status();
}

// A row that is locked need not be written.
Status LoneSession::lock(const std::string& key) {
  const auto mode = random_.percent(60) ? RowLockMode::kExclusive : RowLockMode::kShare;
  Result<RowLock> got = session_.try_lock(table_, key, mode);
  if (!got.ok()) return got.status();
  // A node may hold it for a moment.
  if (*got == RowLock::kBusy) return aborted(AbortReason::kLockHeld);
  const bool there = rows_.contains(key);
  expect((*got == RowLock::kGot) == there, "try_lock of " + key + " found it wrongly");
  if (!there || mode != RowLockMode::kExclusive || in_order_) return Status();
  if (random_.percent(30)) return look_at_locks(key, true);
  return Status();
}

// Own writes between the batches are not seen, whatever the scan has met before: as an UPDATE of
// many rows does.
Status LoneSession::scan(bool writes) {
  using enum ScanMode;
  const ScanMode modes[] = {kSerializable, kNoWait, kSkipLocked, kAsStored, kQuiet};
  const uint32_t before = draw_before();
  const ScanMode mode = left_out_ > 0 ? kSkipLocked : modes[random_.below(std::size(modes))];
  Result<ScanHandle> cursor = session_.scan(table_, before, mode);
  if (!cursor.ok()) return cursor.status();
  writes = writes && before != kEveryCommand;
  Rows seen;
  std::vector<RowView> batch;
  do {
    if (writes && !batch.empty()) RDMACC_RETURN_IF_ERROR(write(draw_key()));
    RDMACC_RETURN_IF_ERROR(session_.scan_next(**cursor, batch));
    for (const RowView& view : batch) {
      const std::string key(view.key);
      expect(seen.emplace(key, view.row).second, "a scan gave " + key + " twice");
    }
  } while (!batch.empty());
  const Rows there = all_visible(before);
  // A node that cleans up may hold a row for a moment; the next scan has to find it.
  const bool left_out = mode == ScanMode::kSkipLocked && seen.size() < there.size() &&
                        std::includes(there.begin(), there.end(), seen.begin(), seen.end());
  left_out_ = left_out ? left_out_ + 1 : 0;
  if (left_out && left_out_ < kLeftOutMax) return aborted(AbortReason::kLockHeld);
  expect(seen == there, "a scan gave " + std::to_string(seen.size()) + " rows, not the " +
                            std::to_string(there.size()) + " there are");
  return Status();
}

Status LoneSession::hint(const std::string& key) {
  RowView view;
  if (random_.percent(50)) {
    const uint32_t before = draw_before();
    const bool known = session_.read_own_sets(table_, key, view, before);
    if (known) check_view(key, before, view, "read_own_sets");
    expect(known || !touched_.contains(key), key + " is forgotten");
    return Status();
  }
  const auto base = rows_.find(key);
  RDMACC_RETURN_IF_ERROR(session_.unvalidated_read(table_, key, view));
  expect(view.found == (base != rows_.end()), "whether there is " + key);
  if (!view.found || base == rows_.end()) return Status();
  expect(view.row == base->second, "an unvalidated read of " + key);
  session_.keep_unvalidated_read(table_, key, view.row);
  RDMACC_RETURN_IF_ERROR(session_.kept_unvalidated_read(table_, key, view));
  expect(view.found && view.row == base->second, "what is kept of " + key);
  return Status();
}

void LoneSession::savepoints() {
  if (level_ == 0 || random_.percent(50)) {
    level_ = session_.savepoint();
    return;
  }
  const auto level = static_cast<uint32_t>(1 + random_.below(level_));
  if (random_.percent(50)) {
    session_.release(level);
    for (Own& own : own_) own.level = std::min(own.level, level - 1);
  } else {
    session_.rollback_to(level);
    std::erase_if(own_, [level](const Own& own) { return own.level >= level; });
  }
  level_ = level - 1;
}

Status LoneSession::end() {
  if (in_order_ || random_.percent(70)) {
    RDMACC_RETURN_IF_ERROR(session_.commit());
  } else {
    RDMACC_RETURN_IF_ERROR(session_.prepare(Gtid{kSystemId, ++last_number_}));
    if (session_.active() && random_.percent(30)) {
      session_.abort();
      return Status();
    }
    if (session_.active()) RDMACC_RETURN_IF_ERROR(session_.commit_prepared());
  }
  rows_ = all_visible(kEveryCommand);
  return Status();
}

// What an operator is shown: the row of this key alone is held, or nothing is.
Status LoneSession::look_at_locks(std::string_view key, bool held) {
  bool found = false;
  uint64_t others = 0;
  for (NodeId node = 0; node < session_.topology().nodes; ++node) {
    uint64_t from = 0;
    do {
      Result<LockedHeaders> some = session_.locked_headers(node, from);
      if (!some.ok()) return some.status();
      for (const LockedHeader& header : some->headers) {
        const bool row = header.table == table_ && !header.gap && header.live;
        found = found || (row && header.key_hash == hash_key(table_, key));
        others += row ? 1 : 0;
      }
      from = some->next;
    } while (from != 0);
  }
  expect(held ? found : others == 0,
         held ? "a held lock is not listed" : "a row is listed as held");
  return Status();
}

// A table with the largest rows and the longest history that there may be, by its identity.
Status LoneSession::look_at_tables() {
  TableSpec spec;
  spec.system_id = kSystemId;
  spec.database = 5;
  spec.relfilenode = 6;
  spec.record_size = kRecordInlineMax;
  spec.history = kHistoryMax;
  Result<TableMeta> made = session_.create_table(spec);
  if (!made.ok()) return made.status();
  Result<std::vector<ListedTable>> all = session_.list_tables();
  if (!all.ok()) return all.status();
  bool listed = false;
  for (const ListedTable& each : *all) {
    listed = listed || (each.id == made->id && each.system_id == spec.system_id &&
                        each.database == spec.database && each.relfilenode == spec.relfilenode);
  }
  expect(listed, "a table is not listed as what it was made");
  Result<TableSize> size = session_.table_size(table_);
  if (!size.ok()) return size.status();
  expect(size->rows >= rows_.size() && size->bytes > 0, "the table's size");
  return session_.drop_table(made->id);
}

// A row whose log record takes a whole number of segments.
Status LoneSession::fill_segments() {
  const std::string key = "segments";
  RowView view;
  RDMACC_RETURN_IF_ERROR(session_.begin(txn_));
  RDMACC_RETURN_IF_ERROR(abort_unless_ok(session_, session_.get(table_, key, view)));
  if (!view.found) {
    RDMACC_RETURN_IF_ERROR(abort_unless_ok(session_, session_.insert(table_, key, "")));
  }
  RDMACC_RETURN_IF_ERROR(abort_unless_ok(session_, session_.commit()));
  LogRecord update;
  update.writes.resize(1);
  const size_t others = encoded_bytes(update) + record_bytes(key.size(), 0);
  const std::string row(kWholeSegments * kLogSegmentBytes - others, 's');
  RDMACC_RETURN_IF_ERROR(session_.begin(txn_));
  RDMACC_RETURN_IF_ERROR(abort_unless_ok(session_, session_.put(table_, key, row)));
  RDMACC_RETURN_IF_ERROR(abort_unless_ok(session_, session_.commit()));
  RDMACC_RETURN_IF_ERROR(session_.begin(txn_));
  RDMACC_RETURN_IF_ERROR(abort_unless_ok(session_, session_.get(table_, key, view)));
  expect(view.found && view.row == row, "a row of whole log segments");
  return abort_unless_ok(session_, session_.commit());
}

Status LoneSession::compare_all() {
  own_.clear();
  return retry_aborted(session_.scheduler(), [this] {
    RDMACC_RETURN_IF_ERROR(session_.begin(txn_));
    command_ = 1;
    RDMACC_RETURN_IF_ERROR(abort_unless_ok(session_, scan(/*writes=*/false)));
    return abort_unless_ok(session_, session_.commit());
  });
}

// ---- What must be

const std::string* LoneSession::visible(const std::string& key, uint32_t before) const {
  for (auto own = own_.rbegin(); own != own_.rend(); ++own) {
    if (own->key != key || own->command >= before) continue;
    return own->row ? &*own->row : nullptr;
  }
  const auto base = rows_.find(key);
  return base == rows_.end() ? nullptr : &base->second;
}

LoneSession::Rows LoneSession::all_visible(uint32_t before) const {
  Rows rows = rows_;
  for (const Own& own : own_) {
    if (own.command >= before) continue;
    rows.erase(own.key);
    if (own.row) rows.emplace(own.key, *own.row);
  }
  return rows;
}

void LoneSession::check_view(const std::string& key, uint32_t before, const RowView& view,
                             const char* what) {
  if (!key.starts_with(kFresh) && what != kInBatch) touched_.insert(key);
  const std::string* row = visible(key, before);
  expect(view.found == (row != nullptr), std::string(what) + " of " + key + " found it wrongly");
  if (!view.found || row == nullptr) return;
  expect(view.row == *row, std::string(what) + " of " + key + " gave another row");
  expect(view.node == home_node_of(table_, key, session_.topology().nodes), "the node of " + key);
}

void LoneSession::expect(bool holds, const std::string& what) {
  if (!holds && violation_.empty()) violation_ = "a session alone: " + what;
}

const std::string& LoneSession::draw_key() { return keys_[random_.below(keys_.size())]; }

std::string LoneSession::draw_row(const std::string& key) {
  const uint64_t bytes = random_.percent(15) ? kLongBytesMax : kShortBytesMax;
  return key + std::string(random_.below(bytes), static_cast<char>('a' + random_.below(26)));
}

uint32_t LoneSession::draw_before() {
  return random_.percent(60) ? kEveryCommand : 1 + static_cast<uint32_t>(random_.below(command_));
}

}  // namespace rdmacc
