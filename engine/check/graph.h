#pragma once
#include <cstdint>
#include <span>
#include <vector>

#include "rdma/base/base.h"

// The dependency graph of the checker: nodes are transactions (by their place in the history),
// edges say what must come before what in any serial order, and why. One thread.

namespace rdmacc {

enum class Dependency : uint8_t {
  kWriteWrite,  // `to` made the version after `from`'s
  kWriteRead,   // `to` read `from`'s version
  kReadWrite,   // `to` made the version after the one that `from` read
  kDeleteMiss,  // `to` missed the key that `from` had deleted
  kMissInsert,  // `from` missed the key that `to` then inserted
};

struct DependencyEdge {
  uint64_t from_stamp = 0;  // version or gap stamp on each side
  uint64_t to_stamp = 0;
  uint32_t from = 0, to = 0;
  uint32_t key = 0;  // KeyHistories' number of the key
  Dependency kind = Dependency::kWriteWrite;
};

// A short cycle as consecutive edges (the last one leads back to the first's `from`); empty when
// the graph has none. Edges from a node to itself are no cycle.
std::vector<DependencyEdge> find_cycle(uint32_t nodes, std::span<const DependencyEdge> edges);

}  // namespace rdmacc
