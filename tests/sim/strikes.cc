#include "tests/sim/strikes.h"

namespace rdmacc {
namespace {

constexpr uint32_t kStrikePercent = 15;
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

Strikes::Strikes(uint64_t seed, uint32_t count, NodeId nodes, StructureObserver* next)
    : random_(seed), left_(count), next_(next) {
  for (NodeId node = 0; node < nodes; ++node) {
    observers_.push_back(std::make_unique<Observer>(*this, node));
  }
}

// A short change is soon over: half of the strikes come at once.
void Strikes::may_strike(NodeId node, StructureChange change) {
  const bool lasts = change == StructureChange::kSplit || change == StructureChange::kClean ||
                     change == StructureChange::kUnlink || change == StructureChange::kDrop;
  if (left_ == 0 || struck_ || !lasts || !random_.percent(kStrikePercent)) return;
  --left_;
  struck_ = node;
  events_to_go_ = random_.below(random_.percent(50) ? kEventsMax / 10 : kEventsMax);
}

std::optional<NodeId> Strikes::due() {
  if (!struck_) return std::nullopt;
  if (events_to_go_ > 0) {
    --events_to_go_;
    return std::nullopt;
  }
  ++count_;
  return std::exchange(struck_, std::nullopt);
}

}  // namespace rdmacc
