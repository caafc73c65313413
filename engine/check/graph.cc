#include "engine/check/graph.h"

#include <algorithm>
#include <limits>

#include "rdma/base/check.h"

namespace rdmacc {
namespace {

constexpr uint32_t kNone = std::numeric_limits<uint32_t>::max();
// Shortest cycles are searched from so many nodes of a component; the rest rarely has shorter ones.
constexpr uint32_t kCycleStarts = 256;

// Edges grouped by their first node: edge numbers of node n are order[start[n] .. start[n + 1]).
struct Adjacency {
  std::vector<uint32_t> start, order;

  Adjacency(uint32_t nodes, std::span<const DependencyEdge> edges) : start(nodes + 1, 0) {
    CHECK(edges.size() < kNone);
    for (const DependencyEdge& edge : edges) {
      CHECK(edge.from < nodes && edge.to < nodes);
      ++start[edge.from + 1];
    }
    for (uint32_t n = 0; n < nodes; ++n) start[n + 1] += start[n];
    order.resize(edges.size());
    std::vector<uint32_t> next(start.begin(), start.end() - 1);
    for (uint32_t e = 0; e < edges.size(); ++e) order[next[edges[e].from]++] = e;
  }
};

// Tarjan's strongly connected components without recursion: a history may be one long chain.
class Components {
 public:
  Components(uint32_t nodes, std::span<const DependencyEdge> edges, const Adjacency& adjacency)
      : edges_(edges),
        adjacency_(adjacency),
        index_(nodes, kNone),
        low_(nodes, 0),
        on_stack_(nodes, false),
        component_(nodes, kNone) {}

  // The nodes of the smallest component of more than one node; empty when there is none.
  std::vector<uint32_t> smallest_cyclic() {
    for (uint32_t n = 0; n < index_.size(); ++n) {
      if (index_[n] == kNone) visit(n);
    }
    return std::move(best_);
  }
  uint32_t of(uint32_t node) const { return component_[node]; }

 private:
  struct Frame {
    uint32_t node, next;
  };

  void enter(uint32_t node) {
    index_[node] = low_[node] = counter_++;
    stack_.push_back(node);
    on_stack_[node] = true;
    frames_.push_back({node, adjacency_.start[node]});
  }

  void visit(uint32_t root) {
    enter(root);
    while (!frames_.empty()) {
      const uint32_t node = frames_.back().node;
      if (frames_.back().next < adjacency_.start[node + 1]) {
        const uint32_t to = edges_[adjacency_.order[frames_.back().next++]].to;
        if (index_[to] == kNone) {
          enter(to);
        } else if (on_stack_[to]) {
          low_[node] = std::min(low_[node], index_[to]);
        }
        continue;
      }
      frames_.pop_back();
      if (!frames_.empty()) {
        const uint32_t parent = frames_.back().node;
        low_[parent] = std::min(low_[parent], low_[node]);
      }
      if (low_[node] == index_[node]) close(node);
    }
  }

  void close(uint32_t root) {
    std::vector<uint32_t> members;
    uint32_t node = kNone;
    do {
      node = stack_.back();
      stack_.pop_back();
      on_stack_[node] = false;
      component_[node] = root;
      members.push_back(node);
    } while (node != root);
    if (members.size() > 1 && (best_.empty() || members.size() < best_.size())) {
      best_ = std::move(members);
    }
  }

  std::span<const DependencyEdge> edges_;
  const Adjacency& adjacency_;
  std::vector<uint32_t> index_, low_;
  std::vector<bool> on_stack_;
  std::vector<uint32_t> component_;
  std::vector<uint32_t> stack_, best_;
  std::vector<Frame> frames_;
  uint32_t counter_ = 0;
};

}  // namespace

std::vector<DependencyEdge> find_cycle(uint32_t nodes, std::span<const DependencyEdge> edges) {
  const Adjacency adjacency(nodes, edges);
  Components components(nodes, edges, adjacency);
  std::vector<uint32_t> members = components.smallest_cyclic();
  std::vector<DependencyEdge> shortest;
  if (members.empty()) return shortest;
  std::sort(members.begin(), members.end());

  // Breadth first from each start, within its component, until an edge leads back to it.
  std::vector<uint32_t> reached_by(nodes, kNone), queue;
  const uint32_t component = components.of(members[0]);
  for (uint32_t s = 0; s < std::min<size_t>(members.size(), kCycleStarts); ++s) {
    const uint32_t origin = members[s];
    for (const uint32_t member : members) reached_by[member] = kNone;
    queue.assign(1, origin);
    uint32_t closing = kNone;
    for (size_t at = 0; at < queue.size() && closing == kNone; ++at) {
      const uint32_t node = queue[at];
      for (uint32_t i = adjacency.start[node]; i < adjacency.start[node + 1]; ++i) {
        const uint32_t e = adjacency.order[i];
        const uint32_t to = edges[e].to;
        if (to == node || components.of(to) != component) continue;
        if (to == origin) {
          closing = e;
          break;
        }
        if (reached_by[to] != kNone) continue;
        reached_by[to] = e;
        queue.push_back(to);
      }
    }
    CHECK(closing != kNone);  // every node of a component of more than one lies on a cycle
    std::vector<DependencyEdge> cycle{edges[closing]};
    for (uint32_t node = edges[closing].from; node != origin;) {
      const DependencyEdge& edge = edges[reached_by[node]];
      cycle.push_back(edge);
      node = edge.from;
    }
    std::reverse(cycle.begin(), cycle.end());
    if (shortest.empty() || cycle.size() < shortest.size()) shortest = std::move(cycle);
    if (shortest.size() == 2) break;
  }
  return shortest;
}

}  // namespace rdmacc
