#include "tests/sim/sim_run.h"

#include <algorithm>
#include <cstring>

#include "engine/workloads/procedures.h"
#include "tests/sim/verify_at_rest.h"

namespace rdmacc {
namespace {

constexpr uint64_t kRestUs = 300'000;  // virtual; longer than any time-out that matters
constexpr uint32_t kAttemptsOfTransaction = 40;
constexpr uint64_t kBackOffUsMax = 30;
constexpr uint64_t kUnavailableUs = 300;
constexpr uint32_t kThinkPercent = 30;  // kDoor's clients, after a transaction
constexpr uint64_t kThinkUsMax = 8'000;
constexpr uint32_t kLazyPercent = 70;
constexpr uint32_t kLongPausePercent = 10;  // of those: until tombstones are due
constexpr uint64_t kLongPauseUsMax = 60'000;
constexpr uint32_t kLooksMax = 50;  // at locks at rest
constexpr uint64_t kPauseUs = 1'000;

std::string describe(uint64_t offset, const Header& header) {
  return std::string((header.flags & kFlagGap) != 0    ? "gap header"
                     : (header.flags & kFlagLive) != 0 ? "tuple"
                                                       : "unlinked slot") +
         " of table " + std::to_string(header.table) + " at " + std::to_string(offset) + ", wts " +
         std::to_string(header.wts) + ", lock " + std::to_string(header.lock) + " (worker " +
         std::to_string(worker_of_ctts(header.lock)) + ")";
}

}  // namespace

SimRun::~SimRun() {
  fabric_->set_observer(nullptr);
  for (std::unique_ptr<Client>& client : clients_) {
    close_coordinator(std::move(client->coordinator));
  }
  close_coordinator(std::move(keeper_));
  for (NodeId node = 0; node < topology_.nodes; ++node) close_node(node, /*kill=*/false);
}

std::string SimRun::run() {
  Status status;
  for (NodeId node = 0; node < topology_.nodes && status.ok(); ++node) status = open_node(node);
  if (status.ok()) status = load();
  if (status.ok()) status = run_clients();
  if (status.ok()) status = check_at_rest();
  if (status.ok()) status = live_again();
  return status.ok() ? "" : status.to_string();
}

// ---- Nodes and coordinators

Status SimRun::open_node(NodeId node) {
  CHECK(nodes_[node].empty());
  NodeOptions options = node_options_;
  if (strikes_ != nullptr) options.structure = strikes_->at(node);
  for (uint16_t t = 0; t < topology_.threads_per_node; ++t) {
    Result<std::unique_ptr<NodeThread>> thread = NodeThread::open(*fabric_, node, t, options);
    if (!thread.ok()) return thread.status();
    fabric_->attach((*thread)->worker().id(), &(*thread)->worker().scheduler());
    nodes_[node].push_back(std::move(*thread));
  }
  return Status();
}

void SimRun::close_node(NodeId node, bool kill) {
  for (std::unique_ptr<NodeThread>& thread : nodes_[node]) {
    const WorkerId worker = thread->worker().id();
    resolved_ += static_cast<uint32_t>(thread->resolved_workers());
    reader_count_sweeps_ += thread->reader_count_sweeps();
    if (kill) fabric_->kill(worker);
    fabric_->attach(worker, nullptr);
  }
  nodes_[node].clear();
}

Result<std::unique_ptr<Coordinator>> SimRun::open_coordinator() {
  Result<std::unique_ptr<Endpoint>> endpoint = fabric_->join();
  if (!endpoint.ok()) return endpoint.status();
  auto coordinator =
      std::make_unique<Coordinator>(std::move(*endpoint), topology_, engine_options_,
                                    Scheduler::Options{.savings = scenario_.savings});
  coordinator->set_history(&history_);
  Worker& worker = coordinator->worker();
  fabric_->attach(worker.id(), &worker.scheduler());
  return coordinator;
}

void SimRun::close_coordinator(std::unique_ptr<Coordinator> coordinator) {
  if (coordinator == nullptr) return;
  fabric_->attach(coordinator->worker().id(), nullptr);
}

Status SimRun::run_task(Scheduler& scheduler, const std::function<Status()>& task) {
  Status status;
  bool ended = false;
  CHECK(scheduler.spawn([&] {
    status = task();
    ended = true;
  }));
  if (!fabric_->run_until([&ended] { return ended; }, scenario_.events_max)) {
    // The coroutine refers to this frame, so nothing may run it again.
    scheduler.unwind();
    return Status(Code::kTimeout, "hangs after " + std::to_string(fabric_->events()) + " events");
  }
  return status;
}

// ---- The phases

Status SimRun::load() {
  Result<std::unique_ptr<Coordinator>> keeper = open_coordinator();
  if (!keeper.ok()) return keeper.status();
  keeper_ = std::move(*keeper);
  return run_task(keeper_->worker().scheduler(), [this] {
    Session session(*keeper_);
    RDMACC_RETURN_IF_ERROR(workload_->create_tables(session));
    RDMACC_RETURN_IF_ERROR(workload_->load(session, txn_, 0, 1));
    if (door_ == nullptr) return Status();
    surroundings_ = std::make_unique<DoorSurroundings>(*door_, txn_, scenario_.seed * 13 + 5);
    return scenario_.tight ? surroundings_->fill_up(session) : Status();
  });
}

Status SimRun::run_clients() {
  for (uint32_t c = 0; c < scenario_.coordinators; ++c) {
    Result<std::unique_ptr<Coordinator>> coordinator = open_coordinator();
    if (!coordinator.ok()) return coordinator.status();
    clients_.push_back(std::make_unique<Client>());
    clients_.back()->coordinator = std::move(*coordinator);
    if (aimed_ != nullptr) aimed_->observe(*clients_.back()->coordinator);
    start_client(*clients_.back());
  }
  if (scenario_.prepared) {
    CHECK(keeper_->worker().scheduler().spawn([this] {
      Session session(*keeper_);
      decider_.serve(session);
    }));
  }
  start_surroundings();
  plan_faults();
  if (strikes_ != nullptr) strikes_->begin();
  fabric_->set_observer([this](uint64_t event) { inject_due_faults(event); });
  const bool ended = run_until_clients_ended();
  fabric_->set_observer(nullptr);
  RDMACC_RETURN_IF_ERROR(end_decider());
  RDMACC_RETURN_IF_ERROR(end_surroundings());
  RDMACC_RETURN_IF_ERROR(failure_);
  return ended ? Status() : Status(Code::kTimeout, describe_hang());
}

Status SimRun::end_decider() {
  decider_.stop();
  if (fabric_->run_until([this] { return !decider_.serving(); }, scenario_.events_max)) {
    return Status();
  }
  keeper_->worker().scheduler().unwind();
  return Status(Code::kTimeout, "the outside decider does not come to an end");
}

// When no worker has anything left to do, time stands still: nodes that are down come back at once.
bool SimRun::run_until_clients_ended() {
  const auto down = [this] {
    return std::count_if(nodes_.begin(), nodes_.end(),
                         [](const auto& threads) { return threads.empty(); });
  };
  for (;;) {
    const uint64_t begin = fabric_->events();
    if (fabric_->run_until([this] { return clients_ended(); }, scenario_.events_max)) return true;
    if (fabric_->events() - begin >= scenario_.events_max || down() == 0) return false;
    std::fill(back_at_ns_.begin(), back_at_ns_.end(), 0);
    start_due_nodes();
    if (down() != 0) return false;
  }
}

std::string SimRun::describe_hang() const {
  uint32_t running = 0, down = 0;
  for (const std::unique_ptr<Client>& client : clients_) {
    if (client->coordinator != nullptr) running += client->running;
  }
  for (const auto& threads : nodes_) down += threads.empty() ? 1 : 0;
  return "clients hang after " + std::to_string(fabric_->events()) +
         " events: " + std::to_string(running) + " coroutines run, " + std::to_string(down) +
         " nodes are down, " + std::to_string(fabric_->departed().size()) +
         " dead workers are not resolved";
}

void SimRun::start_client(Client& client) {
  for (uint32_t i = 0; i < scenario_.coroutines; ++i) {
    ++client.running;
    const uint64_t seed = random_.next();
    CHECK(client.coordinator->worker().scheduler().spawn([this, &client, seed] {
      run_transactions(client, seed);
      --client.running;
    }));
  }
}

Status SimRun::attempt_in_its_way(Session& session, const TxnInputs& inputs, TxnEffect& effect) {
  KeyDeclaration keys;
  const bool undeclared = door_ != nullptr && !door_->declare(inputs, keys);
  if (scenario_.declared && !undeclared) {
    std::optional<DoorEnd> under_way;
    if (door_ != nullptr) under_way.emplace(*door_, DoorOp::kProcedure);
    return attempt_as_procedure(*workload_, session, txn_, inputs, effect);
  }
  if (scenario_.prepared) return decider_.attempt(*workload_, session, txn_, inputs, effect);
  if (door_ != nullptr) return door_->attempt_observed(session, txn_, inputs, effect);
  return workload_->attempt(session, txn_, inputs, effect);
}

void SimRun::run_transactions(Client& client, uint64_t seed) {
  Random random(seed);
  Session session(*client.coordinator);
  Scheduler& scheduler = client.coordinator->worker().scheduler();
  for (uint32_t t = 0; t < transactions_ && failure_.ok(); ++t) {
    const TxnInputs inputs = workload_->draw(random);
    for (uint32_t attempt = 0; attempt < kAttemptsOfTransaction; ++attempt) {
      TxnEffect effect;
      uint32_t& attempts_max = attempts_max_[inputs.kind];
      attempts_max = std::max(attempts_max, attempt + 1);
      const Status status = run_attempt(session, inputs, effect);
      left_to_resolution_ = left_to_resolution_ || client.coordinator->left_to_resolution();
      if (status.ok()) {
        ++committed_;
        delta_ += effect.delta;
        if (door_ != nullptr) door_->acknowledge(inputs, effect);
        break;
      }
      if (ends_properly(status, inputs, scheduler)) break;
      if (status.code() == Code::kUnavailable && loses_nodes()) {
        scheduler.sleep_for(kUnavailableUs);
        break;  // its outcome may be unknown: not again
      }
      if (status.code() != Code::kAborted) {
        if (failure_.ok()) failure_ = status;
        return;
      }
      // Longer and longer: scans that lock what they pass would hardly ever get through.
      scheduler.sleep_for(random.below(kBackOffUsMax * (1 + attempt / 4)));
    }
    if (scenario_.rest_us > 0 && t == transactions_ / 2) scheduler.sleep_for(scenario_.rest_us);
    // The nodes' own work comes between.
    if (door_ != nullptr && random.percent(scenario_.lazy ? kLazyPercent : kThinkPercent)) {
      const bool long_pause = random.percent(scenario_.lazy ? kLazyPercent : kLongPausePercent);
      scheduler.sleep_for(random.below(long_pause ? kLongPauseUsMax : kThinkUsMax));
    }
  }
}

// The user has cancelled, the table that was visited is gone, or there is no memory for now.
bool SimRun::ends_properly(const Status& status, const TxnInputs& inputs,
                           Scheduler& scheduler) const {
  if (status.code() == Code::kCancelled && scenario_.cancel_percent > 0) return true;
  if (door_ == nullptr) return false;
  if (status.code() == Code::kNoSpace) {
    scheduler.sleep_for(kUnavailableUs);
    return true;
  }
  return status.code() == Code::kCancelled ||
         (status.code() == Code::kNotFound && inputs.kind == Door::kVisit);
}

// All transactions have ended, all nodes are up, and no dead worker is unresolved, of those either
// whose last verbs are still under way, so that the fabric does not name them yet.
bool SimRun::clients_ended() const {
  if (!failure_.ok()) return true;
  for (const std::unique_ptr<Client>& client : clients_) {
    const bool goes_on = client->running > 0 || scenario_.die_at_end;
    if (client->coordinator != nullptr && goes_on) return false;
  }
  for (const auto& threads : nodes_) {
    if (threads.empty()) return false;
  }
  return fabric_->departed().empty() && resolved_so_far() >= killed_;
}

uint32_t SimRun::resolved_so_far() const {
  uint32_t resolved = resolved_;
  for (const auto& threads : nodes_) {
    if (!threads.empty()) resolved += static_cast<uint32_t>(threads[0]->resolved_workers());
  }
  return resolved;
}

// ---- What must hold at rest

Status SimRun::check_at_rest() {
  RDMACC_RETURN_IF_ERROR(use_every_worker());
  // Frees and other work that is not waited for comes to its end first.
  RDMACC_RETURN_IF_ERROR(finish_background());
  Scheduler& scheduler = keeper_->worker().scheduler();
  RDMACC_RETURN_IF_ERROR(run_task(scheduler, [&scheduler] {
    scheduler.sleep_for(kRestUs);
    return Status();
  }));
  if (fresh_ != nullptr) {
    RDMACC_RETURN_IF_ERROR(run_task(scheduler, [this] {
      Session session(*keeper_);
      return fresh_->settle(session, txn_);
    }));
  }
  RDMACC_RETURN_IF_ERROR(check_history());
  for (NodeId node = 0; node < topology_.nodes; ++node) {
    RDMACC_RETURN_IF_ERROR(check_locks(node));
    RDMACC_RETURN_IF_ERROR(check_splits(node));
    resolved_ += static_cast<uint32_t>(nodes_[node][0]->resolved_workers());
    reader_count_sweeps_ += nodes_[node][0]->reader_count_sweeps();
  }
  RDMACC_RETURN_IF_ERROR(check_tables());
  RDMACC_RETURN_IF_ERROR(check_acknowledged());
  RDMACC_RETURN_IF_ERROR(check_workload());
  RDMACC_RETURN_IF_ERROR(check_counts());
  return check_history();  // with the last reads, which saw everything
}

Status SimRun::check_locks(NodeId node) {
  NodeThread& thread = *nodes_[node][0];
  return run_task(thread.worker().scheduler(), [this, &thread, node] {
    // The node itself may still be splitting a group or unlinking a tombstone.
    Status left = find_lock(thread, node);
    for (uint32_t look = 0; look < kLooksMax && !left.ok(); ++look) {
      thread.worker().scheduler().sleep_for(kPauseUs);
      left = find_lock(thread, node);
    }
    return left.ok() ? find_share(thread) : left;
  });
}

Status SimRun::find_lock(NodeThread& thread, NodeId node) const {
  for (WorkerId i = 0; i <= topology_.workers_max; ++i) {
    const WorkerId worker = i < topology_.workers_max ? i : kOrderWorker;
    for (const GlobalAddress lock : thread.storage()->locks_of(worker)) {
      Header header;
      std::memcpy(&header, thread.worker().endpoint().local_region() + lock.offset(),
                  sizeof(header));
      // A node that died before it could answer an Allocate, or hear a Free, has lost a slot
      // that no transaction can reach: known and counted as used.
      const bool unreachable = (header.flags & (kFlagLive | kFlagGap)) == 0;
      if (unreachable && loses_nodes()) continue;
      return Status(Code::kCorrupt, "a lock is left on node " + std::to_string(node) + ": " +
                                        describe(lock.offset(), header));
    }
  }
  return Status();
}

Status SimRun::find_share(NodeThread& thread) const {
  for (const GlobalAddress shared : thread.storage()->shared_headers()) {
    Header header;
    std::memcpy(&header, thread.worker().endpoint().local_region() + shared.offset(),
                sizeof(header));
    return Status(Code::kCorrupt, "a share is left on node " + std::to_string(shared.node()) +
                                      ": " + describe(shared.offset(), header));
  }
  return Status();
}

Status SimRun::check_tables() {
  return run_task(keeper_->worker().scheduler(), [this] {
    Session session(*keeper_);
    const bool losses = loses_coordinators() || loses_nodes();
    return verify_at_rest(session, *workload_, txn_, losses);
  });
}

uint64_t SimRun::splits() const {
  uint64_t splits = 0;
  for (const auto& threads : nodes_) {
    if (!threads.empty()) splits += threads[0]->storage()->statistics().splits;
  }
  return splits;
}

uint64_t SimRun::exclusive() const {
  uint64_t exclusive = 0;
  for (const std::unique_ptr<Client>& client : clients_) {
    if (client->coordinator != nullptr) exclusive += client->coordinator->stats().exclusive;
  }
  return exclusive;
}

}  // namespace rdmacc
