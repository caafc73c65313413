#pragma once
#include <map>
#include <mutex>

#include "rdma/bootstrap/membership.h"

namespace rdmacc {

// A cluster whose members are all in this process: what the registrar and the channels do, without
// either. Fabrics that need a Membership are tested with it. Thread-safe; outlives its members.
class MemberTable {
 public:
  explicit MemberTable(ClusterConfig config);
  MemberTable(const MemberTable&) = delete;
  MemberTable& operator=(const MemberTable&) = delete;

  Result<std::unique_ptr<Membership>> join();
  Result<std::unique_ptr<Membership>> join_as_node(NodeId node);
  // The worker's process is gone: every node fences it, then it counts as departed.
  void kill(WorkerId worker);

 private:
  class Member;
  enum class State { kFree, kLive, kEnding, kDeparted };
  struct Slot {
    State state = State::kFree;
    uint32_t incarnation = 0;
  };
  struct NodeSide {
    std::map<Membership::Topic, Membership::Handler> handlers;
    Membership::Fence fence;
  };

  void end(Membership::Claim claim, State state);
  Result<Membership::Claim> claim(WorkerId first, WorkerId end, const char* none);

  const ClusterConfig config_;
  std::mutex mutex_;
  uint64_t version_ = 0;
  std::vector<Slot> slots_;
  std::map<NodeId, NodeSide> nodes_;
};

}  // namespace rdmacc
