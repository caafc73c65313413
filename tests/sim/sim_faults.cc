// Coordinators and nodes that die at an event, and nodes that come back.
#include <algorithm>

#include "tests/sim/sim_run.h"

namespace rdmacc {
namespace {

constexpr uint64_t kFaultWindowEvents = 12'000;  // a run without faults takes about so many
constexpr uint64_t kDownNsMax = 5'000'000;

}  // namespace

void SimRun::plan_faults() {
  const uint64_t now = fabric_->events();
  for (uint32_t k = 0; k < scenario_.kills; ++k) {
    faults_.push_back({Fault::kKillCoordinator, now + random_.below(kFaultWindowEvents),
                       k % scenario_.coordinators});
  }
  for (uint32_t k = 0; k < scenario_.node_restarts; ++k) {
    faults_.push_back({Fault::kRestartNode, now + random_.below(kFaultWindowEvents),
                       static_cast<uint32_t>(random_.below(topology_.nodes))});
  }
  std::stable_sort(faults_.begin(), faults_.end(),
                   [](const Fault& a, const Fault& b) { return a.event < b.event; });
}

void SimRun::inject_due_faults(uint64_t event) {
  while (!faults_.empty() && faults_.front().event <= event) {
    const Fault fault = faults_.front();
    faults_.erase(faults_.begin());
    inject(fault);
  }
  start_due_nodes();
}

void SimRun::inject(const Fault& fault) {
  if (fault.kind == Fault::kKillCoordinator) {
    std::unique_ptr<Coordinator> dead = std::move(clients_[fault.target]->coordinator);
    if (dead == nullptr) return;
    fabric_->kill(dead->worker().id());
    close_coordinator(std::move(dead));
    return;
  }
  const auto node = static_cast<NodeId>(fault.target);
  if (nodes_[node].empty()) return;
  close_node(node, /*kill=*/true);
  back_at_ns_[node] = fabric_->now_ns() + random_.below(kDownNsMax);
}

void SimRun::start_due_nodes() {
  for (NodeId node = 0; node < topology_.nodes; ++node) {
    if (!nodes_[node].empty() || fabric_->now_ns() < back_at_ns_[node]) continue;
    const Status opened = open_node(node);
    if (!opened.ok() && failure_.ok()) failure_ = opened;
  }
}

}  // namespace rdmacc
