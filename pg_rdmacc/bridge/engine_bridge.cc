#include "pg_rdmacc/bridge/bridge_attachment.h"
#include "rdma/base/check.h"

#include <pthread.h>

#include <algorithm>
#include <cstdio>
#include <optional>
#include <string>

#include "engine/protocols/registry.h"

namespace rdmacc::bridge {
namespace {

constexpr uint64_t kDetachWaitUs = 2'000'000;
// For blocks that are freed in the background; less than the wait for the command as a whole.
constexpr uint64_t kBackgroundUsMax = 1'000'000;
constexpr Protocol kDefaultProtocol = Protocol::kOcc;

Attachment* attachment = nullptr;
BridgeError last_error{};

// In a child that a backend forks: the place in the cluster is its parent's.
void forget_in_child() { attachment = nullptr; }

// Ends the transaction by `finish`. One that never reached the engine has nothing to end.
template <typename Finish>
void start_finish(Finish finish) {
  Attachment* at = attached();
  if (at == nullptr || !at->txn.active || !at->txn.begun) {
    if (at != nullptr) end_transaction(*at);
    set_plain_error(Code::kOk, "");
    return;
  }
  start([at, finish](Session& session) {
    const Status status = finish(session);
    at->outcome_unknown = session.commit_outcome_unknown();
    end_transaction(*at);
    return status;
  });
}

Status attach(const BridgeFabric& described, const EngineOptions& options,
              bool (*interrupted)(void)) {
  CHECK(attachment == nullptr && interrupted != nullptr);
  static const int watched = pthread_atfork(nullptr, nullptr, forget_in_child);
  if (watched != 0) return Status(Code::kSystem, "could not watch for forks");
  Result<FabricChoice> choice = choice_of(described);
  if (!choice.ok()) return choice.status();
  choice->config.interrupted = interrupted;
  Result<std::unique_ptr<Fabric>> fabric = open_fabric(*choice);
  if (!fabric.ok()) return fabric.status();
  Result<std::unique_ptr<Endpoint>> endpoint = (*fabric)->join();
  if (!endpoint.ok()) return endpoint.status();
  auto made = std::make_unique<Attachment>((*endpoint)->random().next());
  made->fabric = std::move(fabric.value());
  // A backend runs one command at a time; a few coroutines serve the engine's own needs.
  made->coordinator =
      std::make_unique<Coordinator>(std::move(endpoint.value()), made->fabric->topology(), options,
                                    Scheduler::Options{.coroutines_max = 64});
  made->coordinator->set_observer(&made->recorder);
  made->session = std::make_unique<Session>(*made->coordinator);
  made->pump = std::make_unique<SessionPump>(*made->coordinator);
  attachment = made.release();
  return Status();
}

// Resumes the command under way to its end, at most until the deadline.
bool drain(Attachment& at) {
  Endpoint& endpoint = at.coordinator->worker().endpoint();
  const uint64_t deadline_us = endpoint.now_us() + kDetachWaitUs;
  while (at.pump->busy() && !at.pump->resume()) {
    if (endpoint.now_us() > deadline_us) return false;
    at.pump->wait(1000);
  }
  return true;
}

}  // namespace

Attachment* attached() { return attachment; }

void detach_uncleanly() { attachment = nullptr; }

void end_transaction(Attachment& at) {
  CHECK(!at.session->active());
  at.txn = {};
  at.scans.clear();
  at.range_scans.clear();
  at.read_batches.clear();
  at.index_loads.clear();
}

// There is one for each row: of what was all right the texts are not zeroed, only ended.
void set_error(const Status& status) {
  if (status.ok()) {
    last_error.code = Code::kOk;
    last_error.reason[0] = last_error.message[0] = '\0';
    last_error.outcome_unknown = last_error.held_by_another = false;
    return;
  }
  last_error = {};
  last_error.code = status.code();
  const AbortReason reason = reason_of(status);
  if (reason != AbortReason::kNone) {
    snprintf(last_error.reason, sizeof(last_error.reason), "%s", abort_reason_name(reason));
  }
  last_error.held_by_another = is_held_by_another(reason);
  const char* message =
      status.message().empty() ? code_name(status.code()) : status.message().c_str();
  snprintf(last_error.message, sizeof(last_error.message), "%s", message);
}

void set_plain_error(Code code, const char* message) noexcept {
  last_error = {};
  last_error.code = code;
  snprintf(last_error.message, sizeof(last_error.message), "%s", message);
}

Status begin_session(Attachment& at) {
  TxnState& txn = at.txn;
  if (!txn.active || txn.begun) return Status();
  CHECK(!at.session->active());  // the session's is what PostgreSQL's has begun, and no other
  txn.protocol = kDefaultProtocol;
  if (txn.options.protocol >= 0) {
    txn.protocol = static_cast<Protocol>(txn.options.protocol);
  } else {
    Result<std::optional<Protocol>> open = at.session->open_protocol();
    if (!open.ok()) return open.status();
    txn.protocol = open->value_or(kDefaultProtocol);
  }
  PlanChooser::Choice choice{.plan = StagePlan(txn.options.stages)};
  if (txn.options.auto_stages) choice = at.chooser.choose(txn.protocol, stages_of(txn.protocol));
  txn.plan = choice.plan;
  at.recorder.set_exploring(choice.explores);
  RDMACC_RETURN_IF_ERROR(at.session->begin({.protocol = txn.protocol,
                                            .plan = txn.plan,
                                            .lock_mode = txn.options.lock_mode,
                                            .gate_timeout_us = txn.options.gate_timeout_us,
                                            .exclusive = txn.options.exclusive_gate}));
  if (txn.options.needs_current_reads) at.session->need_current_reads();
  txn.begun = true;
  at.session->set_command(txn.command);
  for (uint32_t level = 0; level < txn.early_levels; ++level) at.session->savepoint();
  return Status();
}

}  // namespace rdmacc::bridge

