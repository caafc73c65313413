#pragma once
#include <memory>
#include <string>
#include <vector>

#include "engine/session.h"
#include "engine/storage/layout/region_layout.h"
#include "engine/txn/transaction/txn_observer.h"
#include "rdma/base/random.h"
#include "rdma/sim/sim_fabric.h"

// Faults at a step of a stage of a transaction, one kind in a run: which process fails, at which
// stage, before its verbs, in the midst of them, or after them.

namespace rdmacc {

enum class FaultStage : uint8_t {
  kRead,
  kLock,
  kValidate,  // SUNDIAL's renewal, too
  kLog,
  kInstall,
  kRelease,
  kOrder,         // CALVIN's: from the request to its outcome
  kAcknowledged,  // a commit that wrote has been told
};
constexpr size_t kFaultStages = 8;
const char* name_of(FaultStage stage);

enum class FaultMoment : uint8_t { kBefore, kWithin, kAfter };
constexpr size_t kFaultMoments = 3;
const char* name_of(FaultMoment moment);

enum class FaultRole : uint8_t {
  kCoordinator,  // dies
  kParticipant,  // a node whose rows it uses dies, and comes back
  kLogNode,  // one that has a copy of its record, other rows than its own if there is such a one
  kCoordinatorAndParticipant,  // both at once
  kTwoNodes,                   // at once
  kCoordinatorAndRecoverer,    // node 0 dies while it resolves the coordinator
  kDamagedCopy,                // it dies, and a bit of one copy of its record is another one
  kStoppedCoordinator,         // does nothing for long
  kStoppedParticipant,
};
constexpr size_t kFaultRoles = 9;
const char* name_of(FaultRole role);

struct FaultAim {
  FaultRole role = FaultRole::kCoordinator;
  FaultStage stage = FaultStage::kLog;
  FaultMoment moment = FaultMoment::kBefore;
  uint32_t count = 1;  // at most
};

class AimedFaults {
 public:
  struct Action {
    enum Kind : uint8_t {
      kKillCoordinator,
      kRestartNode,
      kHoldCoordinator,
      kHoldNode,
      kFlipBit
    } kind;
    WorkerId worker = 0;
    NodeId node = 0;
    uint64_t offset = 0;
    bool last = true;  // of a fault
  };

  AimedFaults(const FaultAim& aim, uint64_t seed, const Topology& topology);
  ~AimedFaults();
  // It learns where transactions write.
  void watch(SimFabric& fabric);
  // The coordinator's transactions are aimed at from now on.
  void observe(Coordinator& coordinator);

  // Once for each event: what fails now.
  std::vector<Action> due();
  void note_struck(const Action& action) { struck_ += action.last ? 1 : 0; }
  uint32_t struck() const { return struck_; }

 private:
  struct Copy {
    NodeId node;
    uint64_t offset, bytes;
  };
  // What is known of the present transaction of a coordinator.
  struct Seen {
    std::vector<NodeId> nodes;  // whose pages it has used
    std::vector<Copy> copies;   // of its log record
  };
  class Observer;

  void note_chain(WorkerId worker, NodeId node, const std::vector<Verb>& verbs);
  void reach(WorkerId worker, FaultMoment moment);
  bool leave(WorkerId worker);
  NodeId any_node() { return static_cast<NodeId>(random_.below(topology_.nodes)); }
  NodeId participant(WorkerId worker);
  NodeId log_node(WorkerId worker);
  std::vector<Action> fail(WorkerId worker);

  const FaultAim aim_;
  Random random_;
  const Topology topology_;
  const RegionLayout layout_;
  std::vector<Seen> seen_;  // by worker
  std::vector<std::unique_ptr<Observer>> observers_;
  uint32_t left_;
  uint32_t struck_ = 0;
  bool pending_ = false;  // the fault is on its way
  WorkerId target_ = 0;
  uint64_t events_to_go_ = 0;
  bool recoverer_ = false;  // it is the recoverer's turn; target_ is whom it resolves
  bool recovering_ = false;
};

}  // namespace rdmacc
