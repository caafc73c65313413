#include "rdma/bootstrap/registrar.h"

#include <algorithm>

#include "rdma/base/host_process.h"

namespace rdmacc {

Registrar::Registrar(const ClusterConfig& config, OnChange on_change,
                     std::unique_ptr<ClaimTable> table)
    : topology_(config.topology),
      on_change_(std::move(on_change)),
      table_(std::move(table)),
      owners_(topology_.workers_max, kAdrift),
      changed_at_(topology_.workers_max, 0),
      node_states_(topology_.nodes, NodeState::kAbsent) {}

Result<std::unique_ptr<Registrar>> Registrar::open(const ClusterConfig& config,
                                                   OnChange on_change) {
  Result<std::unique_ptr<ClaimTable>> table = ClaimTable::open(config);
  if (!table.ok()) return table.status();
  std::unique_ptr<Registrar> opened(new Registrar(config, std::move(on_change), std::move(*table)));
  opened->start_over();
  return opened;
}

// Takes up what an earlier process of node 0 has left.
void Registrar::start_over() {
  node_states_[0] = NodeState::kUp;
  grace_ends_ns_ = monotonic_now_ns() + kGraceNs;
  for (WorkerId w = 0; w < topology_.workers_max; ++w) {
    ClaimSlot& slot = table_->slot(w);
    if (slot.incarnation == 0) continue;
    const NodeId node = static_cast<NodeId>(w / topology_.threads_per_node);
    if (is_node(w) && slot.state.load() != ClaimState::kFree) {
      // Our own threads went with that process. Another node may run on, perhaps out of reach.
      if (node == 0) {
        slot.state.store(ClaimState::kDead);
      } else {
        node_states_[node] = NodeState::kLost;
      }
    }
    changed(w);
  }
  for (WorkerId w = 0; w < topology_.workers_max; ++w) {
    const ClaimState state = table_->slot(w).state.load();
    if (state == ClaimState::kLeaving || state == ClaimState::kDying) begin_fencing(w, state);
  }
}

void Registrar::changed(WorkerId worker) {
  CHECK(worker < changed_at_.size());
  changed_at_[worker] = ++version_;
  const ClaimSlot& slot = table_->slot(worker);
  const bool live = slot.state.load() == ClaimState::kLive;
  on_change_(worker, live ? slot.incarnation : 0);
}

ClaimProof Registrar::grant(WorkerId worker, Owner owner, const ProcessIdentity& process) {
  ClaimSlot& slot = table_->slot(worker);
  CHECK(owner != kAdrift && slot.state.load() != ClaimState::kLive);
  if (slot.incarnation == 0) slot.incarnation = table_->first_incarnation();
  ++slot.incarnation;
  if (slot.incarnation == 0) slot.incarnation = 1;
  slot.token = random_secret<RandomToken>();
  slot.boot_id = process.boot_id;
  slot.pid = process.pid;
  slot.start_time = process.start_time;
  slot.state.store(ClaimState::kLive, std::memory_order_release);
  owners_[worker] = owner;
  changed(worker);
  return ClaimProof{{worker, slot.incarnation}, slot.token};
}

Result<ClaimProof> Registrar::claim(Owner owner, const ProcessIdentity& process) {
  for (WorkerId w = topology_.node_workers(); w < topology_.workers_max; ++w) {
    if (table_->slot(w).state.load() == ClaimState::kFree) return grant(w, owner, process);
  }
  return Status(Code::kNoWorkerSlot, "every worker slot is taken");
}

Result<std::optional<ClaimProof>> Registrar::claim_node(NodeId node, uint16_t thread, Owner owner,
                                                        const ProcessIdentity& process) {
  if (node >= topology_.nodes || thread >= topology_.threads_per_node) {
    return Status(Code::kInvalidArgument, "there is no such node or thread");
  }
  const WorkerId worker = topology_.worker_of(node, thread);
  switch (table_->slot(worker).state.load()) {
    case ClaimState::kFree:
    case ClaimState::kDead:
      return std::optional<ClaimProof>(grant(worker, owner, process));
    case ClaimState::kLive:
      if (owners_[worker] != kAdrift) {
        return Status(Code::kInvalidArgument, "node " + std::to_string(node) + " is running");
      }
      // The node's lock says that its process is gone.
      begin_fencing(worker, ClaimState::kDying);
      return std::optional<ClaimProof>();
    default:
      return std::optional<ClaimProof>();
  }
}

bool Registrar::holds(const ClaimSlot& slot, Claim claim) const {
  return slot.state.load() == ClaimState::kLive && slot.incarnation == claim.incarnation;
}

bool Registrar::attach(const ClaimProof& proof, Owner owner) {
  CHECK(owner != kAdrift);
  const WorkerId worker = proof.claim.worker;
  if (worker >= topology_.workers_max) return false;
  const ClaimSlot& slot = table_->slot(worker);
  // Its earlier channel may not have been seen to end yet.
  if (!holds(slot, proof.claim) || !same_secret(slot.token, proof.token)) return false;
  owners_[worker] = owner;
  return true;
}

void Registrar::leave(Claim claim, Owner owner) {
  if (claim.worker >= topology_.workers_max || owners_[claim.worker] != owner) return;
  if (!holds(table_->slot(claim.worker), claim)) return;
  begin_fencing(claim.worker, ClaimState::kLeaving);
}

bool Registrar::leaving(Claim claim) const {
  const auto found = fencing_.find(claim.worker);
  if (found == fencing_.end() || found->second.incarnation != claim.incarnation) return false;
  const std::set<NodeId>& waiting = found->second.waiting;
  return std::any_of(waiting.begin(), waiting.end(),
                     [this](NodeId node) { return node_states_[node] == NodeState::kUp; });
}

void Registrar::owner_gone(Owner owner) {
  CHECK(owner != kAdrift);
  for (WorkerId w = 0; w < topology_.workers_max; ++w) {
    if (owners_[w] != owner) continue;
    owners_[w] = kAdrift;
    if (table_->slot(w).state.load() == ClaimState::kLive) begin_fencing(w, ClaimState::kDying);
  }
}

std::vector<Membership::Claim> Registrar::claims_of(Owner owner) const {
  CHECK(owner != kAdrift);  // or the claims of all that are away
  std::vector<Claim> claims;
  for (WorkerId w = 0; w < topology_.workers_max; ++w) {
    const ClaimSlot& slot = table_->slot(w);
    if (owners_[w] == owner && slot.state.load() == ClaimState::kLive) {
      claims.push_back({w, slot.incarnation});
    }
  }
  return claims;
}

// A coordinator is waited for at every node that may carry out something of it, also at one that
// is out of reach now. A node's thread is not: whatever it does at a node begins with that node
// fencing its predecessor, so that a node may start while another is away.
void Registrar::begin_fencing(WorkerId worker, ClaimState state) {
  ClaimSlot& slot = table_->slot(worker);
  CHECK(state == ClaimState::kLeaving || state == ClaimState::kDying);
  slot.state.store(state);
  Fencing& fencing = fencing_[worker];
  fencing = Fencing{slot.incarnation, {}, {}};
  for (NodeId node = 1; node < topology_.nodes; ++node) {
    const bool own = is_node(worker) && worker / topology_.threads_per_node == node;
    if (own || node_states_[node] == NodeState::kAbsent) continue;
    if (is_node(worker) && node_states_[node] == NodeState::kLost) continue;
    fencing.waiting.insert(node);
  }
  changed(worker);
  end_if_fenced(worker);
}

void Registrar::end_if_fenced(WorkerId worker) {
  const auto found = fencing_.find(worker);
  if (found == fencing_.end() || !found->second.waiting.empty()) return;
  ClaimSlot& slot = table_->slot(worker);
  CHECK(slot.state.load() != ClaimState::kLive);  // nothing is granted while it is fenced
  const bool left = slot.state.load() == ClaimState::kLeaving;
  const ClaimState dead = is_node(worker) ? ClaimState::kDead : ClaimState::kDeparted;
  owners_[worker] = kAdrift;
  slot.state.store(left ? ClaimState::kFree : dead);
  fencing_.erase(found);
}

void Registrar::node_up(NodeId node, bool comes_back) {
  CHECK(node > 0 && node < topology_.nodes);
  node_states_[node] = NodeState::kUp;
  std::vector<WorkerId> ended;
  for (auto& [worker, fencing] : fencing_) {
    fencing.asked.erase(node);
    if (!comes_back) fencing.waiting.erase(node);
    ended.push_back(worker);
  }
  for (const WorkerId worker : ended) end_if_fenced(worker);
}

void Registrar::node_down(NodeId node) {
  CHECK(node > 0 && node < topology_.nodes);
  bool claimed = false;
  for (uint16_t t = 0; t < topology_.threads_per_node; ++t) {
    claimed |= table_->slot(topology_.worker_of(node, t)).state.load() != ClaimState::kFree;
  }
  node_states_[node] = claimed ? NodeState::kLost : NodeState::kAbsent;
  std::vector<WorkerId> ended;
  for (auto& [worker, fencing] : fencing_) {
    if (!claimed || is_node(worker)) fencing.waiting.erase(node);
    ended.push_back(worker);
  }
  for (const WorkerId worker : ended) end_if_fenced(worker);
}

std::vector<Membership::Claim> Registrar::take_fences(NodeId node) {
  CHECK(node > 0 && node < topology_.nodes);
  std::vector<Claim> fences;
  for (auto& [worker, fencing] : fencing_) {
    if (!fencing.waiting.contains(node) || !fencing.asked.insert(node).second) continue;
    fences.push_back({worker, fencing.incarnation});
  }
  return fences;
}

void Registrar::fenced(NodeId node, Claim dead) {
  CHECK(node > 0 && node < topology_.nodes);
  const auto found = fencing_.find(dead.worker);
  if (found == fencing_.end() || found->second.incarnation != dead.incarnation) return;
  found->second.waiting.erase(node);
  end_if_fenced(dead.worker);
}

bool Registrar::runs_here(const ClaimSlot& slot) const {
  if (slot.boot_id != self_.boot_id) return false;
  return HostProcess{slot.pid, static_cast<uint16_t>(slot.start_time)}.alive();
}

void Registrar::tick(uint64_t now_ns) {
  if (grace_ends_ns_ == 0 || now_ns < grace_ends_ns_) return;
  bool all_decided = true;
  for (WorkerId w = 0; w < topology_.workers_max; ++w) {
    const ClaimSlot& slot = table_->slot(w);
    if (owners_[w] != kAdrift || slot.state.load() != ClaimState::kLive) continue;
    // A process of this host that sleeps comes back when it has something to do.
    if (runs_here(slot)) {
      all_decided = false;
      continue;
    }
    begin_fencing(w, ClaimState::kDying);
  }
  grace_ends_ns_ = all_decided ? 0 : now_ns + 1'000'000'000;
}

std::vector<WorkerId> Registrar::departed() const {
  std::vector<WorkerId> workers;
  for (WorkerId w = topology_.node_workers(); w < topology_.workers_max; ++w) {
    if (table_->slot(w).state.load() == ClaimState::kDeparted) workers.push_back(w);
  }
  return workers;
}

void Registrar::release(WorkerId worker) {
  if (worker >= topology_.workers_max) return;
  ClaimSlot& slot = table_->slot(worker);
  if (slot.state.load() == ClaimState::kDeparted) slot.state.store(ClaimState::kFree);
}

TableMessage Registrar::changes_since(uint64_t version, bool with_tokens) const {
  std::vector<std::pair<uint64_t, WorkerId>> newer;
  for (WorkerId w = 0; w < topology_.workers_max; ++w) {
    if (changed_at_[w] > version) newer.emplace_back(changed_at_[w], w);
  }
  std::sort(newer.begin(), newer.end());
  TableMessage message;
  message.version = newer.size() > kTableEntriesMax ? newer[kTableEntriesMax - 1].first : version_;
  newer.resize(std::min(newer.size(), kTableEntriesMax));
  for (const auto& [at, worker] : newer) {
    const ClaimSlot& slot = table_->slot(worker);
    TableEntry entry;
    entry.worker = worker;
    if (slot.state.load() == ClaimState::kLive) {
      entry.incarnation = slot.incarnation;
      if (with_tokens) entry.token = slot.token;
    }
    message.entries.push_back(entry);
  }
  return message;
}

}  // namespace rdmacc
