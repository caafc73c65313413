#pragma once
#include <cstdint>
#include <span>
#include <vector>

#include "rdma/base/base.h"

// The dependency graph of the checker: nodes are transactions (by their place in the history),
// edges say what must come before what in any serial order, and why. Constant once built.

namespace rdmacc {

// In the order of their strength: an anomaly is named after the strongest edges of its cycle.
enum class Dependency : uint8_t {
  kWriteWrite,  // `to` made the version after `from`'s
  kWriteLater,  // `to` made a later version than `from`'s: several ww in one, for words alone
  kWriteRead,   // `to` read `from`'s version
  kDeleteMiss,  // `to` missed the key that `from` had deleted: wr, too
  kReadWrite,   // `to` made the version after the one that `from` read
  kMissInsert,  // `from` missed the key that `to` then inserted: rw, too
};

constexpr bool is_anti_dependency(Dependency kind) {
  return kind == Dependency::kReadWrite || kind == Dependency::kMissInsert;
}

struct DependencyEdge {
  uint64_t from_stamp = 0;  // version or gap stamp on each side
  uint64_t to_stamp = 0;
  uint32_t from = 0, to = 0;
  uint32_t key = 0;  // KeyHistories' number of the key
  Dependency kind = Dependency::kWriteWrite;
  bool by_scan = false;  // the key was missed by a scan, not looked up
};

class DependencyGraph {
 public:
  // The edges must outlive it.
  DependencyGraph(uint32_t nodes, std::span<const DependencyEdge> edges);

  uint32_t nodes() const { return static_cast<uint32_t>(start_.size() - 1); }
  const DependencyEdge& edge(uint32_t number) const { return edges_[number]; }
  // Numbers of the edges that lead away from the node.
  std::span<const uint32_t> out_of(uint32_t node) const {
    return std::span(order_).subspan(start_[node], start_[node + 1] - start_[node]);
  }

 private:
  std::span<const DependencyEdge> edges_;
  std::vector<uint32_t> start_, order_;  // edges of node n are order_[start_[n] .. start_[n + 1])
};

// Strongly connected components; an edge from a node to itself makes no cycle.
struct Components {
  // Any node comes after all that it leads to, unless both are of one component.
  std::vector<uint32_t> last_first;
  std::vector<uint32_t> component_of;  // the same number: the same component
  // The nodes of the smallest component of more than one; empty when the graph has no cycle.
  std::vector<uint32_t> smallest_cyclic;
};

Components find_components(const DependencyGraph& graph);

}  // namespace rdmacc
