#include "tests/sim/strikes.h"

namespace rdmacc {
namespace {

constexpr uint32_t kStrikePercent = 15, kStrikeLogPercent = 8, kStrikeInstallPercent = 15;
constexpr uint32_t kStrikeReadPercent = 8, kReadBytesShort = 64;
// An install writes a row and its stamp, and unlocks it.
constexpr int64_t kInstallWritesMin = 3;
constexpr uint64_t kEventsPerVerb = 20;
// A split takes some forty events of its own, among those of all others.
constexpr uint64_t kEventsMax = 400;

}  // namespace

class Strikes::Observer : public StructureObserver {
 public:
  Observer(Strikes& strikes, NodeId node) : strikes_(strikes), node_(node) {}

  uint64_t begins(StructureChange change, TableId table) override {
    strikes_.may_strike(node_, change);
    return strikes_.next_->begins(change, table);
  }
  void ends(uint64_t name, bool happened) override { strikes_.next_->ends(name, happened); }

 private:
  Strikes& strikes_;
  const NodeId node_;
};

Strikes::Strikes(uint64_t seed, const Counts& counts, const Topology& topology,
                 StructureObserver* next)
    : random_(seed), counts_(counts), layout_(topology), next_(next) {
  for (NodeId node = 0; node < topology.nodes; ++node) {
    observers_.push_back(std::make_unique<Observer>(*this, node));
  }
}

void Strikes::watch(SimFabric& fabric) {
  fabric.set_rewriter([this](WorkerId, NodeId node, std::vector<Verb>& verbs) {
    may_strike_log(node, verbs);
    may_strike_row(node, verbs);
  });
}

void Strikes::strike(const Struck& struck, uint64_t events_max) {
  struck_ = struck;
  events_to_go_ = random_.below(events_max);
}

void Strikes::may_strike(NodeId node, StructureChange change) {
  const bool lasts = change == StructureChange::kSplit || change == StructureChange::kClean ||
                     change == StructureChange::kUnlink || change == StructureChange::kDrop;
  if (left_.in_changes == 0 || struck_ || !lasts || !random_.percent(kStrikePercent)) return;
  --left_.in_changes;
  // A short change is soon over: half of the strikes come at once.
  strike({.node = node}, random_.percent(50) ? kEventsMax / 10 : kEventsMax);
}

// Where an entry is written says whose it is, whichever process writes it.
void Strikes::may_strike_log(NodeId node, const std::vector<Verb>& verbs) {
  if (left_.coordinators_logged + left_.nodes_logged == 0 || struck_) return;
  for (const Verb& verb : verbs) {
    const bool logs = verb.opcode == Opcode::kWrite && verb.remote_offset >= layout_.log_rings &&
                      verb.remote_offset < layout_.order;
    if (!logs) continue;
    if (!random_.percent(kStrikeLogPercent)) return;
    const bool coordinator =
        left_.nodes_logged == 0 || (left_.coordinators_logged > 0 && random_.percent(50));
    --(coordinator ? left_.coordinators_logged : left_.nodes_logged);
    const uint64_t ring = (verb.remote_offset - layout_.log_rings) / (64 + kLogRingBytes);
    return strike({coordinator, static_cast<WorkerId>(ring), node},
                  random_.percent(50) ? kEventsMax / 10 : kEventsMax);
  }
}

// So soon that some of the verbs have arrived and others have not, among the events of all others.
void Strikes::may_strike_row(NodeId node, const std::vector<Verb>& verbs) {
  if (left_.nodes_in_rows == 0 || struck_) return;
  int64_t writes = 0;
  bool reads_long = false;
  for (const Verb& verb : verbs) {
    if (verb.remote_offset < layout_.pages) continue;
    writes += verb.opcode == Opcode::kWrite ? 1 : 0;
    reads_long = reads_long || (verb.opcode == Opcode::kRead && verb.bytes > kReadBytesShort);
  }
  const bool drawn = writes >= kInstallWritesMin ? random_.percent(kStrikeInstallPercent)
                     : reads_long                ? random_.percent(kStrikeReadPercent)
                                                 : false;
  if (!drawn) return;
  --left_.nodes_in_rows;
  strike({.node = node}, (random_.percent(40) ? 2 : kEventsPerVerb) * verbs.size());
}

std::optional<Strikes::Struck> Strikes::due() {
  if (!struck_) return std::nullopt;
  if (events_to_go_ > 0) {
    --events_to_go_;
    return std::nullopt;
  }
  ++count_;
  return std::exchange(struck_, std::nullopt);
}

}  // namespace rdmacc
