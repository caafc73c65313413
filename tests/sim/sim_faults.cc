// What happens to a run from outside: coordinators and nodes that die at an event, nodes that come
// back, users that cancel, tables that are dropped and memory that is used up.
#include <algorithm>

#include "engine/protocols/registry.h"
#include "engine/txn/rule/rule.h"
#include "tests/sim/sim_run.h"

namespace rdmacc {
namespace {

constexpr uint32_t kStrikePreparedPercent = 25;
constexpr uint64_t kCancelUsMax = 60;
// Longer than a node waits for anything of a worker that lives.
constexpr uint64_t kHeldNs = 200'000'000;

}  // namespace

void SimRun::start_surroundings() {
  if (door_ == nullptr) return;
  const auto run_beside = [this](Status (DoorSurroundings::*work)(Session&)) {
    ++surrounding_;
    CHECK(keeper_->worker().scheduler().spawn([this, work] {
      Session session(*keeper_);
      const Status status = (*surroundings_.*work)(session);
      if (!status.ok() && failure_.ok()) failure_ = status;
      --surrounding_;
    }));
  };
  run_beside(&DoorSurroundings::drop_again_and_again);
  if (scenario_.tight) run_beside(&DoorSurroundings::fill_again_and_again);
  if (rules_of(scenario_.protocol)->keeps_versions()) {
    run_beside(&DoorSurroundings::bury_again_and_again);
  }
}

Status SimRun::end_surroundings() {
  if (surroundings_ == nullptr) return Status();
  surroundings_->stop();
  if (fabric_->run_until([this] { return surrounding_ == 0; }, scenario_.events_max)) {
    return Status();
  }
  keeper_->worker().scheduler().unwind();
  return Status(Code::kTimeout, "what goes on beside the clients does not come to an end");
}

// The user cancels at any moment: while it waits for a lock, or has locked some of what it reads.
Status SimRun::run_attempt(Session& session, const TxnInputs& inputs, TxnEffect& effect) {
  if (scenario_.cancel_percent == 0 || !random_.percent(scenario_.cancel_percent)) {
    return attempt_in_its_way(session, inputs, effect);
  }
  const auto under_way = std::make_shared<bool>(true);
  const uint64_t after_us = random_.below(kCancelUsMax);
  CHECK(session.scheduler().spawn([under_way, after_us, &session] {
    session.scheduler().sleep_for(after_us);
    if (*under_way) session.cancel();
  }));
  const Status status = attempt_in_its_way(session, inputs, effect);
  *under_way = false;
  return status;
}

void SimRun::plan_faults() {
  left_in_doubt_ = scenario_.in_doubt;
  if (left_in_doubt_ > 0) decider_.when_prepared([this] { may_strike_prepared(); });
  if (scenario_.aimed || aimed_ != nullptr) return;
  const uint64_t now = fabric_->events();
  for (uint32_t k = 0; k < scenario_.kills; ++k) {
    faults_.push_back({Fault::kKillCoordinator, now + random_.below(scenario_.fault_window_events),
                       k % scenario_.coordinators});
  }
  for (uint32_t k = 0; k < scenario_.node_restarts; ++k) {
    faults_.push_back({Fault::kRestartNode, now + random_.below(scenario_.fault_window_events),
                       static_cast<uint32_t>(random_.below(topology_.nodes))});
  }
  std::stable_sort(faults_.begin(), faults_.end(),
                   [](const Fault& a, const Fault& b) { return a.event < b.event; });
}

// Before its log is told the outcome. Which nodes have a copy of that is not known here.
void SimRun::may_strike_prepared() {
  if (left_in_doubt_ == 0 || !random_.percent(kStrikePreparedPercent)) return;
  --left_in_doubt_;
  const auto node = static_cast<uint32_t>(random_.below(topology_.nodes));
  faults_.insert(faults_.begin(), {Fault::kRestartNode, fabric_->events(), node});
}

void SimRun::inject_due_faults(uint64_t event) {
  while (!faults_.empty() && faults_.front().event <= event) {
    const Fault fault = faults_.front();
    faults_.erase(faults_.begin());
    inject(fault);
  }
  if (strikes_ != nullptr) {
    const std::optional<Strikes::Struck> struck = strikes_->due();
    if (struck && !struck->coordinator) inject({Fault::kRestartNode, event, struck->node});
    for (uint32_t c = 0; struck && struck->coordinator && c < clients_.size(); ++c) {
      Coordinator* coordinator = clients_[c]->coordinator.get();
      if (coordinator == nullptr || coordinator->worker().id() != struck->worker) continue;
      inject({Fault::kKillCoordinator, event, c});
    }
  }
  if (aimed_ != nullptr) {
    for (const AimedFaults::Action& action : aimed_->due()) {
      if (inject(action)) aimed_->note_struck(action);
    }
  }
  if (left_to_resolution_) end_those_left_to_resolution(event);
  if (scenario_.die_at_end) end_coordinators(event);
  start_due_nodes();
}

// As a session does that a node has been away from for too long.
void SimRun::end_those_left_to_resolution(uint64_t event) {
  left_to_resolution_ = false;
  for (uint32_t c = 0; c < clients_.size(); ++c) {
    const Coordinator* coordinator = clients_[c]->coordinator.get();
    if (coordinator != nullptr && coordinator->left_to_resolution()) {
      inject({Fault::kKillCoordinator, event, c});
    }
  }
}

// Not at once: for some seconds they live beside what the nodes have found when they came back.
void SimRun::end_coordinators(uint64_t event) {
  const bool down = std::any_of(nodes_.begin(), nodes_.end(),
                                [](const auto& threads) { return threads.empty(); });
  const bool running = std::any_of(clients_.begin(), clients_.end(), [](const auto& client) {
    return client->coordinator != nullptr && client->running > 0;
  });
  const uint64_t now_ns = fabric_->now_ns();
  if (down || running) end_at_ns_ = now_ns + linger_ns_;
  if (now_ns < end_at_ns_) return;
  for (uint32_t c = 0; c < clients_.size(); ++c) inject({Fault::kKillCoordinator, event, c});
}

bool SimRun::inject(const Fault& fault) {
  if (fault.kind == Fault::kKillCoordinator) {
    std::unique_ptr<Coordinator> dead = std::move(clients_[fault.target]->coordinator);
    if (dead == nullptr) return false;
    fabric_->kill(dead->worker().id());
    ++killed_;
    if (outside_ != nullptr) outside_->release_all_of(dead->worker().scheduler());
    close_coordinator(std::move(dead));
    return true;
  }
  const auto node = static_cast<NodeId>(fault.target);
  if (nodes_[node].empty()) return false;
  close_node(node, /*kill=*/true);
  const uint64_t away_ns = random_.below((scenario_.away_us_max - scenario_.away_us_min) * 1'000);
  back_at_ns_[node] = fabric_->now_ns() + scenario_.away_us_min * 1'000 + away_ns;
  return true;
}

bool SimRun::inject(const AimedFaults::Action& action) {
  const uint64_t event = fabric_->events();
  switch (action.kind) {
    case AimedFaults::Action::kRestartNode:
      return inject({Fault::kRestartNode, event, action.node});
    case AimedFaults::Action::kHoldNode:
      return hold(action.node);
    case AimedFaults::Action::kHoldCoordinator:
      fabric_->hold(action.worker, fabric_->now_ns() + kHeldNs);
      return true;
    case AimedFaults::Action::kFlipBit:
      return flip_a_bit(action);
    case AimedFaults::Action::kKillCoordinator:
      break;
  }
  for (uint32_t c = 0; c < clients_.size(); ++c) {
    const Coordinator* coordinator = clients_[c]->coordinator.get();
    if (coordinator == nullptr || clients_[c]->coordinator->worker().id() != action.worker)
      continue;
    return inject({Fault::kKillCoordinator, event, c});
  }
  return false;
}

// A line that node 0 lost when it died says `inside` until the worker's next transaction (G5).
Status SimRun::use_every_worker() {
  if (aimed_ == nullptr) return Status();
  transactions_ = 1;
  for (const std::unique_ptr<Client>& client : clients_) {
    if (client->coordinator == nullptr) continue;
    const uint64_t seed = random_.next();
    RDMACC_RETURN_IF_ERROR(run_task(client->coordinator->worker().scheduler(), [&, this] {
      run_transactions(*client, seed);
      return failure_;
    }));
  }
  transactions_ = scenario_.transactions;
  return Status();
}

bool SimRun::hold(NodeId node) {
  for (const std::unique_ptr<NodeThread>& thread : nodes_[node]) {
    fabric_->hold(thread->worker().id(), fabric_->now_ns() + kHeldNs);
  }
  return !nodes_[node].empty();
}

bool SimRun::flip_a_bit(const AimedFaults::Action& action) {
  if (nodes_[action.node].empty()) return false;
  std::byte* region = nodes_[action.node][0]->worker().endpoint().local_region();
  region[action.offset] ^= std::byte{1} << random_.below(8);
  return true;
}

void SimRun::start_due_nodes() {
  for (NodeId node = 0; node < topology_.nodes; ++node) {
    if (!nodes_[node].empty() || fabric_->now_ns() < back_at_ns_[node]) continue;
    const Status opened = open_node(node);
    if (!opened.ok() && failure_.ok()) failure_ = opened;
  }
}

}  // namespace rdmacc
