#include "tests/sim/aim/aimed_faults.h"

#include <algorithm>
#include <array>

#include "rdma/base/check.h"

namespace rdmacc {
namespace {

constexpr std::array kStageNames = {"read",    "lock",    "validate", "log",
                                    "install", "release", "order",    "acknowledged"};
constexpr std::array kMomentNames = {"before", "within", "after"};
constexpr std::array kRoleNames = {"coordinator dies",
                                   "participant dies",
                                   "log node dies",
                                   "coordinator and participant die",
                                   "two nodes die",
                                   "coordinator, then its recoverer",
                                   "coordinator dies, a copy damaged",
                                   "coordinator stands still",
                                   "participant stands still"};
static_assert(kStageNames.size() == kFaultStages && kMomentNames.size() == kFaultMoments &&
              kRoleNames.size() == kFaultRoles);

// Not always the first transaction that comes by.
constexpr uint32_t kStrikePercent = 30;
// A round takes some verbs, among the events of all others.
constexpr uint64_t kEventsWithin = 40, kEventsOfResolution = 120;

std::optional<FaultStage> fault_stage_of(Stage stage) {
  switch (stage) {
    case Stage::kRead:
      return FaultStage::kRead;
    case Stage::kLock:
      return FaultStage::kLock;
    case Stage::kValidate:
    case Stage::kRenew:
      return FaultStage::kValidate;
    case Stage::kLog:
      return FaultStage::kLog;
    case Stage::kCommit:
      return FaultStage::kInstall;
    case Stage::kRelease:
      return FaultStage::kRelease;
    case Stage::kBroadcast:
      return FaultStage::kOrder;
    case Stage::kForward:
      break;  // the nodes'
  }
  return std::nullopt;
}

}  // namespace

const char* name_of(FaultStage stage) { return kStageNames[static_cast<size_t>(stage)]; }
const char* name_of(FaultMoment moment) { return kMomentNames[static_cast<size_t>(moment)]; }
const char* name_of(FaultRole role) { return kRoleNames[static_cast<size_t>(role)]; }

class AimedFaults::Observer : public TxnObserver {
 public:
  Observer(AimedFaults& faults, WorkerId worker) : faults_(faults), worker_(worker) {}

  void stage_begins(Stage stage) override {
    if (!is_aim(stage)) return;
    faults_.reach(worker_, FaultMoment::kBefore);
    faults_.reach(worker_, FaultMoment::kWithin);
  }
  void stage_done(Protocol, Stage stage, Primitive, uint64_t) override {
    wrote_ = wrote_ || stage == Stage::kCommit || stage == Stage::kBroadcast;
    if (!is_aim(stage)) return;
    faults_.leave(worker_);
    faults_.reach(worker_, FaultMoment::kAfter);
  }
  void transaction_done(const TxnEnd& end) override {
    faults_.leave(worker_);
    if (faults_.aim_.stage == FaultStage::kAcknowledged && end.committed && wrote_) {
      faults_.reach(worker_, FaultMoment::kAfter);
    }
    wrote_ = false;
    if (!faults_.pending_ || faults_.target_ != worker_) faults_.seen_[worker_] = Seen();
  }

 private:
  bool is_aim(Stage stage) const { return fault_stage_of(stage) == faults_.aim_.stage; }

