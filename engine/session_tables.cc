#include "engine/coordinator_impl.h"
#include "engine/protocols/registry.h"
#include "engine/txn/transaction/transaction.h"

// Tables, and what can be seen of the cluster's state: statistics, locks, the gate.

namespace rdmacc {

Result<TableMeta> Session::create_table(const TableSpec& spec, TableId wanted) {
  CoordinatorState& state = engine().state;
  return state.engine.storage.create_table(spec, state.stats.allocation_verbs, wanted);
}

Status Session::drop_table(TableId table) {
  CoordinatorState& state = engine().state;
  state.engine.tables.forget(table);
  return state.engine.storage.drop_table(table, state.stats.allocation_verbs);
}

Status Session::expect_rows(TableId table, uint64_t rows) {
  CoordinatorState& state = engine().state;
  return state.engine.storage.expect_rows(table, rows, state.stats.allocation_verbs);
}

Result<TableMeta> Session::find_table(const TableSpec& identity) {
  CoordinatorState& state = engine().state;
  return state.engine.storage.find_table(identity, state.stats.allocation_verbs);
}

Result<std::vector<ListedTable>> Session::list_tables(TableList which) {
  CoordinatorState& state = engine().state;
  return state.engine.storage.list_tables(state.stats.allocation_verbs, which);
}

Result<TableSize> Session::table_size(TableId table) {
  CoordinatorState& state = engine().state;
  return state.engine.storage.table_size(table, state.stats.allocation_verbs);
}

Status Session::lose_if_used_since(TableId table) {
  if (txn_ == nullptr || !txn_->started() || !txn_->rules().reads_at_ctts) return Status();
  Result<TableSize> size = table_size(table);
  if (size.status().code() == Code::kNotFound) return Status();  // there is nothing to take away
  if (!size.ok()) return size.status();
  engine().state.engine.clock.observe(size->latest_stamp);
  // A look for a key that it has found absent may be noted as the last one of its microsecond.
  const uint64_t own = txn_->ctts() | 0xFFFF;
  return size->latest_stamp > txn_->ctts() && size->latest_stamp != own ? txn_->abort_on_conflict()
                                                                        : Status();
}

// Those that hold locks are inside the gate.
Result<bool> Session::locked_by_others(std::span<const TableId> tables) {
  if (txn_ == nullptr) return false;
  bool locks = txn_->rules().locks_what_it_reads();
  if (!txn_->started()) {
    Result<std::optional<Protocol>> open = open_protocol();
    if (!open.ok()) return open.status();
    locks = open->has_value() && rules_of(**open)->locks_what_it_reads();
  }
  if (!locks) return false;
  for (const TableId table : tables) {
    Result<TableSize> size = table_size(table);
    if (size.status().code() == Code::kNotFound) continue;
    if (!size.ok()) return size.status();
    if (size->locked > 0) return true;
  }
  return false;
}

// Outside of a transaction a cancel that has come before is no longer meant.
Patience Session::patience(uint64_t silence_us_max) {
  if (!active()) cancelled_ = false;
  return {.silence_us_max = silence_us_max, .cancelled = &cancelled_};
}

Result<NodeStatistics> Session::node_statistics(NodeId node, uint64_t silence_us_max) {
  CoordinatorState& state = engine().state;
  return state.engine.storage.statistics(node, state.stats.allocation_verbs,
                                         patience(silence_us_max));
}

const Topology& Session::topology() { return engine().state.engine.topology; }

Result<AuditReport> Session::audit(NodeId node, TableId table) {
  CoordinatorState& state = engine().state;
  return state.engine.storage.audit(node, table, state.stats.allocation_verbs);
}

Result<LockedHeaders> Session::locked_headers(NodeId node, uint64_t from, uint64_t silence_us_max) {
  CoordinatorState& state = engine().state;
  return state.engine.storage.locked_headers(node, from, state.stats.allocation_verbs,
                                             patience(silence_us_max));
}

Status Session::gate_state(GateLine* gate, std::vector<WorkerLine>* lines) {
  VerbCounters counters;
  return engine().state.gate.snapshot(gate, lines, counters);
}

const std::vector<WorkerId>& Session::waited_for_at_gate() {
  return engine().state.gate.waited_for();
}

Result<std::optional<Protocol>> Session::open_protocol() {
  VerbCounters counters;
  auto open = engine().state.gate.open_protocol(counters);
  if (!open.ok()) return open.status();
  if (*open >= kProtocolCount) return std::optional<Protocol>();
  return std::optional<Protocol>(static_cast<Protocol>(*open));
}

}  // namespace rdmacc
