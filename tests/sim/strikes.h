#pragma once
#include <memory>
#include <optional>
#include <vector>

#include "engine/storage/structure_observer.h"
#include "rdma/base/random.h"
#include "rdma/fabric/fabric.h"

namespace rdmacc {

// Lets a node die while it changes an index: a death at any event of a run hardly ever meets a
// split, and what is half done is what the node has to repair when it is opened again.
class Strikes {
 public:
  // What nodes tell of changes is passed on to `next`.
  Strikes(uint64_t seed, uint32_t count, NodeId nodes, StructureObserver* next);

  // What the node is to tell of its index.
  StructureObserver* at(NodeId node) { return observers_[node].get(); }
  // Once for each event: the node that dies now, if one does.
  std::optional<NodeId> due();
  void stop() { left_ = 0; }
  uint32_t struck() const { return count_; }

 private:
  class Observer;
  void may_strike(NodeId node, StructureChange change);

  Random random_;
  uint32_t left_, count_ = 0;
  StructureObserver* const next_;
  std::vector<std::unique_ptr<StructureObserver>> observers_;
  std::optional<NodeId> struck_;
  uint64_t events_to_go_ = 0;
};

}  // namespace rdmacc
