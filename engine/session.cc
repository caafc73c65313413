#include "engine/session.h"

#include <algorithm>

#include "engine/protocols/calvin/order_client.h"
#include "engine/protocols/registry.h"
#include "engine/txn/detached_transaction.h"
#include "engine/txn/scan_cursor.h"

namespace rdmacc {

struct Coordinator::Impl {
  Impl(std::unique_ptr<Endpoint> endpoint, const Topology& topology, const EngineOptions& options,
       Scheduler::Options scheduler_options)
      : worker(std::move(endpoint), scheduler_options),
        state(worker, topology, options.replicas, options.write_set_bytes_max,
              options.location_cache_entries, options.unvalidated_read_cache_entries),
        rules_of_protocol(options.rules_of != nullptr ? options.rules_of : &rules_of),
        order(worker, topology) {
    state.order = &order;
  }

  Worker worker;
  CoordinatorState state;
  const RulesOf rules_of_protocol;
  OrderClient order;
};

Coordinator::Coordinator(std::unique_ptr<Endpoint> endpoint, const Topology& topology,
                         const EngineOptions& options, Scheduler::Options scheduler_options)
    : impl_(std::make_unique<Impl>(std::move(endpoint), topology, options, scheduler_options)) {}

// Transactions that are still under way refer to the state, so they end before it does.
Coordinator::~Coordinator() { impl_->worker.scheduler().unwind(); }

Worker& Coordinator::worker() { return impl_->worker; }
const Topology& Coordinator::topology() const { return impl_->state.engine.topology; }
WorkerStats& Coordinator::stats() { return impl_->state.stats; }
void Coordinator::set_observer(TxnObserver* observer) { impl_->state.observer = observer; }
void Coordinator::set_history(HistoryWriter* history) { impl_->state.history = history; }

NodeId home_node_of(TableId table, std::string_view key, NodeId nodes) {
  return PartitionMap(nodes, 0).primary_of(hash_key(table, key));
}

class ScanCursor {
 public:
  ScanCursor(Transaction& txn, TableId table, uint32_t visible_before, ScanMode mode,
             uint32_t row_bytes_max)
      : scan(txn, table, visible_before, mode, row_bytes_max) {}
  TableScan scan;
  std::vector<ScannedRow> rows;
};

void ScanCursorDelete::operator()(ScanCursor* cursor) const { delete cursor; }

Session::Session(Coordinator& coordinator) : coordinator_(&coordinator), detached_(nullptr) {}
Session::Session(DetachedTransaction& detached) : coordinator_(nullptr), detached_(&detached) {}

Session::~Session() = default;

Coordinator::Impl& Session::engine() {
  CHECK(coordinator_ != nullptr);
  return coordinator_->impl();
}

Scheduler& Session::scheduler() {
  if (detached_ == nullptr) return coordinator_->worker().scheduler();
  CHECK(detached_->scheduler() != nullptr);
  return *detached_->scheduler();
}

// ---- Transactions

namespace {

// A deterministic protocol has no Read stage: what an interactive transaction reads is values
// brought to the executing nodes, so it goes the way of forwarded ones.
StagePlan plan_of(const ProtocolRules& rules, StagePlan plan) {
  if (!rules.commits_in_order) return plan;
  const auto forward = static_cast<uint16_t>(Stage::kForward);
  const auto read = static_cast<uint16_t>(Stage::kRead);
  const auto without = static_cast<uint16_t>(plan.code() & ~read);
  return StagePlan((plan.code() & forward) != 0 ? static_cast<uint16_t>(without | read) : without);
}

}  // namespace

Status Session::begin(const TxnOptions& options) {
  CHECK(txn_ == nullptr);
  const ProtocolRules* rules = engine().rules_of_protocol(options.protocol, options.lock_mode);
  if (rules == nullptr) {
    return Status(Code::kInvalidArgument,
                  std::string("protocol ") + protocol_name(options.protocol) +
                      " is not available; available: " + available_protocol_names());
  }
  cancelled_ = false;
  TxnParameters parameters;
  parameters.rules = rules;
  parameters.plan = plan_of(*rules, options.plan);
  parameters.gate_timeout_us = options.gate_timeout_us;
  parameters.exclusive = options.exclusive;
  parameters.cancelled = &cancelled_;
  CoordinatorState& state = engine().state;
  txn_.reset(new (state) Transaction(state, parameters));
  outcome_unknown_ = false;
  return Status();
}

bool Session::active() const { return txn_ != nullptr; }

Status Session::ensure_started(uint64_t first_access) {
  if (detached_ != nullptr) return Status();
  CHECK(txn_ != nullptr);
  if (txn_->started()) return Status();
  restart_.begin(first_access);
  return txn_->start(restart_);
}

Status Session::commit() {
  CHECK(txn_ != nullptr);
  Status status;
  if (txn_->started()) status = txn_->commit();
  end_transaction();
  return status;
}

Status Session::prepare(Gtid gtid) {
  CHECK(txn_ != nullptr);
  if (txn_->rules().commits_in_order) {
    return Status(Code::kInvalidArgument, std::string("protocol ") +
                                              protocol_name(txn_->rules().protocol) +
                                              " cannot prepare transactions");
  }
  Status status;
  if (txn_->started()) status = txn_->prepare(gtid);
  if (!status.ok() || !txn_->started()) end_transaction();
  return status;
}

bool Session::prepared() const { return txn_ != nullptr && txn_->prepared(); }

Status Session::commit_prepared() {
  CHECK(txn_ != nullptr);
  const Status status = txn_->commit_prepared();
  end_transaction();
  return status;
}

Result<InDoubtList> Session::in_doubt() {
  CoordinatorState& state = engine().state;
  return list_in_doubt(state.engine.worker, state.engine.topology, state.stats.allocation_verbs);
}

Status Session::decide(Gtid gtid, bool commit) {
  CoordinatorState& state = engine().state;
  return decide_in_doubt(state.engine.worker, state.engine.topology, gtid, commit,
                         state.stats.allocation_verbs);
}

Status Session::execute_procedure(const TxnOptions& options, OrderedRequest request,
                                  OrderedOutcome& outcome) {
  RDMACC_RETURN_IF_ERROR(begin(options));
  Status status;
  if (!txn_->rules().commits_in_order) {
    status =
        Status(Code::kInvalidArgument, std::string("protocol ") + protocol_name(options.protocol) +
                                           " executes no procedures");
  }
  if (status.ok()) status = txn_->start(Restart{});
  if (status.ok()) status = txn_->execute_procedure(std::move(request), outcome);
  end_transaction();
  return status;
}

void Session::end_transaction() {
  outcome_unknown_ = txn_->outcome_unknown();
  if (txn_->ctts() != 0) restart_.end(txn_->end());
  txn_.reset();
}

void Session::abort() {
  if (txn_ == nullptr) return;
  txn_->abort();
  end_transaction();
}

void Session::cancel() { cancelled_ = true; }

// ---- Rows

namespace {

void view(const KeyState& state, uint32_t visible_before, NodeId node, RowView& out) {
  out = RowView{};
  out.key = state.key;
  out.node = node;
  const OwnVersion* own = state.own_before(visible_before);
  if (own != nullptr) {
    out.found = !own->deleted;
    out.row = own->row;
  } else if (state.base == KeyState::Base::kExists) {
    out.found = true;
    out.row = state.row;
    out.version = state.version;
  }
}

// A transaction's first access by a number that is not 0 (restart.h).
uint64_t name_of_access(TableId table, std::string_view key) { return hash_key(table, key) | 1; }
uint64_t name_of_scan(TableId table) { return (uint64_t{table} << 1) + 2; }

Status check_sizes(std::string_view key, std::string_view row) {
  if (key.size() > kKeyBytesMax) {
    return Status(Code::kTooLarge, "the key has " + std::to_string(key.size()) +
                                       " bytes, the limit is " + std::to_string(kKeyBytesMax));
  }
  if (row.size() > kRowBytesMax) {
    return Status(Code::kTooLarge, "the row has " + std::to_string(row.size()) +
                                       " bytes, the limit is " + std::to_string(kRowBytesMax));
  }
  return Status();
}

// Does the key have a row, as the transaction's newest own write or the engine says?
bool live(const KeyState& state) {
  return state.own.empty() ? state.base == KeyState::Base::kExists : !state.own.back().deleted;
}

}  // namespace

Status Session::look_up_many(TableId table, std::span<const std::string_view> keys,
                             std::span<KeyState*> states) {
  return detached_ != nullptr ? detached_->look_up_many(table, keys, states)
                              : txn_->look_up_many(table, keys, states);
}

Result<KeyState*> Session::look_up(TableId table, std::string_view key) {
  KeyState* state = nullptr;
  RDMACC_RETURN_IF_ERROR(look_up_many(table, std::span(&key, 1), std::span(&state, 1)));
  return state;
}

Status Session::write(KeyState& state, bool deleted, std::string_view row) {
  return detached_ != nullptr ? detached_->write(state, deleted, row)
                              : txn_->write(state, deleted, row);
}

Status Session::get(TableId table, std::string_view key, RowView& out, uint32_t visible_before) {
  return get_many(table, std::span(&key, 1), std::span(&out, 1), visible_before);
}

Status Session::get_many(TableId table, std::span<const std::string_view> keys,
                         std::span<RowView> out, uint32_t visible_before) {
  CHECK(keys.size() == out.size());
  if (keys.empty()) return Status();
  RDMACC_RETURN_IF_ERROR(ensure_started(name_of_access(table, keys[0])));
  for (const std::string_view key : keys) RDMACC_RETURN_IF_ERROR(check_sizes(key, {}));
  boost::container::small_vector<KeyState*, 16> states(keys.size());
  RDMACC_RETURN_IF_ERROR(look_up_many(table, keys, {states.data(), states.size()}));
  const PartitionMap* map = detached_ == nullptr ? &engine().state.engine.map : nullptr;
  for (size_t i = 0; i < keys.size(); i++) {
    const NodeId node = map == nullptr ? 0 : map->primary_of(states[i]->hash);
    view(*states[i], visible_before, node, out[i]);
  }
  return Status();
}

// The key's state, looked up, once key and row have been found to fit.
Result<KeyState*> Session::find_for_write(TableId table, std::string_view key,
                                          std::string_view row) {
  RDMACC_RETURN_IF_ERROR(ensure_started(name_of_access(table, key)));
  RDMACC_RETURN_IF_ERROR(check_sizes(key, row));
  return look_up(table, key);
}

Status Session::put(TableId table, std::string_view key, std::string_view row) {
  auto state = find_for_write(table, key, row);
  if (!state.ok()) return state.status();
  if (!live(**state)) return Status(Code::kNotFound);
  return write(**state, false, row);
}

Status Session::amend(TableId table, std::string_view key, std::string_view row) {
  if (detached_ != nullptr) return put(table, key, row);
  auto state = find_for_write(table, key, row);
  if (!state.ok()) return state.status();
  if (!live(**state)) return Status(Code::kNotFound);
  return txn_->amend(**state, row);
}

Status Session::insert(TableId table, std::string_view key, std::string_view row) {
  auto state = find_for_write(table, key, row);
  if (!state.ok()) return state.status();
  if (live(**state)) return Status(Code::kDuplicateKey);
  return write(**state, false, row);
}

Status Session::insert_unchecked(TableId table, std::string_view key, std::string_view row) {
  RDMACC_RETURN_IF_ERROR(ensure_started(name_of_access(table, key)));
  RDMACC_RETURN_IF_ERROR(check_sizes(key, row));
  KeyState& state = detached_ != nullptr ? detached_->touch_unchecked(table, key)
                                         : txn_->touch_unchecked(table, key);
  if (live(state)) return Status(Code::kDuplicateKey);
  return write(state, false, row);
}

Status Session::remove(TableId table, std::string_view key) {
  auto state = find_for_write(table, key, {});
  if (!state.ok()) return state.status();
  if (!live(**state)) return Status(Code::kNotFound);
  return write(**state, true, {});
}

// ---- Hints

bool Session::read_own_sets(TableId table, std::string_view key, RowView& out,
                            uint32_t visible_before) {
  if (detached_ != nullptr) return false;
  CHECK(txn_ != nullptr);
  const KeyState* state = txn_->keys().find(table, key);
  if (state == nullptr) return false;
  const bool asked =
      state->base == KeyState::Base::kExists || state->base == KeyState::Base::kAbsent;
  if (!asked && state->own_before(visible_before) == nullptr) return false;
  view(*state, visible_before, engine().state.engine.map.primary_of(state->hash), out);
  return true;
}

Status Session::unvalidated_read(TableId table, std::string_view key, RowView& out) {
  if (detached_ != nullptr) {
    return Status(Code::kInvalidArgument, "a procedure's transaction reads nothing unvalidated");
  }
  RDMACC_RETURN_IF_ERROR(ensure_started(name_of_access(table, key)));
  RDMACC_RETURN_IF_ERROR(check_sizes(key, {}));
  out = RowView{};
  return txn_->unvalidated_read(table, key, out.found, out.row);
}

uint64_t Session::draw_number() { return engine().worker.endpoint().random().next(); }

void Session::note_wide_read() {
  if (txn_ != nullptr) txn_->note_wide_read();
}

Status Session::abort_on_conflict() {
  return txn_ != nullptr ? txn_->abort_on_conflict() : aborted(AbortReason::kVersionChanged);
}

Status Session::check_reads() {
  return txn_ != nullptr && txn_->started() ? txn_->check_reads() : Status();
}

void Session::forget_unvalidated_read(TableId table, std::string_view key) {
  engine().state.unvalidated_reads.forget(table, key);
}

Result<RowLock> Session::try_lock(TableId table, std::string_view key, bool exclusive) {
  if (detached_ != nullptr) {
    return Status(Code::kInvalidArgument, "a procedure's transaction locks nothing by itself");
  }
  RDMACC_RETURN_IF_ERROR(ensure_started(name_of_access(table, key)));
  RDMACC_RETURN_IF_ERROR(check_sizes(key, {}));
  RowLock result = RowLock::kAbsent;
  RDMACC_RETURN_IF_ERROR(txn_->try_lock(table, key, exclusive, result));
  return result;
}

Result<ScanHandle> Session::scan(TableId table, uint32_t visible_before, ScanMode mode,
                                 uint32_t row_bytes_max) {
  if (detached_ != nullptr) {
    return Status(Code::kInvalidArgument, "a procedure's transaction cannot scan");
  }
  RDMACC_RETURN_IF_ERROR(ensure_started(name_of_scan(table)));
  return ScanHandle(new ScanCursor(*txn_, table, visible_before, mode, row_bytes_max));
}

Status Session::scan_next(ScanCursor& cursor, std::vector<RowView>& batch) {
  CHECK(txn_ != nullptr);
  batch.clear();
  RDMACC_RETURN_IF_ERROR(cursor.scan.next(cursor.rows));
  for (const ScannedRow& row : cursor.rows) {
    batch.push_back(RowView{true, row.key, row.row, row.version, row.node});
  }
  return Status();
}

// ---- Commands and savepoints

void Session::set_command(uint32_t command) {
  if (detached_ != nullptr) return detached_->set_command(command);
  CHECK(txn_ != nullptr);
  txn_->set_command(command);
}

uint32_t Session::savepoint() {
  if (detached_ != nullptr) return detached_->savepoint();
  CHECK(txn_ != nullptr);
  return txn_->savepoint();
}

void Session::rollback_to(uint32_t level) {
  if (detached_ != nullptr) return detached_->rollback_to(level);
  CHECK(txn_ != nullptr);
  txn_->rollback_to(level);
}

void Session::release(uint32_t level) {
  if (detached_ != nullptr) return detached_->release(level);
  CHECK(txn_ != nullptr);
  txn_->release(level);
}

bool Session::has_writes() const { return txn_ != nullptr && txn_->has_writes(); }
bool Session::touched_engine() const { return txn_ != nullptr && txn_->started(); }

const VerbCounters& Session::verb_counters() const {
  CHECK(txn_ != nullptr);
  return txn_->counters();
}

// ---- Tables

Result<TableMeta> Session::create_table(const TableSpec& spec) {
  CoordinatorState& state = engine().state;
  return state.engine.storage.create_table(spec, state.stats.allocation_verbs);
}

Status Session::drop_table(TableId table) {
  CoordinatorState& state = engine().state;
  state.engine.tables.forget(table);
  return state.engine.storage.drop_table(table, state.stats.allocation_verbs);
}

Result<TableMeta> Session::find_table(const TableSpec& identity) {
  CoordinatorState& state = engine().state;
  return state.engine.storage.find_table(identity, state.stats.allocation_verbs);
}

Result<std::vector<ListedTable>> Session::list_tables() {
  CoordinatorState& state = engine().state;
  return state.engine.storage.list_tables(state.stats.allocation_verbs);
}

Result<TableSize> Session::table_size(TableId table) {
  CoordinatorState& state = engine().state;
  return state.engine.storage.table_size(table, state.stats.allocation_verbs);
}

Result<NodeStatistics> Session::node_statistics(NodeId node) {
  CoordinatorState& state = engine().state;
  return state.engine.storage.statistics(node, state.stats.allocation_verbs);
}

const Topology& Session::topology() { return engine().state.engine.topology; }

Result<AuditReport> Session::audit(NodeId node, TableId table) {
  CoordinatorState& state = engine().state;
  return state.engine.storage.audit(node, table, state.stats.allocation_verbs);
}

Result<LockedHeaders> Session::locked_headers(NodeId node, uint64_t from) {
  CoordinatorState& state = engine().state;
  return state.engine.storage.locked_headers(node, from, state.stats.allocation_verbs);
}

Status Session::gate_state(GateLine* gate, std::vector<WorkerLine>* lines) {
  VerbCounters counters;
  return engine().state.gate.snapshot(gate, lines, counters);
}

Result<std::optional<Protocol>> Session::open_protocol() {
  VerbCounters counters;
  auto open = engine().state.gate.open_protocol(counters);
  if (!open.ok()) return open.status();
  if (*open >= kProtocolCount) return std::optional<Protocol>();
  return std::optional<Protocol>(static_cast<Protocol>(*open));
}

// ---- SessionPump

namespace {
constexpr int kStepsAfterCommandMax = 64;
}  // namespace

void SessionPump::start(std::function<Status()> command) {
  CHECK(!busy_);
  busy_ = true;
  const bool spawned =
      coordinator_.worker().scheduler().spawn([this, command = std::move(command)] {
        result_ = command();
        busy_ = false;
      });
  if (!spawned) {
    busy_ = false;
    result_ = Status(Code::kNoSpace, "no coroutine is free");
  }
}

bool SessionPump::resume() {
  if (!busy_) return true;
  Scheduler& scheduler = coordinator_.worker().scheduler();
  scheduler.step();
  // What the command posted last and does not wait for (it left the gate, it freed slots) has to
  // take effect now: the caller may not come back for hours.
  for (int i = 0; !busy_ && i < kStepsAfterCommandMax && scheduler.step(); i++) {
  }
  return !busy_;
}

void SessionPump::wait(uint64_t us_max) {
  Scheduler& scheduler = coordinator_.worker().scheduler();
  const uint64_t now = coordinator_.worker().endpoint().now_us();
  coordinator_.worker().endpoint().wait(std::min(now + us_max, scheduler.next_timer_us()));
}

}  // namespace rdmacc
