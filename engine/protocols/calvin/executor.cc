#include "engine/protocols/calvin/executor.h"

#include <algorithm>
#include <unordered_map>
#include <utility>

#include "engine/protocols/protocols.h"
#include "engine/txn/stages/install.h"

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
  if (request.derived_inserts) shares.writes.assign(nodes, true);
  for (const OrderedGroup& group : request.scanned) {
    if (group.gap.header.node() < nodes) shares.stores[group.gap.header.node()] = true;
  }
  return shares;
}

// A key's last writer among the earlier requests. Scanned groups may have any key, and so may
// derived inserts, of which only procedures know that their declared keys order them.
std::vector<uint32_t> OrderExecutor::dependencies() const {
  std::vector<uint32_t> dependencies;
  std::unordered_map<uint64_t, uint32_t> written_by;  // key hash -> number of the request, from 1
  uint32_t any_write = 0, any_derived = 0;
  for (uint32_t i = 0; i < underway_.size(); i++) {
    const OrderedRequest& request = *underway_[i].at.request;
    uint32_t after = request.scanned.empty() ? 0 : any_write;
    if (request.procedure == 0) after = std::max(after, any_derived);
    const auto touch = [&](TableId table, const std::string& key) {
      const uint64_t hash = hash_key(table, key);
      if (engine_.map.primary_of(hash) != link_.node) return uint64_t{0};
      const auto found = written_by.find(hash);
      if (found != written_by.end()) after = std::max(after, found->second);
      return hash;
    };
    for (const OrderedRead& read : request.reads) touch(read.table, read.key);
    std::vector<uint64_t> written;
    for (const OrderedWrite& write : request.writes)
      written.push_back(touch(write.table, write.key));
    for (const uint64_t hash : written) written_by[hash] = i + 1;
    if (underway_[i].shares.writes[link_.node]) any_write = i + 1;
    if (request.derived_inserts) any_derived = i + 1;
    dependencies.push_back(after);
  }
  return dependencies;
}

void OrderExecutor::begin(std::vector<OrderedAt> requests, uint32_t done) {
  CHECK(underway_.empty() && forwards_.empty());
  engine_.enter_own_era();
  entries_wanted_.clear();
  arena_ = std::make_unique<VerbArena>(link_.worker.pool());
  for (OrderedAt& at : requests) {
    Shares shares = shares_of(*at.request);
    const TxnStamps stamps{at.stamp};
    underway_.push_back(Underway{at, std::move(shares),
                                 StageContext{engine_, kCalvinRules, stamps, *arena_, counters_,
                                              allocation_counters_, nullptr},
                                 nullptr});
  }
  // An earlier process may have died before the others had what it had judged.
  for (uint32_t i = 0; i < done; i++) {
    const Underway& each = underway_[i];
    const uint64_t place = link_.area.layout().order_forward(link_.node, each.at.position.index);
    if (!each.shares.stores[link_.node] || !link_.area.holds(place, each.at.position.word())) {
      continue;
    }
    note_forward(each.at, each.shares);
  }
  forward();
  judged_after_.assign(underway_.size() + 1, {});
  const std::vector<uint32_t> dependencies = this->dependencies();
  for (uint32_t i = done; i < underway_.size(); i++) {
    judged_after_[std::max(done, dependencies[i])].push_back(i);
  }
}

void OrderExecutor::judge_after(uint32_t installed) {
  CHECK(installed < judged_after_.size());
  for (const uint32_t index : judged_after_[installed]) {
    Underway& each = underway_[index];
    const bool executes = each.shares.writes[link_.node] || each.at.home == link_.node;
    if (!each.shares.stores[link_.node] && !executes) continue;
    each.local = std::make_unique<LocalPart>(each.stage, link_.area, link_.node, *each.at.request);
    if (each.shares.stores[link_.node]) judge(each.at, each.shares, *each.local);
    arena_->reset();
  }
  judged_after_[installed].clear();
  forward();
}

// In the background, and in one go: an epoch ends only when all has arrived.
void OrderExecutor::forward() {
  if (forwards_.empty()) return;
  forwarding_.outstanding++;
  const auto shared = std::make_shared<std::vector<OrderForward>>(std::exchange(forwards_, {}));
  const auto send = [this, shared] {
    carry_out_forward(link_, *shared);
    forwarding_.finish_one();
  };
  if (!link_.worker.scheduler().spawn(send)) send();
}

void OrderExecutor::end() {
  CHECK(forwards_.empty());  // all that was judged is on its way
  if (forwarding_.outstanding > 0) link_.worker.scheduler().await(forwarding_);
  underway_.clear();
  arena_.reset();
}

