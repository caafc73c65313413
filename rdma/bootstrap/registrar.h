#pragma once
#include <functional>
#include <map>
#include <memory>
#include <set>
#include <vector>

#include "rdma/bootstrap/claim_table.h"

namespace rdmacc {

// Node 0's part: gives out worker ids and incarnations, notices which members are gone, and has a
// dead worker fenced by every node before any member is told that it departed (F6). Knows no
// sockets; used under its member's mutex.
class Registrar {
 public:
  using Owner = uint64_t;  // a channel of node 0; 0: none
  using Claim = Membership::Claim;
  static constexpr Owner kAdrift = 0;
  // How long a process may take to come back after a restart of node 0.
  static constexpr uint64_t kGraceNs = 10'000'000'000;

  // Told of every change that members see; node 0 itself fences a worker that goes before it
  // returns.
  using OnChange = std::function<void(WorkerId worker, uint32_t incarnation)>;
  static Result<std::unique_ptr<Registrar>> open(const ClusterConfig& config, OnChange on_change);

  uint64_t epoch_ns() const { return table_->epoch_ns(); }
  uint64_t memory_id() const { return table_->memory_id(); }

  Result<ClaimProof> claim(Owner owner, const ProcessIdentity& process);
  // nullopt in the result: the predecessor is being fenced, ask again when fenced() was called.
  Result<std::optional<ClaimProof>> claim_node(NodeId node, uint16_t thread, Owner owner,
                                               const ProcessIdentity& process);
  // A process has come back on another channel; false: the claim stands no more.
  bool attach(const ClaimProof& proof, Owner owner);
  void leave(Claim claim, Owner owner);
  // True while it is being fenced by nodes that can be reached.
  bool leaving(Claim claim) const;
  void owner_gone(Owner owner);
  std::vector<Claim> claims_of(Owner owner) const;

  // A node's process is there: a new one, which has no connection of any worker's, or one that
  // comes back.
  void node_up(NodeId node, bool comes_back);
  void node_down(NodeId node);
  // What `node` has not been asked to fence since it came up.
  std::vector<Claim> take_fences(NodeId node);
  void fenced(NodeId node, Claim dead);
  // Gives up those that do not come back.
  void tick(uint64_t now_ns);

  std::vector<WorkerId> departed() const;
  void release(WorkerId worker);

  uint64_t version() const { return version_; }
  // What has changed after `version`, oldest change first, as much as a message takes.
  TableMessage changes_since(uint64_t version, bool with_tokens) const;

 private:
  enum class NodeState : uint8_t { kAbsent, kUp, kLost };
  struct Fencing {
    uint32_t incarnation = 0;
    std::set<NodeId> waiting;
    std::set<NodeId> asked;
  };

  Registrar(const ClusterConfig& config, OnChange on_change, std::unique_ptr<ClaimTable> table);
  void start_over();
  ClaimProof grant(WorkerId worker, Owner owner, const ProcessIdentity& process);
  void begin_fencing(WorkerId worker, ClaimState state);
  void end_if_fenced(WorkerId worker);
  void changed(WorkerId worker);
  bool is_node(WorkerId worker) const { return topology_.is_node_worker(worker); }
  bool holds(const ClaimSlot& slot, Claim claim) const;
  bool runs_here(const ClaimSlot& slot) const;

  const Topology topology_;
  const OnChange on_change_;
  const std::unique_ptr<ClaimTable> table_;
  const ProcessIdentity self_ = ProcessIdentity::self();
  std::vector<Owner> owners_;         // by worker
  std::vector<uint64_t> changed_at_;  // by worker: the version; 0 never
  std::vector<NodeState> node_states_;
  std::map<WorkerId, Fencing> fencing_;
  uint64_t version_ = 0;
  uint64_t grace_ends_ns_ = 0;
};

}  // namespace rdmacc
