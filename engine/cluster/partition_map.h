#pragma once
#include <vector>

#include "engine/storage/key_hash.h"
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

 private:
  const NodeId nodes_;
  const uint32_t replicas_;
};

}  // namespace rdmacc
