#include "engine/cluster/partition_map.h"

#include "rdma/base/check.h"

namespace rdmacc {

PartitionMap::PartitionMap(NodeId nodes, uint32_t replicas) : nodes_(nodes), replicas_(replicas) {
  CHECK(nodes > 0);
  CHECK(replicas < nodes);
}

std::vector<NodeId> PartitionMap::log_nodes(const std::vector<bool>& written) const {
  CHECK(written.size() <= nodes_);
  std::vector<bool> holds(nodes_, false);
  for (size_t node = 0; node < written.size(); ++node) {
    if (!written[node]) continue;
    if (replicas_ == 0) holds[node] = true;
    for (uint32_t r = 1; r <= replicas_; ++r) holds[(node + r) % nodes_] = true;
  }
  std::vector<NodeId> nodes;
  for (size_t node = 0; node < holds.size(); ++node) {
    if (holds[node]) nodes.push_back(static_cast<NodeId>(node));
  }
  return nodes;
}

}  // namespace rdmacc
