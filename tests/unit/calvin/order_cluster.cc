#include "tests/unit/calvin/order_cluster.h"

#include "engine/protocols/protocols.h"

namespace rdmacc {
namespace {

int64_t number(const OrderedRow& row) { return row.found ? std::stoll(row.row) : 0; }

void put(const ProcedureCall& call, ProcedureResult& result) {
  CHECK(!call.reads.empty() && call.rows.size() == call.reads.size());
  const OrderedRead& read = call.reads[0];
  result.writes.push_back({read.table, read.key, call.inputs.empty(), std::string(call.inputs)});
}

// Rolls back when the first key's amount does not cover what is asked for.
void transfer(const ProcedureCall& call, ProcedureResult& result) {
  const auto reads = call.reads;
  const auto rows = call.rows;
  const int64_t amount = std::stoll(std::string(call.inputs));
  result.rollback = number(rows[0]) < amount;
  result.output = std::to_string(number(rows[0]));
  if (reads[0].key == reads[1].key) return;
  result.writes.push_back(
      {reads[0].table, reads[0].key, false, std::to_string(number(rows[0]) - amount)});
  result.writes.push_back(
      {reads[1].table, reads[1].key, false, std::to_string(number(rows[1]) + amount)});
}

// The first key's row becomes the second's, which is not read: the first's node may be passive.
void copy(const ProcedureCall& call, ProcedureResult& result) {
  const OrderedRow& row = call.rows[0];
  result.writes.push_back({call.reads[0].table, std::string(call.inputs), !row.found, row.row});
}

// Counts the first key up and inserts a row under that number.
void give_number(const ProcedureCall& call, ProcedureResult& result) {
  const std::string next = std::to_string(number(call.rows[0]) + 1);
  const TableId table = call.reads[0].table;
  result.writes.push_back({table, call.reads[0].key, false, next});
  result.writes.push_back({table, "no" + next, false, next});
}

// What it declared is no longer what it needs.
void always_stale(const ProcedureCall& call, ProcedureResult& result) {
  put(call, result);
  result.status = aborted(AbortReason::kReconnaissanceStale);
}

}  // namespace

OrderCluster::OrderCluster(uint64_t seed, NodeId nodes, const SimOptions& options) {
  topology_.nodes = nodes;
  topology_.workers_max = 16;
  topology_.region_bytes = 64ull << 20;
  SimOptions seeded = options;
  seeded.seed = seed;
  fabric_ = SimFabric::create(topology_, seeded);
  procedures_.add(kPut, put);
  procedures_.add(kTransfer, transfer);
  procedures_.add(kCopy, copy);
  procedures_.add(kNumber, give_number);
  procedures_.add(kStale, always_stale);
  node_options_.order.procedures = &procedures_;
  node_options_.order.observer = [this](const OrderedAt& at, const OrderedOutcome&, bool) {
    log_[at.position.word()] = Logged{*at.request, at.home, at.stamp};
  };
  nodes_.resize(nodes);
  for (NodeId node = 0; node < nodes; node++) open_node(node);
  fabric_->set_observer([this](uint64_t) {
    if (back_at_ns_.empty()) return;
    std::erase_if(back_at_ns_, [this](const auto& each) {
      if (fabric_->now_ns() < each.second) return false;
      open_node(each.first);
      return true;
    });
  });
}

OrderCluster::~OrderCluster() {
  fabric_->set_observer(nullptr);
  for (auto& each : coordinators_) fabric_->attach(each->worker().id(), nullptr);
  for (auto& node : nodes_) {
    if (node != nullptr) fabric_->attach(node->worker().id(), nullptr);
  }
}

void OrderCluster::open_node(NodeId node) {
  auto thread = NodeThread::open(*fabric_, node, 0, node_options_);
  CHECK(thread.ok());
  nodes_[node] = std::move(*thread);
  fabric_->attach(nodes_[node]->worker().id(), &nodes_[node]->worker().scheduler());
}

void OrderCluster::restart_node(NodeId node, uint64_t down_ns) {
  if (nodes_[node] == nullptr) return;
  const WorkerId worker = nodes_[node]->worker().id();
  fabric_->kill(worker);
  fabric_->attach(worker, nullptr);
  nodes_[node].reset();
  back_at_ns_[node] = fabric_->now_ns() + down_ns;
}

Coordinator& OrderCluster::add_coordinator() {
  auto endpoint = fabric_->join();
  CHECK(endpoint.ok());
  coordinators_.push_back(
      std::make_unique<Coordinator>(std::move(*endpoint), topology_, EngineOptions{}));
  Worker& worker = coordinators_.back()->worker();
  fabric_->attach(worker.id(), &worker.scheduler());
  return *coordinators_.back();
}

OrderArea OrderCluster::area(NodeId node) {
  static std::vector<std::unique_ptr<OwnedRegion>> regions;  // outlive the areas
  regions.push_back(std::make_unique<OwnedRegion>(node_worker(node).endpoint().local_region(),
                                                  topology_.region_bytes, node));
  return OrderArea(RegionLayout(topology_), *regions.back());
}

bool OrderCluster::run(Coordinator& coordinator, const std::function<void()>& task) {
  bool done = false;
  CHECK(coordinator.worker().scheduler().spawn([&] {
    task();
    done = true;
  }));
  if (run_until([&] { return done; })) return true;
  coordinator.worker().scheduler().unwind();
  return false;
}

void OrderCluster::create_table(Coordinator& coordinator) {
  CHECK(run(coordinator, [&] {
    Session session(coordinator);
    TableSpec spec;
    spec.relfilenode = 1;
    auto table = session.create_table(spec);
    CHECK(table.ok());
    table_ = table->id;
  }));
}

OrderedRequest OrderCluster::request(uint32_t procedure, std::vector<std::string> reads,
                                     std::vector<std::string> writes, std::string inputs,
                                     StagePlan plan) const {
  OrderedRequest request;
  request.plan = plan;
  request.procedure = procedure;
  request.inputs = std::move(inputs);
  for (std::string& key : reads) request.reads.push_back({table_, std::move(key), false, 0});
  for (std::string& key : writes) request.writes.push_back({table_, std::move(key), false, {}});
  return request;
}

Status OrderCluster::submit(Coordinator& coordinator, OrderedRequest request,
                            OrderedOutcome& outcome, bool& unknown) {
  Session session(coordinator);
  TxnOptions options;
  options.protocol = kCalvinRules.protocol;
  options.plan = request.plan;
  const Status status = session.execute_procedure(options, std::move(request), outcome);
  unknown = session.commit_outcome_unknown();
  return status;
}

OrderCluster::Rows OrderCluster::model() const {
  Rows rows;
  for (const auto& [position, logged] : log_) {
    const OrderedRequest& request = logged.request;
    const Procedure* procedure = procedures_.find(request.procedure);
    if (procedure == nullptr) continue;
    std::vector<OrderedRow> read;
    for (const OrderedRead& each : request.reads) {
      const auto found = rows.find(each.key);
      read.push_back(found == rows.end() ? OrderedRow{} : OrderedRow{true, 0, found->second.first});
    }
    ProcedureResult result;
    (*procedure)({request.inputs, request.reads, read, coordinators_[0]->worker().scheduler()},
                 result);
    if (result.rollback || !result.status.ok()) continue;
    for (const OrderedWrite& write : result.writes) {
      if (write.deleted) {
        rows.erase(write.key);
      } else {
        rows[write.key] = {write.row, logged.stamp};
      }
    }
  }
  return rows;
}

OrderCluster::Rows OrderCluster::rows(Coordinator& coordinator) {
  Rows rows;
  CHECK(run(coordinator, [&] {
    Session session(coordinator);
    TxnOptions options;
    options.protocol = kCalvinRules.protocol;
    CHECK(session.begin(options).ok());
    auto scan = session.scan(table_);
    CHECK(scan.ok());
    std::vector<RowView> batch;
    do {
      CHECK(session.scan_next(**scan, batch).ok());
      for (const RowView& row : batch)
        rows[std::string(row.key)] = {std::string(row.row), row.version};
    } while (!batch.empty());
    scan->reset();
    session.abort();
  }));
  return rows;
}

void OrderCluster::replay(Coordinator& coordinator, const std::map<uint64_t, Logged>& log) {
  if (log.empty()) return;
  const uint64_t last = Position::of(log.rbegin()->first).epoch;
  for (uint64_t epoch = 1; epoch <= last; epoch++) {
    uint64_t base_us = 1;
    std::vector<std::vector<std::vector<std::byte>>> requests(topology_.nodes);
    for (auto at = log.lower_bound(Position{epoch, 0}.word());
         at != log.end() && Position::of(at->first).epoch == epoch; ++at) {
      base_us = (at->second.stamp >> 16) - Position::of(at->first).index;
      MessageWriter out(requests[at->second.home].emplace_back());
      write_request(out, at->second.request);
    }
    for (NodeId node = 0; node < topology_.nodes; node++) {
      std::vector<const RequestBytes*> pointers;
      for (const auto& each : requests[node]) pointers.push_back(&each);
      std::vector<std::byte> batch;
      encode_batch(pointers, batch);
      const OrderArea own = area(node);
      own.store(own.layout().order_batch(node, epoch),
                OrderArea::make_block(epoch, base_us << 16, batch));
    }
    CHECK(run(coordinator, [&] {
      for (NodeId node = 0; node < topology_.nodes; node++) {
        Rpc::Call call;
        call.to = topology_.worker_of(node);
        call.method = kMethodOrderSettle;
        VerbCounters counters;
        CHECK(coordinator.worker().rpc().call_one(call, counters).ok());
      }
    }));
  }
}

OrderedRequest random_request(const OrderCluster& cluster, Random& random, uint32_t keys,
                              uint16_t code) {
  const auto key = [&] { return "k" + std::to_string(random.below(keys)); };
  const StagePlan plan(code);
  const std::string from = key(), to = key();
  switch (random.below(5)) {
    case 2: {
      OrderedRequest request = cluster.request(OrderCluster::kNumber, {"n"}, {"n"}, "", plan);
      request.derived_inserts = true;
      return request;
    }
    case 0:
      return cluster.request(OrderCluster::kPut, {from}, {from},
                             random.below(4) == 0 ? "" : std::to_string(random.below(1000)), plan);
    case 1:
      return cluster.request(OrderCluster::kCopy, {from}, {to}, to, plan);
    default:
      if (from == to) return cluster.request(OrderCluster::kPut, {from}, {from}, "500", plan);
      return cluster.request(OrderCluster::kTransfer, {from, to}, {from, to},
                             std::to_string(random.below(300)), plan);
  }
}

}  // namespace rdmacc