using rdmacc::Status;
using rdmacc::bridge::attach;
using rdmacc::bridge::attached;
using rdmacc::bridge::Attachment;
using rdmacc::bridge::attachment;
using rdmacc::bridge::drain;
using rdmacc::bridge::end_transaction;
using rdmacc::bridge::kBackgroundUsMax;
using rdmacc::bridge::last_error;
using rdmacc::bridge::no_throw;
using rdmacc::bridge::set_error;
using rdmacc::bridge::start_finish;
using rdmacc::bridge::TxnState;

// ---- Attaching

bool bridge_attached(void) { return attached() != nullptr; }

bool bridge_attach(const BridgeFabric* fabric, uint32_t replicas, uint64_t write_set_bytes_max,
                   bool (*interrupted)(void), rdmacc::StandstillOf standstill_of) {
  if (attached() != nullptr) return true;
  attachment = nullptr;  // a parent's: its memory is not ours to free
  no_throw([&] {
    set_error(attach(*fabric,
                     {.replicas = replicas,
                      .write_set_bytes_max = write_set_bytes_max,
                      .standstill_of = standstill_of},
                     interrupted));
  });
  return attached() != nullptr;
}

size_t bridge_waited_for_at_gate(const uint16_t** workers) {
  if (attached() == nullptr) return 0;
  const auto& waited_for = attached()->session->waited_for_at_gate();
  *workers = waited_for.data();
  return waited_for.size();
}

void bridge_detach(void) {
  Attachment* at = attached();
  if (at == nullptr) return;
  no_throw([&] {
    at->session->cancel();
    if (!drain(*at)) return;
    bridge_start_abort();
    if (!drain(*at)) return;
    at->pump->start([at] {
      at->coordinator->finish_background(kBackgroundUsMax);
      return Status();
    });
    if (!drain(*at)) return;
    // Only a worker at rest leaves its slot. Otherwise the process just ends, and node 0 resolves
    // what it left as it does for one that was killed.
    if (at->coordinator->left_to_resolution()) return;
    end_transaction(*at);
    delete at;
  });
  attachment = nullptr;
}

bool bridge_left_to_resolution(void) {
  return attached() != nullptr && attached()->coordinator->left_to_resolution();
}

int bridge_worker_id(void) {
  return attached() != nullptr ? attached()->coordinator->worker().id() : -1;
}

int bridge_node_count(void) {
  return attached() != nullptr ? attached()->coordinator->topology().nodes : 0;
}

// ---- The command under way

const BridgeError* bridge_error(void) { return &last_error; }

bool bridge_busy(void) { return attached() != nullptr && attached()->pump->busy(); }

bool bridge_resume(void) {
  Attachment* at = attached();
  if (at == nullptr || !at->pump->busy()) return true;
  bool done = false;
  const bool clean = no_throw([&] {
    done = at->pump->resume();
    if (!done) return;
    set_error(at->pump->result());
    last_error.outcome_unknown = at->outcome_unknown;
  });
  return done || !clean;
}

