#include "engine/workloads/procedures.h"

#include <mutex>

#include "engine/storage/wire/messages.h"
#include "engine/txn/transaction/detached_transaction.h"
#include "engine/workloads/registry.h"

namespace rdmacc {
namespace {

constexpr uint32_t kTablesMax = 64;
// Workloads that a node keeps for requests to come: a few clients' at the same time.
constexpr size_t kBoundMax = 64;
constexpr uint32_t kUnregistered = 1'000'000;

// What a request tells of a transaction.
struct Call {
  std::string_view settings;
  std::vector<TableId> tables;
  bool surveyed = false;  // its keys depend on rows
  TxnInputs inputs;
};

std::string encode(const Workload& workload, bool surveyed, const TxnInputs& inputs) {
  std::vector<std::byte> bytes;
  MessageWriter out(bytes);
  out.bytes(workload.settings());
  out.u32(static_cast<uint32_t>(workload.tables().size()));
  for (const TableId table : workload.tables()) out.u32(table);
  out.u8(surveyed ? 1 : 0);
  out.u32(inputs.kind);
  out.u32(inputs.count);
  for (uint32_t i = 0; i < inputs.count; ++i) out.u64(inputs.values[i]);
  return std::string(reinterpret_cast<const char*>(bytes.data()), bytes.size());
}

bool decode(std::string_view bytes, Call& call) {
  MessageReader in(std::as_bytes(std::span(bytes.data(), bytes.size())));
  call.settings = in.bytes();
  const uint32_t tables = in.u32();
  if (tables > kTablesMax) return false;
  for (uint32_t i = 0; i < tables; ++i) call.tables.push_back(in.u32());
  call.surveyed = in.u8() != 0;
  call.inputs.kind = in.u32();
  const uint32_t count = in.u32();
  if (count > kTxnValuesMax) return false;
  for (uint32_t i = 0; i < count; ++i) call.inputs.add(in.u64());
  return in.at_end();
}

Status refused(const char* why) { return Status(Code::kInvalidArgument, why); }

std::string encode_effect(const TxnEffect& effect) {
  return std::string(reinterpret_cast<const char*>(&effect.delta), sizeof(effect.delta));
}

void run(const Workload& workload, const Call& call, const ProcedureCall& given,
         ProcedureResult& result) {
  if (!workload.knows(call.inputs)) {
    result.status = refused("a workload's inputs that it would not draw");
    return;
  }
  DetachedTransaction transaction(&given.scheduler);
  for (size_t i = 0; i < given.reads.size(); ++i) {
    transaction.give(given.reads[i].table, given.reads[i].key, given.rows[i]);
  }
  Session session(transaction);
  TxnEffect effect;
  result.status = workload.execute(session, call.inputs, effect);
  // Another row decides now which keys it needs.
  if (transaction.asked_for_more() && call.surveyed) {
    result.status = aborted(AbortReason::kReconnaissanceStale);
  }
  if (result.status.ok() && !effect.doubt.empty()) {
    result.status = Status(Code::kCorrupt, effect.doubt);
  }
  result.rollback = effect.rollback;
  if (effect.rollback) effect.delta = 0;
  result.writes = transaction.writes();
  result.output = encode_effect(effect);
}

// The workloads of one kind that a node has met, by their settings and tables.
class KnownWorkloads {
 public:
  KnownWorkloads(const WorkloadKind& kind, const WorkloadCluster& cluster)
      : kind_(kind), cluster_(cluster) {}

  Result<std::shared_ptr<const Workload>> find(const Call& call) {
    std::string name(call.settings);
    name.append(reinterpret_cast<const char*>(call.tables.data()),
                call.tables.size() * sizeof(TableId));
    const std::lock_guard lock(mutex_);
    std::shared_ptr<const Workload>& known = known_[name];
    if (known != nullptr) return known;
    Result<std::shared_ptr<const Workload>> made = make(call);
    if (!made.ok() || known_.size() > kBoundMax) {
      known_.clear();
      return made;
    }
    known = *made;
    return known;
  }

