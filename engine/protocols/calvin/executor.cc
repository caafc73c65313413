#include "engine/protocols/calvin/executor.h"

#include <algorithm>

#include "engine/protocols/protocols.h"
#include "engine/txn/install.h"

namespace rdmacc {
namespace {

constexpr uint64_t kPauseUs = 200;
constexpr uint64_t kVerdictBytesMax = kForwardBytes - OrderArea::kBlockHeaderBytes;

bool another_look(const Status& status) { return status.code() == Code::kUnavailable; }

}  // namespace

OrderExecutor::OrderExecutor(OrderLink& link, const ProcedureRegistry* procedures,
                             OrderObserver observer, WaitFor wait_for)
    : link_(link),
      engine_(link.worker, link.topology, kLocationCacheEntries),
      procedures_(procedures),
      observer_(std::move(observer)),
      wait_for_(std::move(wait_for)) {}

void OrderExecutor::pause() { link_.worker.scheduler().sleep_for(kPauseUs); }

OrderExecutor::Shares OrderExecutor::shares_of(const OrderedRequest& request) const {
  const NodeId nodes = link_.topology.nodes;
  Shares shares{std::vector<bool>(nodes), std::vector<bool>(nodes)};
  for (const OrderedRead& read : request.reads) {
    shares.stores[engine_.map.primary_of(hash_key(read.table, read.key))] = true;
  }
  for (const OrderedWrite& write : request.writes) {
    const NodeId node = engine_.map.primary_of(hash_key(write.table, write.key));
    shares.stores[node] = shares.writes[node] = true;
  }
  for (const OrderedGroup& group : request.scanned) {
    if (group.gap.header.node() < nodes) shares.stores[group.gap.header.node()] = true;
  }
  return shares;
}

void OrderExecutor::execute(const OrderedAt& at, Status& status, OrderedOutcome& outcome) {
  const Shares shares = shares_of(*at.request);
  const bool writes = shares.writes[link_.node];
  const bool executes = writes || at.home == link_.node;
  if (!shares.stores[link_.node] && !executes) return;
  VerbArena arena(link_.worker.pool());
  StageContext stage{
      engine_, kCalvinRules, TxnStamps{at.stamp}, arena, counters_, allocation_counters_, nullptr};
  auto local = std::make_unique<LocalPart>(stage, link_.area, link_.node, *at.request);
  if (shares.stores[link_.node]) judge(at, shares, *local);
  if (!executes) return;
  outcome.stamp = at.stamp;
  status = gather(at, shares, outcome);
  if (status.ok() && at.request->procedure != 0) status = run_procedure(*at.request, outcome);
  const bool done_before = link_.area.holds(link_.area.layout().order_redo(), at.stamp);
  if (!status.ok() || done_before) {
    local->give_back();
  } else if (writes) {
    apply(at, at.request->procedure != 0 ? outcome.writes : at.request->writes, stage, local);
  }
  if (observer_) observer_(at, status.ok());
}

// Says what became of the local part, to everybody who executes. Once it is in the own area it is
// not made again: by then a restarted node may have other rows.
void OrderExecutor::judge(const OrderedAt& at, const Shares& shares, LocalPart& local) {
  const RegionLayout& layout = link_.area.layout();
  const uint64_t place = layout.order_forward(link_.node, at.position.index);
  const bool makes_room = shares.writes[link_.node] && at.request->procedure == 0;
  OrderArea::Block known;
  LocalVerdict verdict;
  if (link_.area.load(place, at.position.word(), kForwardBytes, known) &&
      read_verdict(known.bytes, verdict)) {
    const bool done_before = link_.area.holds(layout.order_redo(), at.stamp);
    if (verdict.status.ok() && shares.writes[link_.node] && !done_before) {
      look_again(local);
      if (makes_room) make_room(local, at.request->writes);
    }
  } else {
    while (another_look(verdict.status = local.look(verdict))) {
      verdict.reads.clear();
      pause();
    }
    if (verdict.status.ok() && makes_room) verdict.status = local.make_room(at.request->writes);
    if (another_look(verdict.status)) verdict.status = aborted(AbortReason::kNodeRestarted);
    std::vector<std::byte> bytes;
    MessageWriter out(bytes);
    write_verdict(out, verdict, at.request->procedure != 0);
    if (bytes.size() > kVerdictBytesMax) {
      verdict.reads.clear();
      verdict.status = at.request->procedure != 0
                           ? Status(Code::kTooLarge, "the rows that a procedure reads on one node")
                           : aborted(AbortReason::kReconnaissanceStale);
      bytes.clear();
      write_verdict(out, verdict, false);
    }
    link_.area.store(place, OrderArea::make_block(at.position.word(), 0, bytes));
  }
  std::vector<NodeId> executing;
  for (NodeId node = 0; node < link_.topology.nodes; node++) {
    if (node != link_.node && (shares.writes[node] || node == at.home)) executing.push_back(node);
  }
  if (!executing.empty()) carry_out_forward(link_, at.request->plan, at.position, executing);
}

// All verdicts, the own among them: the first that is not ok decides, on every node the same.
Status OrderExecutor::gather(const OrderedAt& at, const Shares& shares, OrderedOutcome& outcome) {
  outcome.reads.clear();
  for (const OrderedRead& read : at.request->reads) {
    outcome.reads.push_back(OrderedRow{read.found, read.version, {}});
  }
  Status decided;
  for (NodeId node = 0; node < link_.topology.nodes; node++) {
    if (!shares.stores[node]) continue;
    const uint64_t place = link_.area.layout().order_forward(node, at.position.index);
    OrderArea::Block block;
    wait_for_([&] { return link_.area.load(place, at.position.word(), kForwardBytes, block); });
    LocalVerdict verdict;
    if (!read_verdict(block.bytes, verdict)) {
      verdict.status = Status(Code::kCorrupt, "a participant's verdict does not parse");
    }
    if (decided.ok()) decided = verdict.status;
    for (auto& [index, row] : verdict.reads) {
      if (index < outcome.reads.size()) outcome.reads[index] = std::move(row);
    }
  }
  return decided;
}

Status OrderExecutor::run_procedure(const OrderedRequest& request, OrderedOutcome& outcome) const {
  const Procedure* procedure =
      procedures_ == nullptr ? nullptr : procedures_->find(request.procedure);
  if (procedure == nullptr) {
    return Status(Code::kInvalidArgument,
                  "procedure " + std::to_string(request.procedure) + " is not known");
  }
  ProcedureResult result;
  (*procedure)(request.inputs, request.reads, outcome.reads, result);
  uint64_t bytes = result.output.size();
  for (const OrderedWrite& write : result.writes) {
    bytes += write.row.size();
    const bool declared =
        std::any_of(request.writes.begin(), request.writes.end(), [&](const OrderedWrite& each) {
          return each.table == write.table && each.key == write.key;
        });
    if (!declared) return Status(Code::kInvalidArgument, "a procedure wrote an undeclared key");
    if (write.row.size() > kRowBytesMax) return Status(Code::kTooLarge, "a procedure's row");
  }
  if (bytes > kOrderedBytesMax) return Status(Code::kTooLarge, "what a procedure writes");
  outcome.output = std::move(result.output);
  outcome.rolled_back = result.rollback;
  if (!result.rollback) outcome.writes = std::move(result.writes);
  return Status();
}

void OrderExecutor::look_again(LocalPart& local) {
  LocalVerdict ignored;
  while (another_look(local.look(ignored))) pause();
}

// Decided already: it waits until there is room.
void OrderExecutor::make_room(LocalPart& local, const std::vector<OrderedWrite>& writes) {
  for (Status status = local.make_room(writes); !status.ok(); status = local.make_room(writes)) {
    if (status.code() == Code::kNotFound) return;  // the table was dropped with its rows
    pause();
    if (status.code() == Code::kAborted) look_again(local);
  }
}

void OrderExecutor::apply(const OrderedAt& at, const std::vector<OrderedWrite>& writes,
                          StageContext& stage, std::unique_ptr<LocalPart>& local) {
  if (at.request->procedure != 0) make_room(*local, writes);
  for (Status status = local->apply(); !status.ok(); status = local->apply()) {
    local->give_back();
    pause();
    local = std::make_unique<LocalPart>(stage, link_.area, link_.node, *at.request);
    look_again(*local);
    make_room(*local, writes);
    if (status.code() == Code::kNotFound) return;
  }
}

Status OrderExecutor::finish_redo(StorageService& storage) {
  const uint64_t place = link_.area.layout().order_redo();
  OrderArea::Block redo;
  if (link_.area.load(place, 0, kRedoBytes, redo)) {
    Result<LogRecord> record = decode_log_record(redo.bytes);
    if (!record.ok()) return record.status();
    InstallOptions options;
    options.effects = kCalvinRules.effects;
    options.guarded = true;
    RDMACC_RETURN_IF_ERROR(install(link_.worker, *record, options, counters_));
  }
  // Locks without a redo record. A slot that is not live yet is nobody's and is found as such.
  for (const GlobalAddress header : storage.locks_of(kOrderWorker)) {
    VerbArena arena(link_.worker.pool());
    auto* seen = arena.allocate_array<Header>(1);
    auto* was = arena.allocate_array<uint64_t>(1);
    if (seen == nullptr || was == nullptr) return out_of_registered_memory();
    DoorbellBatch batch(link_.worker.scheduler(), counters_);
    batch.read(header, seen, sizeof(*seen));
    RDMACC_RETURN_IF_ERROR(batch.execute());
    if ((seen->flags & (kFlagLive | kFlagGap)) == 0) continue;
    batch.compare_swap(header.plus(kOffsetOfLock), seen->lock, 0, was);
    RDMACC_RETURN_IF_ERROR(batch.execute());
  }
  return Status();
}

}  // namespace rdmacc