void bridge_wait(uint64_t us_max) {
  if (Attachment* at = attached()) no_throw([&] { at->pump->wait(us_max); });
}

uint64_t bridge_progress(void) { return attached() != nullptr ? attached()->pump->progress() : 0; }

void bridge_cancel(bool on) {
  Attachment* at = attached();
  if (at == nullptr) return;
  at->verify_cancelled = on;
  no_throw([&] {
    at->session->cancel(on);
    if (at->verifying != nullptr) at->verifying->cancel(on);
  });
}

// ---- Transactions

bool bridge_txn_active(void) { return attached() != nullptr && attached()->txn.active; }

void bridge_begin(const BridgeTxnOptions* options) {
  Attachment* at = attached();
  if (at == nullptr) return;
  at->txn = {};
  CHECK(options != nullptr && options->protocol < static_cast<int>(rdmacc::kProtocolCount));
  CHECK(!at->pump->busy() && !at->session->active());
  at->txn.active = true;
  at->txn.options = *options;
}

void bridge_need_current_reads(void) {
  if (!bridge_txn_active()) return;
  TxnState& txn = attached()->txn;
  txn.options.needs_current_reads = true;
  if (txn.begun && attached()->session->active()) attached()->session->need_current_reads();
}

bool bridge_txn_touched(void) {
  return bridge_txn_active() && attached()->txn.begun && attached()->session->touched_engine();
}

uint64_t bridge_txn_began_us(void) {
  return bridge_txn_touched() ? attached()->session->began_us() : 0;
}

uint64_t bridge_txn_uses(void) { return bridge_txn_touched() ? attached()->txn.uses : 0; }

void bridge_start_lose(void) {
  rdmacc::bridge::start([](rdmacc::Session& session) { return session.abort_on_conflict(); });
}

bool bridge_txn_has_writes(void) {
  if (!bridge_txn_active() || !attached()->txn.begun) return false;
  /* Rows that were loaded in place are none of its writes; their entries are, and may wait. */
  return attached()->session->has_writes() || !attached()->txn.waiting.of_index.empty();
}

int bridge_txn_protocol(void) {
  return bridge_txn_touched() ? static_cast<int>(attached()->txn.protocol) : -1;
}

int bridge_txn_stages(void) {
  return bridge_txn_touched() ? static_cast<int>(attached()->txn.plan.code()) : -1;
}

void bridge_start_commit(void) {
  start_finish([](rdmacc::Session& session) -> Status {
    const Status status = rdmacc::bridge::flush_indexes_to_commit(session);
    if (status.ok()) return session.commit();
    session.abort();
    return status;
  });
}

void bridge_start_abort(void) {
  start_finish([](rdmacc::Session& session) {
    session.abort();
    return Status();
  });
}

void bridge_set_command(uint32_t command) {
  if (!bridge_txn_active()) return;
  attached()->txn.command = command;
  if (attached()->txn.begun) attached()->session->set_command(command);
}

uint32_t bridge_savepoint(void) {
  if (!bridge_txn_active()) return 0;
  CHECK(!attached()->pump->busy() && !bridge_changes_wait());
  if (!attached()->txn.begun) return ++attached()->txn.early_levels;
  uint32_t level = 0;
  no_throw([&] { level = attached()->session->savepoint(); });
  return level;
}

void bridge_rollback_to(uint32_t level) {
  if (!bridge_txn_active() || level == 0) return;
  TxnState& txn = attached()->txn;
  CHECK(!attached()->pump->busy());
  txn.waiting = {};
  if (txn.begun) {
    no_throw([&] { attached()->session->rollback_to(level); });
  } else {
    txn.early_levels = std::min(txn.early_levels, level - 1);
  }
}

bool bridge_has_to_let_go(void) {
  return bridge_txn_active() && attached()->txn.begun && attached()->session->has_to_let_go();
}

void bridge_start_let_go(void) {
  rdmacc::bridge::start([](rdmacc::Session& session) { return session.let_go(); });
}

void bridge_release(uint32_t level) {
  if (!bridge_txn_active() || level == 0) return;
  TxnState& txn = attached()->txn;
  CHECK(!attached()->pump->busy());
  if (txn.begun) {
    no_throw([&] { attached()->session->release(level); });
  } else {
    txn.early_levels = std::min(txn.early_levels, level - 1);
  }
}

rdmacc::VerbCounters bridge_counters(void) {
  if (!bridge_txn_active() || !attached()->txn.begun) return {};
  return attached()->session->verb_counters();
}
