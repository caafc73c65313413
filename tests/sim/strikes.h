#pragma once
#include <memory>
#include <optional>
#include <vector>

#include "engine/storage/layout/region_layout.h"
#include "engine/storage/wire/structure_observer.h"
#include "rdma/base/random.h"
#include "rdma/sim/sim_fabric.h"

namespace rdmacc {

// Lets processes die where it matters, since a death at any event of a run hardly ever does: a node
// while it changes an index, which it has to repair when it is opened again; a coordinator, or a
// node, soon after a log entry was written, when a transaction is committed and not yet installed;
// a node in the middle of the WRITEs that install a row, or of the READ of a long one.
class Strikes {
 public:
  struct Counts {
    uint32_t in_changes = 0;  // nodes
    uint32_t coordinators_logged = 0, nodes_logged = 0;
    uint32_t nodes_in_rows = 0;
  };
  struct Struck {
    bool coordinator = false;
    WorkerId worker = 0;  // of a coordinator
    NodeId node = 0;
  };

  // What nodes tell of changes is passed on to `next`.
  Strikes(uint64_t seed, const Counts& counts, const Topology& topology, StructureObserver* next);
  // It sees what is written into the logs and into rows.
  void watch(SimFabric& fabric);
  // Nothing dies before: what loads the tables is not to use the deaths up.
  void begin() { left_ = counts_; }

  // What the node is to tell of its index.
  StructureObserver* at(NodeId node) { return observers_[node].get(); }
  // Once for each event: what dies now, if anything does.
  std::optional<Struck> due();
  void stop() { left_ = Counts(); }
  uint32_t struck() const { return count_; }

 private:
  class Observer;
  void may_strike(NodeId node, StructureChange change);
  void may_strike_log(NodeId node, const std::vector<Verb>& verbs);
  void may_strike_row(NodeId node, const std::vector<Verb>& verbs);
  void strike(const Struck& struck, uint64_t events_max);

  Random random_;
  const Counts counts_;
  Counts left_;
  const RegionLayout layout_;
  uint32_t count_ = 0;
  StructureObserver* const next_;
  std::vector<std::unique_ptr<StructureObserver>> observers_;
  std::optional<Struck> struck_;
  uint64_t events_to_go_ = 0;
};

}  // namespace rdmacc