  AimedFaults& faults_;
  const WorkerId worker_;
  bool wrote_ = false;
};

AimedFaults::AimedFaults(const FaultAim& aim, uint64_t seed, const Topology& topology)
    : aim_(aim),
      random_(seed),
      topology_(topology),
      layout_(topology),
      seen_(topology.workers_max),
      left_(aim.count) {}

AimedFaults::~AimedFaults() = default;

void AimedFaults::watch(SimFabric& fabric) {
  fabric.set_rewriter([this](WorkerId worker, NodeId node, std::vector<Verb>& verbs) {
    note_chain(worker, node, verbs);
  });
}

void AimedFaults::observe(Coordinator& coordinator) {
  observers_.push_back(std::make_unique<Observer>(*this, coordinator.worker().id()));
  coordinator.set_observer(observers_.back().get());
}

// A node's own worker writes records, too, where it was asked to; the ring says whose it is.
void AimedFaults::note_chain(WorkerId worker, NodeId node, const std::vector<Verb>& verbs) {
  for (const Verb& verb : verbs) {
    if (verb.remote_offset >= layout_.pages) {
      std::vector<NodeId>& nodes = seen_[worker].nodes;
      if (std::find(nodes.begin(), nodes.end(), node) == nodes.end()) nodes.push_back(node);
      continue;
    }
    if (verb.remote_offset < layout_.log_rings || verb.remote_offset >= layout_.order) continue;
    const uint64_t ring = (verb.remote_offset - layout_.log_rings) / (64 + kLogRingBytes);
    CHECK(ring < seen_.size());
    if (verb.opcode == Opcode::kWrite && verb.bytes > sizeof(LogEntryHeader)) {
      seen_[ring].copies.push_back({node, verb.remote_offset, verb.bytes});
    }
    const bool resolves = verb.opcode == Opcode::kRead && recoverer_ && ring == target_;
    if (resolves && !recovering_) {
      recovering_ = true;
      events_to_go_ = random_.below(kEventsOfResolution);
    }
  }
}

void AimedFaults::reach(WorkerId worker, FaultMoment moment) {
  if (moment != aim_.moment || left_ == 0 || pending_ || recoverer_) return;
  if (!random_.percent(kStrikePercent)) return;
  pending_ = true;
  target_ = worker;
  events_to_go_ = moment == FaultMoment::kWithin ? 1 + random_.below(kEventsWithin) : 0;
}

// What was to come within the stage comes too late.
bool AimedFaults::leave(WorkerId worker) {
  const bool late = pending_ && target_ == worker && aim_.moment == FaultMoment::kWithin;
  if (late) pending_ = false;
  return late;
}

std::vector<AimedFaults::Action> AimedFaults::due() {
  if (!pending_ && !recovering_) return {};
  if (events_to_go_ > 0) {
    --events_to_go_;
    return {};
  }
  if (recovering_) {
    recoverer_ = recovering_ = false;
    return {{.kind = Action::kRestartNode, .node = 0}};
  }
  pending_ = false;
  --left_;
  return fail(target_);
}

NodeId AimedFaults::participant(WorkerId worker) {
  const std::vector<NodeId>& nodes = seen_[worker].nodes;
  return nodes.empty() ? any_node() : nodes[random_.below(nodes.size())];
}

NodeId AimedFaults::log_node(WorkerId worker) {
  const Seen& seen = seen_[worker];
  for (const Copy& copy : seen.copies) {
    const bool uses =
        std::find(seen.nodes.begin(), seen.nodes.end(), copy.node) != seen.nodes.end();
    if (!uses) return copy.node;
  }
  return seen.copies.empty() ? any_node() : seen.copies[random_.below(seen.copies.size())].node;
}

std::vector<AimedFaults::Action> AimedFaults::fail(WorkerId worker) {
  const NodeId node = participant(worker);
  const auto other = static_cast<NodeId>((node + 1) % topology_.nodes);
  const Action kill{.kind = Action::kKillCoordinator, .worker = worker};
  const Action first{.kind = Action::kKillCoordinator, .worker = worker, .last = false};
  switch (aim_.role) {
    case FaultRole::kCoordinator:
      return {kill};
    case FaultRole::kParticipant:
      return {{.kind = Action::kRestartNode, .node = node}};
    case FaultRole::kLogNode:
      return {{.kind = Action::kRestartNode, .node = log_node(worker)}};
    case FaultRole::kCoordinatorAndParticipant:
      return {first, {.kind = Action::kRestartNode, .node = node}};
    case FaultRole::kTwoNodes:
      return {{.kind = Action::kRestartNode, .node = node, .last = false},
              {.kind = Action::kRestartNode, .node = other}};
    case FaultRole::kCoordinatorAndRecoverer:
      recoverer_ = true;
      return {first};
    case FaultRole::kDamagedCopy: {
      const std::vector<Copy>& copies = seen_[worker].copies;
      // A record that is committed, and of which there is no other copy, would be lost.
      const bool logging = aim_.stage == FaultStage::kLog && aim_.moment != FaultMoment::kAfter;
      const bool others =
          logging || std::any_of(copies.begin(), copies.end(), [&](const Copy& copy) {
            return copy.node != copies.front().node;
          });
      if (copies.empty() || !others) return {first};
      const Copy& copy = copies[random_.below(copies.size())];
      // Behind the state, which no checksum covers.
      const uint64_t offset = copy.offset + 8 + random_.below(copy.bytes - 8);
      return {first, {.kind = Action::kFlipBit, .node = copy.node, .offset = offset}};
    }
    case FaultRole::kStoppedCoordinator:
      return {{.kind = Action::kHoldCoordinator, .worker = worker}};
    case FaultRole::kStoppedParticipant:
      return {{.kind = Action::kHoldNode, .node = node}};
  }
  CHECK(false);
}

}  // namespace rdmacc
