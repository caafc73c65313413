#include "engine/session.h"

#include "engine/coordinator_impl.h"
#include "engine/txn/transaction/detached_transaction.h"
#include "engine/txn/transaction/transaction.h"

// Transactions from begin() to their end, their commands and savepoints. Rows are in
// session_rows.cc, tables in session_tables.cc.

namespace rdmacc {

Session::Session(Coordinator& coordinator)
    : coordinator_(&coordinator),
      scheduler_(&coordinator.worker().scheduler()),
      map_(coordinator.topology().nodes, 0),
      rows_(nullptr) {}
Session::Session(DetachedTransaction& detached)
    : coordinator_(nullptr), scheduler_(detached.scheduler()), map_(1, 0), rows_(&detached) {}

Session::~Session() = default;

Coordinator::Impl& Session::engine() {
  CHECK(coordinator_ != nullptr);
  return coordinator_->impl();
}

Transaction& Session::txn() {
  CHECK(txn_ != nullptr);
  return *txn_;
}

Scheduler& Session::scheduler() {
  CHECK(scheduler_ != nullptr);
  return *scheduler_;
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
  CHECK(rules != nullptr);
  cancelled_ = false;
  TxnParameters parameters;
  parameters.rules = rules;
  parameters.plan = plan_of(*rules, options.plan);
  parameters.gate_timeout_us = options.gate_timeout_us;
  parameters.exclusive = options.exclusive;
  parameters.cancelled = &cancelled_;
  CoordinatorState& state = engine().state;
  txn_.reset(new (state) Transaction(state, parameters));
  rows_ = txn_.get();
  outcome_unknown_ = false;
  return Status();
}

bool Session::active() const { return txn_ != nullptr; }

Status Session::enter(uint64_t first_access) {
  RowSource& source = rows();
  if (source.started()) return Status();
  restart_.begin(first_access);
  return source.start(restart_);
}

Status Session::commit() {
  Transaction& ending = txn();
  CHECK(!ending.prepared());
  Status status = end_loads();
  if (!status.ok()) {
    ending.abort();
  } else if (ending.started()) {
    status = ending.commit();
  }
  end_transaction();
  return status;
}

Status Session::prepare(Gtid gtid) {
  if (txn().rules().commits_in_order) {
    return Status(Code::kInvalidArgument, std::string("protocol ") +
                                              protocol_name(txn_->rules().protocol) +
                                              " cannot prepare transactions");
  }
  Status status = end_loads();
  if (!status.ok()) {
    txn_->abort();
  } else if (txn_->started()) {
    status = txn_->prepare(gtid);
  }
  if (!status.ok() || !txn_->started()) end_transaction();
  return status;
}

std::vector<LoggedWrite> Session::prepared_writes() {
  std::vector<LoggedWrite> writes;
  txn().list_prepared(writes);
  return writes;
}

bool Session::prepared() const { return txn_ != nullptr && txn_->prepared(); }

Status Session::commit_prepared() {
  const Status status = txn().commit_prepared();
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
  CHECK(rows_ == txn_.get());
  outcome_unknown_ = txn_->outcome_unknown();
  held_by_ = txn_->held_by();
  if (txn_->ctts() != 0) restart_.end(txn_->end());
  rows_ = nullptr;
  txn_.reset();
}

void Session::abort() {
  if (txn_ == nullptr) return;
  static_cast<void>(end_loads());
  txn_->abort();
  end_transaction();
}

// ---- Commands and savepoints

void Session::set_command(uint32_t command) { rows().set_command(command); }
uint32_t Session::savepoint() { return rows().savepoint(); }
void Session::rollback_to(uint32_t level) { rows().rollback_to(level); }
void Session::release(uint32_t level) { rows().release(level); }
Status Session::let_go() { return rows_ != nullptr ? rows_->let_go() : Status(); }

bool Session::has_to_let_go() const { return txn_ != nullptr && txn_->has_to_let_go(); }

bool Session::has_writes() const { return txn_ != nullptr && txn_->has_writes(); }
bool Session::touched_engine() const { return txn_ != nullptr && txn_->started(); }
uint64_t Session::began_us() const { return touched_engine() ? txn_->ctts() >> 16 : 0; }

const VerbCounters& Session::verb_counters() const {
  CHECK(txn_ != nullptr);
  return txn_->counters();
}

}  // namespace rdmacc
