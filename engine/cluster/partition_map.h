#pragma once
#include <algorithm>
#include <vector>

#include "engine/storage/layout/key_hash.h"
#include "rdma/fabric/fabric.h"

namespace rdmacc {

// Which node stores a partition and which nodes keep its log. A value of one epoch: it never
// changes; a new epoch brings a new map.
class PartitionMap {
 public:
  // Partition p lives on node p mod nodes; its `replicas` backups are the nodes that follow.
  // CHECKs replicas < nodes.
  PartitionMap(NodeId nodes, uint32_t replicas);

  NodeId nodes() const { return nodes_; }
  uint32_t replicas() const { return replicas_; }
  NodeId primary(PartitionId partition) const { return static_cast<NodeId>(partition % nodes_); }
  NodeId primary_of(uint64_t key_hash) const { return primary(partition_of(key_hash)); }
  // The nodes that must hold the log of a transaction which wrote on `written` (a bit per node):
  // every backup of a written partition, or the primaries themselves when replicas = 0.
  std::vector<NodeId> log_nodes(const std::vector<bool>& written) const;
  // The same for one node that was written, added to `nodes`, which stay in their order.
  template <typename Nodes>
  void add_log_nodes(NodeId written, Nodes& nodes) const {
    const auto add = [&nodes](NodeId node) {
      const auto at = std::lower_bound(nodes.begin(), nodes.end(), node);
      if (at == nodes.end() || *at != node) nodes.insert(at, node);
    };
    if (replicas_ == 0) add(written);
    for (uint32_t r = 1; r <= replicas_; ++r) add(static_cast<NodeId>((written + r) % nodes_));
  }

 private:
  const NodeId nodes_;
  const uint32_t replicas_;
};

}  // namespace rdmacc