void OrderExecutor::execute(uint32_t index, Status& status, OrderedOutcome& outcome) {
  CHECK(index < underway_.size());
  judge_after(index);
  Underway& underway = underway_[index];
  const OrderedAt& at = underway.at;
  const Shares& shares = underway.shares;
  const bool writes = shares.writes[link_.node];
  if (!writes && at.home != link_.node) return;
  outcome.stamp = at.stamp;
  status = gather(at, shares, outcome);
  if (status.ok() && at.request->procedure != 0) status = run_procedure(*at.request, outcome);
  const bool done_before = link_.area.holds(link_.area.layout().order_redo(), at.stamp);
  CHECK(underway.local != nullptr);  // this node executes it, so it was judged here
  if (!status.ok() || done_before) {
    underway.local->give_back();
  } else if (writes) {
    apply(at, at.request->procedure != 0 ? outcome.writes : at.request->writes, underway.stage,
          underway.local);
  }
  underway.local.reset();
  arena_->reset();
  if (observer_) observer_(at, outcome, status.ok());
}

// Says what became of the local part, to all executing nodes. Once it is in the own area it is
// not made again: by then a restarted node may have other rows.
void OrderExecutor::judge(const OrderedAt& at, const Shares& shares, LocalPart& local) {
  const RegionLayout& layout = link_.area.layout();
  const uint64_t place = layout.order_forward(link_.node, at.position.index);
  const bool makes_room = shares.writes[link_.node] && at.request->procedure == 0;
  OrderArea::Block known;
  LocalVerdict verdict;
  // What an earlier process of this node has judged stands; apply() looks for itself then.
  const bool judged = link_.area.load(place, at.position.word(), kForwardBytes, known) &&
                      read_verdict(known.bytes, verdict);
  if (!judged) {
    while (another_look(verdict.status = local.look(verdict))) {
      verdict.reads.clear();
      pause();
    }
    if (verdict.status.ok() && makes_room) verdict.status = make_room(at, local);
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
  note_forward(at, shares);
}

// All that a decided request could lack: slots, blocks and entries of the index.
Status OrderExecutor::make_room(const OrderedAt& at, LocalPart& local) {
  RDMACC_RETURN_IF_ERROR(local.make_room(at.request->writes));
  return local.make_entry_room(entries_wanted_);
}

void OrderExecutor::note_forward(const OrderedAt& at, const Shares& shares) {
  std::vector<NodeId> executing;
  for (NodeId node = 0; node < link_.topology.nodes; node++) {
    if (node != link_.node && (shares.writes[node] || node == at.home)) executing.push_back(node);
  }
  if (executing.empty()) return;
  forwards_.push_back(OrderForward{at.position, at.request->plan, std::move(executing)});
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
  (*procedure)(
      ProcedureCall{request.inputs, request.reads, outcome.reads, link_.worker.scheduler()},
      result);
  RDMACC_RETURN_IF_ERROR(result.status);
  uint64_t bytes = result.output.size();
  for (const OrderedWrite& write : result.writes) {
    bytes += write.row.size();
    const bool declared =
        request.derived_inserts ||
        std::any_of(request.writes.begin(), request.writes.end(), [&](const OrderedWrite& each) {
          return each.table == write.table && each.key == write.key;
        });
    if (!declared) return Status(Code::kInvalidArgument, "a procedure wrote an undeclared key");
    if (write.row.size() > kRowBytesMax) return Status(Code::kTooLarge, "a procedure's row");
  }
  if (bytes > kOrderedBytesMax || result.writes.size() > kOrderedWritesMax) {
    return Status(Code::kTooLarge, "what a procedure writes");
  }
  outcome.output = std::move(result.output);
  outcome.rolled_back = result.rollback;
  if (!result.rollback) outcome.writes = std::move(result.writes);
  return Status();
}

bool OrderExecutor::is_gone(TableId table, StageContext& stage) {
  Result<CachedTable*> cached = stage.table(table);
  Status status = cached.status();
  if (status.ok()) {
    status = engine_.tables.load_root(**cached, link_.node, /*again=*/true, counters_);
  }
  return status.code() == Code::kNotFound;
}

// Decided already: it is tried until it is done. Tables that are dropped meanwhile take their rows
// with them, and only theirs.
void OrderExecutor::apply(const OrderedAt& at, const std::vector<OrderedWrite>& writes,
                          StageContext& stage, std::unique_ptr<LocalPart>& local) {
  OrderedRequest left;  // of what is written, once it had to be looked up anew
  const std::vector<OrderedWrite>* wanted = &writes;
  const auto look_anew = [&] {
    if (wanted == &writes) left.writes = writes;
    wanted = &left.writes;
    std::erase_if(left.writes,
                  [&, known = TableId{kNoTable}, gone = false](const OrderedWrite& write) mutable {
                    if (write.table != known) gone = is_gone(known = write.table, stage);
                    return gone;
                  });
    local = std::make_unique<LocalPart>(stage, link_.area, link_.node, left);
    arena_->reset();
    LocalVerdict ignored;
    return local->look(ignored);
  };
  // Keys that only the procedure could tell are looked up with those that were declared.
  const bool derived = at.request->derived_inserts && at.request->procedure != 0;
  Status status = derived || !local->looked() ? look_anew() : Status();
  for (;;) {
    if (status.ok() && !local->has_room()) status = local->make_room(*wanted);
    if (status.ok()) status = local->apply();
    if (status.ok()) return;
    local->give_back();
    pause();
    status = look_anew();
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
  // Locks without a redo record. A slot that is not live yet has no owner and is found as such.
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