 private:
  Result<std::shared_ptr<const Workload>> make(const Call& call) const {
    Result<std::unique_ptr<Workload>> made = make_workload(kind_.name, call.settings, cluster_);
    if (!made.ok()) return made.status();
    if ((*made)->table_specs().size() != call.tables.size()) {
      return refused("a workload has another number of tables");
    }
    (*made)->bind_tables(call.tables);
    return std::shared_ptr<const Workload>(std::move(*made));
  }

  const WorkloadKind& kind_;
  const WorkloadCluster cluster_;
  std::mutex mutex_;
  std::map<std::string, std::shared_ptr<const Workload>> known_;
};

OrderedRequest request_of(const Workload& workload, const KeyDeclaration& keys, bool surveyed,
                          const TxnInputs& inputs) {
  OrderedRequest request;
  request.procedure = procedure_number_of(workload);
  request.inputs = encode(workload, surveyed, inputs);
  request.derived_inserts = keys.derived_inserts;
  for (const DeclaredKey& key : keys.keys) {
    if (key.use == KeyUse::kRead) {
      request.reads.push_back({key.table, std::string(key.key()), false, 0});
    } else {
      request.writes.push_back({key.table, std::string(key.key()), false, {}});
    }
  }
  return request;
}

}  // namespace

uint32_t procedure_number(std::string_view workload) {
  uint32_t number = 0;
  for (const WorkloadKind* kind : workload_kinds()) {
    ++number;
    if (workload == kind->name) return number;
  }
  return 0;
}

uint32_t procedure_number_of(const Workload& workload) {
  const uint32_t number = procedure_number(workload.name());
  return number != 0 ? number : kUnregistered;
}

Procedure procedure_of(const Workload& workload) {
  return [&workload](const ProcedureCall& given, ProcedureResult& result) {
    Call call;
    if (!decode(given.inputs, call)) {
      result.status = refused("the inputs of a workload's procedure do not parse");
      return;
    }
    run(workload, call, given, result);
  };
}

void add_workload_procedures(ProcedureRegistry& procedures, const WorkloadCluster& cluster) {
  for (const WorkloadKind* kind : workload_kinds()) {
    const auto known = std::make_shared<KnownWorkloads>(*kind, cluster);
    procedures.add(procedure_number(kind->name),
                   [known](const ProcedureCall& given, ProcedureResult& result) {
                     Call call;
                     if (!decode(given.inputs, call)) {
                       result.status = refused("the inputs of a workload's procedure do not parse");
                       return;
                     }
                     Result<std::shared_ptr<const Workload>> workload = known->find(call);
                     result.status = workload.status();
                     if (workload.ok()) run(**workload, call, given, result);
                   });
  }
}

Status attempt_as_procedure(const Workload& workload, Session& session, const TxnOptions& options,
                            const TxnInputs& inputs, TxnEffect& effect) {
  effect = TxnEffect();
  KeyDeclaration keys;
  bool known = workload.declare(inputs, keys);
  const bool surveyed = !known;
  if (surveyed) {
    RDMACC_RETURN_IF_ERROR(workload.survey(session, options, inputs, keys, known));
  }
  if (!known) return workload.attempt(session, options, inputs, effect);
  OrderedOutcome outcome;
  const Status status =
      session.execute_procedure(options, request_of(workload, keys, surveyed, inputs), outcome);
  if (status.code() == Code::kTooLarge) return workload.attempt(session, options, inputs, effect);
  RDMACC_RETURN_IF_ERROR(status);
  if (outcome.output.size() != sizeof(effect.delta)) {
    return Status(Code::kCorrupt, "what a workload's procedure tells does not parse");
  }
  std::memcpy(&effect.delta, outcome.output.data(), sizeof(effect.delta));
  effect.rollback = outcome.rolled_back;
  effect.declared = true;
  return Status();
}

}  // namespace rdmacc
