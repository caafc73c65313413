#include "engine/check/graph.h"

#include <algorithm>
#include <limits>

#include "rdma/base/check.h"

namespace rdmacc {
namespace {

constexpr uint32_t kNone = std::numeric_limits<uint32_t>::max();

// Tarjan's algorithm without recursion: a history may be one long chain.
class ComponentSearch {
 public:
  explicit ComponentSearch(const DependencyGraph& graph)
      : graph_(graph),
        index_(graph.nodes(), kNone),
        low_(graph.nodes(), 0),
        on_stack_(graph.nodes(), false) {
    found_.component_of.assign(graph.nodes(), kNone);
    found_.last_first.reserve(graph.nodes());
  }

  Components run() {
    for (uint32_t n = 0; n < graph_.nodes(); ++n) {
      if (index_[n] == kNone) visit(n);
    }
    std::sort(found_.smallest_cyclic.begin(), found_.smallest_cyclic.end());
    return std::move(found_);
  }

 private:
  struct Frame {
    uint32_t node, next;
  };

  void enter(uint32_t node) {
    index_[node] = low_[node] = counter_++;
    stack_.push_back(node);
    on_stack_[node] = true;
    frames_.push_back({node, 0});
  }

  void visit(uint32_t root) {
    enter(root);
    while (!frames_.empty()) {
      const uint32_t node = frames_.back().node;
      const std::span<const uint32_t> out = graph_.out_of(node);
      if (frames_.back().next < out.size()) {
        const uint32_t to = graph_.edge(out[frames_.back().next++]).to;
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
      found_.component_of[node] = root;
      found_.last_first.push_back(node);
      members.push_back(node);
    } while (node != root);
    std::vector<uint32_t>& best = found_.smallest_cyclic;
    if (members.size() > 1 && (best.empty() || members.size() < best.size())) {
      best = std::move(members);
    }
  }

  const DependencyGraph& graph_;
  Components found_;
  std::vector<uint32_t> index_, low_;
  std::vector<bool> on_stack_;
  std::vector<uint32_t> stack_;
  std::vector<Frame> frames_;
  uint32_t counter_ = 0;
};

}  // namespace

DependencyGraph::DependencyGraph(uint32_t nodes, std::span<const DependencyEdge> edges)
    : edges_(edges), start_(nodes + 1, 0), order_(edges.size()) {
  CHECK(edges.size() < kNone);
  for (const DependencyEdge& edge : edges) {
    CHECK(edge.from < nodes && edge.to < nodes);
    ++start_[edge.from + 1];
  }
  for (uint32_t n = 0; n < nodes; ++n) start_[n + 1] += start_[n];
  std::vector<uint32_t> next(start_.begin(), start_.end() - 1);
  for (uint32_t e = 0; e < edges.size(); ++e) order_[next[edges[e].from]++] = e;
}

Components find_components(const DependencyGraph& graph) { return ComponentSearch(graph).run(); }

}  // namespace rdmacc
