#include "engine/check/cycle.h"

#include <algorithm>
#include <limits>

#include "rdma/base/check.h"

namespace rdmacc {
namespace {

constexpr uint32_t kNone = std::numeric_limits<uint32_t>::max();

// Breadth first from one start after the other; each must find a shorter way than those before.
class PathSearch {
 public:
  PathSearch(const DependencyGraph& graph, uint64_t steps_max)
      : graph_(graph), steps_max_(steps_max), reached_by_(graph.nodes(), kNone) {}

  // `enters(node)`: ways may lead through it.
  template <class Goal, class Enters>
  void search(uint32_t start, const Goal& is_goal, const Enters& enters) {
    queue_.assign(1, {start, 0});
    const uint32_t goal_edge = breadth_first(is_goal, enters);
    if (goal_edge != kNone) {
      shortest_.assign(1, graph_.edge(goal_edge));
      while (shortest_.back().from != start) {
        shortest_.push_back(graph_.edge(reached_by_[shortest_.back().from]));
      }
      std::reverse(shortest_.begin(), shortest_.end());
    }
    for (const Reached& reached : queue_) reached_by_[reached.node] = kNone;
  }

  bool exhausted() const { return !shortest_.empty() && steps_ >= steps_max_; }
  const std::vector<DependencyEdge>& shortest() const { return shortest_; }

 private:
  struct Reached {
    uint32_t node, distance;
  };

  // The edge that reaches a goal nearer than any before; kNone if none does.
  template <class Goal, class Enters>
  uint32_t breadth_first(const Goal& is_goal, const Enters& enters) {
    for (size_t at = 0; at < queue_.size() && !exhausted(); ++at) {
      const Reached reached = queue_[at];
      if (!shortest_.empty() && reached.distance + 1 >= shortest_.size()) return kNone;
      for (const uint32_t e : graph_.out_of(reached.node)) {
        ++steps_;
        const uint32_t to = graph_.edge(e).to;
        if (to == reached.node) continue;
        if (is_goal(to)) return e;
        if (reached_by_[to] != kNone || to == queue_[0].node || !enters(to)) continue;
        reached_by_[to] = e;
        queue_.push_back({to, reached.distance + 1});
      }
    }
    return kNone;
  }

  const DependencyGraph& graph_;
  const uint64_t steps_max_;
  uint64_t steps_ = 0;
  std::vector<uint32_t> reached_by_;  // edge, by node; kNone outside a search
  std::vector<Reached> queue_;
  std::vector<DependencyEdge> shortest_;
};

// Of the edges between the same two nodes the strongest kind, of equal ones one on `key`.
DependencyEdge strongest(const DependencyGraph& graph, const DependencyEdge& edge, uint32_t key) {
  DependencyEdge best = edge;
  for (const uint32_t e : graph.out_of(edge.from)) {
    const DependencyEdge& other = graph.edge(e);
    if (other.to != edge.to || other.kind > best.kind) continue;
    if (other.kind < best.kind || (best.key != key && other.key == key)) best = other;
  }
  return best;
}

}  // namespace

std::vector<DependencyEdge> shortest_cycle(const DependencyGraph& graph,
                                           const Components& components,
                                           std::span<const uint32_t> members, uint64_t steps_max) {
  CHECK(members.size() > 1);
  const uint32_t component = components.component_of[members[0]];
  PathSearch search(graph, steps_max);
  for (const uint32_t start : members) {
    search.search(
        start, [start](uint32_t node) { return node == start; },
        [&](uint32_t node) { return components.component_of[node] == component; });
    if (search.shortest().size() == 2 || search.exhausted()) break;
  }
  std::vector<DependencyEdge> cycle = search.shortest();
  CHECK(cycle.size() > 1);  // every node of a component of more than one lies on a cycle
  // Two turns: the second one knows which keys the first has chosen.
  for (size_t turn = 0; turn < 2; ++turn) {
    for (size_t i = 0; i < cycle.size(); ++i) {
      cycle[i] = strongest(graph, cycle[i], cycle[(i + 1) % cycle.size()].key);
    }
  }
  return cycle;
}

std::vector<DependencyEdge> shortest_path(
    const DependencyGraph& graph, std::span<const uint32_t> starts,
    const std::function<bool(uint32_t start, uint32_t node)>& is_goal, uint64_t steps_max) {
  PathSearch search(graph, steps_max);
  for (const uint32_t start : starts) {
    search.search(
        start, [&](uint32_t node) { return is_goal(start, node); }, [](uint32_t) { return true; });
    if (search.shortest().size() == 1 || search.exhausted()) break;
  }
  std::vector<DependencyEdge> path = search.shortest();
  for (DependencyEdge& edge : path) edge = strongest(graph, edge, edge.key);
  return path;
}

}  // namespace rdmacc
